"""Lists of CIDRs as filters: which addresses and which whole ranges they cover, and their shortest equal form.

Invariant: ranges that touch count as one (two halves cover the whole), and simplifying changes nothing that is covered.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr, covers
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class AddressFilter(Value):
    """What the CIDRs cover together. Host bits in them do not count."""

    cidrs: tuple[Cidr, ...]

    def matches(self, item: Address | Cidr) -> bool:
        """Whether the address, or all of the range, is covered."""
        return covers(self.cidrs, item if isinstance(item, Cidr) else item.host_cidr)


def outermost(cidrs: Iterable[Cidr]) -> tuple[Cidr, ...]:
    """The CIDRs that lie in no other, in order of IP version and address, without repeats and without host bits."""
    kept: list[Cidr] = []
    for cidr in sorted({one.network for one in cidrs}, key=lambda one: (one.version, one.number, one.length)):
        if not kept or cidr not in kept[-1]:
            kept.append(cidr)
    return tuple(kept)
