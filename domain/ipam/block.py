"""A block: the fixed-size slice of a pool that is read, changed and written back as one record.

Every allocation lives in exactly one block, so a block's compare-and-swap is what keeps an address from having two
holders. All operations are pure: they return a new block, and a caller that loses a race throws it away.

Invariant (`is_consistent`): every allocation index names an attribute; every attribute is referenced; `unallocated`
has no repeats and shares nothing with the allocated ordinals; together they are the whole block.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOWS_HANDLE = "windows-reserved-ipam-handle"


class Attribute(Value):
    """Who holds an ordinal. Several ordinals may share one.

    `handle` is None when the record has none (an address in cooldown). `secondary` describes the active owner,
    `alternate` the target of a live migration. `released_at` (RFC 3339) marks a cooldown. `unknown` holds members
    that we do not know, as (name, JSON text), so that they survive a rewrite.
    """

    handle: str | None
    secondary: Mapping[str, str]
    alternate: Mapping[str, str] | None = None
    released_at: str | None = None
    unknown: tuple[tuple[str, str], ...] = ()


class Block(Value):
    """`affinity` is `host:<node>`, `virtual:<name>` or None. `claimed_at` is RFC 3339 or None.

    `allocations` has one entry per ordinal: None, or an index into `attributes`. `unallocated` is the queue of free
    ordinals: taken from the head, returned to the tail. `sequence` grows by one with each update of the record;
    `sequences` holds, per allocated ordinal, the sequence under which it was taken.
    """

    cidr: Cidr
    affinity: str | None
    claimed_at: str | None
    allocations: tuple[int | None, ...]
    unallocated: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    sequence: int
    sequences: Mapping[int, int]
    deleted: bool = False
    unknown: tuple[tuple[str, str], ...] = ()

    def ordinal(self, address: Address) -> int:
        """ValueError `IP <a> not in block <cidr>` outside."""
        if address not in self.cidr:
            raise ValueError(f"IP {address} not in block {self.cidr}")
        return address.number - self.cidr.first
