"""Releasing addresses by name: what is asked, what a block makes of it, and what came of it.

Invariant: an address is released only from the allocation that the caller meant, as far as he said which.
"""

from __future__ import annotations

from domain.ipam.address import Address
from domain.ipam.errors import StaleRequest
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.block import Block


class Release(Value):
    """One address to release. `handle` and `sequence`, if given, must be those of the allocation."""

    address: Address
    handle: str | None = None
    sequence: int | None = None


class ReleaseOutcome(Value):
    """`unallocated` addresses were free, cooling down or in no block; `released` are free, or cooling down, now.

    `error` is the first failure. What is in neither list is as it was.
    """

    unallocated: tuple[Address, ...]
    released: tuple[Release, ...]
    error: Exception | None


def releasable(block: Block, listed: Iterable[Release]) -> tuple[int, ...]:
    """Ordinals that the list names and somebody holds, each once. StaleRequest if one is not the allocation meant."""
    ordinals: dict[int, None] = {}
    for release in listed:
        ordinal = block.ordinal(release.address)
        sequence = block.sequences.get(ordinal, 0)
        if release.sequence not in (None, sequence):
            raise StaleRequest(
                release.address,
                f"the given sequence number ({release.sequence}) does not match ({sequence}) "
                "when attempting to release IP",
            )
        holder = block.holder(ordinal)
        if holder is None or holder.released_at or holder.is_hosts_own:
            continue
        if release.handle not in (None, holder.holder):
            raise StaleRequest(
                release.address,
                f"the given handle ({release.handle}) does not match ({holder.holder or ''}) "
                "when attempting to release IP",
            )
        ordinals[ordinal] = None
    return tuple(ordinals)
