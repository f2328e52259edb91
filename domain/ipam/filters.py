"""Lists of CIDRs in their shortest form, so that overlapping ranges can be counted without counting twice.

Whether such a list covers an address or a whole range is answered by `covers`, which needs no shortest form.

Invariant: the ranges of a result share no address, and cover exactly what the given ones cover.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Cidr


def outermost(cidrs: Iterable[Cidr]) -> tuple[Cidr, ...]:
    """The CIDRs that lie in no other, in order of IP version and address, without repeats and without host bits."""
    kept: list[Cidr] = []
    for cidr in sorted({one.network for one in cidrs}, key=lambda one: (one.version, one.number, one.length)):
        if not kept or cidr not in kept[-1]:
            kept.append(cidr)
    return tuple(kept)
