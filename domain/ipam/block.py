"""The three records of allocation: blocks, affinities to them, and handles that count what a container has in them.

A block is a slice of a pool, of fixed size, that is read, changed and written back as one record. Every allocation
lives in exactly one block, so a block's compare-and-swap is what keeps an address from having two holders. All
operations are pure: they return a new block, and a caller that loses a race throws it away. The block is the truth:
an affinity leads a node to the blocks that may be its own, and a handle leads a DEL to those that hold its addresses.

Invariant (`is_consistent`): every allocation index names an attribute; every attribute is referenced; `unallocated`
has no repeats and shares nothing with the allocated ordinals; together they are the whole block.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.moment import SECOND, parse_rfc3339, rfc3339
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


PENDING, CONFIRMED, PENDING_DELETION = "pending", "confirmed", "pendingDeletion"
HOST, VIRTUAL = "host", "virtual"
MACHINE_MARK = ".vmi."  # in the handle of every virtual machine, which its containers share
KEPT_BY = "kept-by"  # in the attributes of an address that stays with a name (domain.ipam.kept): whose sandbox has it
WINDOWS_HANDLE = "windows-reserved-ipam-handle"

_CLOCKS_DIFFER = 3600 * SECOND


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

    @property
    def holder(self) -> str | None:
        r"""The handle without the `\r…` that old versions left at its end."""
        return None if self.handle is None else self.handle.partition("\r")[0]

    @property
    def is_hosts_own(self) -> bool:
        """Whether a Windows host keeps the address for itself: it is nobody's to release."""
        return (self.handle or "").lower() == WINDOWS_HANDLE


class HostReservedAttr(Value):
    """Addresses that a host keeps for itself in each of its blocks: `start` at the beginning, `end` at the end.

    Windows needs them for its own network. They count as given to `handle`, of which no record exists.
    """

    start: int
    end: int
    handle: str = WINDOWS_HANDLE
    note: str = ""


class NotInBlock(ValueError):
    """An address outside of the block that was asked about it."""


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
        """NotInBlock `IP <a> not in block <cidr>` outside."""
        if address not in self.cidr:
            raise NotInBlock(f"IP {address} not in block {self.cidr}")
        return address.number - self.cidr.first

    def holder(self, ordinal: int) -> Attribute | None:
        """Who holds the ordinal (a cooldown counts as a holder); None when it is free."""
        index = self.allocations[ordinal]
        return None if index is None else self.attributes[index]

    def is_empty(self) -> bool:
        """Whether nobody but a Windows host itself holds an address. An address in cooldown counts as held."""
        return all(index is None or self.attributes[index].is_hosts_own for index in self.allocations)

    def held_by(self, handle: str) -> tuple[int, ...]:
        """Ordinals whose holder is that handle."""
        mine = {index for index, attribute in enumerate(self.attributes) if attribute.holder == handle}
        return tuple(ordinal for ordinal, index in enumerate(self.allocations) if index in mine) if mine else ()

    def free(self, reserved: tuple[Cidr, ...]) -> tuple[int, ...]:
        """Free ordinals outside the reservations, longest free first."""
        near = [cidr for cidr in reserved if cidr.overlaps(self.cidr)]
        if not near:
            return self.unallocated
        base = self.cidr.first
        ranges = [range(cidr.first - base, cidr.end - base) for cidr in near]
        return tuple(ordinal for ordinal in self.unallocated if not any(ordinal in ordinals for ordinals in ranges))

    def take(self, ordinals: tuple[int, ...], attribute: Attribute) -> Block:
        """Give free ordinals to a holder; they remember the sequence under which they were taken."""
        attributes, index = self._with(attribute)
        allocations, going = list(self.allocations), frozenset(ordinals)
        for ordinal in ordinals:
            allocations[ordinal] = index
        return self.replace(
            allocations=tuple(allocations),
            unallocated=tuple(ordinal for ordinal in self.unallocated if ordinal not in going),
            attributes=attributes,
            sequences={**self.sequences, **dict.fromkeys(ordinals, self.sequence)},
        )

    def give(self, ordinal: int, attribute: Attribute) -> Block:
        """Put one ordinal into a holder's hands, whoever had it before."""
        return self.take((ordinal,), attribute)._tidy()

    def _with(self, attribute: Attribute) -> tuple[tuple[Attribute, ...], int]:
        if attribute in self.attributes:
            return self.attributes, self.attributes.index(attribute)
        return (*self.attributes, attribute), len(self.attributes)

    def release(self, ordinals: Iterable[int], now: int, cooldown: int) -> Block:
        """Take ordinals back from their holders: at once without a cooldown (seconds), else marked as released."""
        ordinals = tuple(ordinals)
        if cooldown <= 0:
            return self._freed(ordinals)
        attributes, index = self._with(Attribute(None, {}, released_at=rfc3339(now)))
        allocations = list(self.allocations)
        for ordinal in ordinals:
            allocations[ordinal] = index
        sequences = {**self.sequences, **dict.fromkeys(ordinals, self.sequence)}
        return self.replace(allocations=tuple(allocations), attributes=attributes, sequences=sequences)._tidy()

    def collect(self, now: int, cooldown: int) -> Block:
        """Free what has cooled down (released strictly more than `cooldown` seconds ago) and drop unused attributes.

        A release that lies ahead by more than nodes' clocks differ was written by a clock that has been set back since.
        Its address has cooled down as well, or nobody could have it until that time comes.
        """
        cold = {
            index
            for index, attribute in enumerate(self.attributes)
            if attribute.released_at
            and not -_CLOCKS_DIFFER <= now - parse_rfc3339(attribute.released_at) <= cooldown * SECOND
        }
        if cold:
            return self._freed(ordinal for ordinal, index in enumerate(self.allocations) if index in cold)
        return self._tidy()

    def _freed(self, ordinals: Iterable[int]) -> Block:
        going = dict.fromkeys(sorted(ordinals))
        allocations = list(self.allocations)
        for ordinal in going:
            allocations[ordinal] = None
        return self.replace(
            allocations=tuple(allocations),
            unallocated=(*self.unallocated, *going),
            sequences={ordinal: at for ordinal, at in self.sequences.items() if ordinal not in going},
        )._tidy()

    def _tidy(self) -> Block:
        """Drop attributes that nothing refers to, and renumber."""
        used = {index for index in self.allocations if index is not None}
        if len(used) == len(self.attributes):
            return self
        kept = [index for index in range(len(self.attributes)) if index in used]
        place = {old: new for new, old in enumerate(kept)}
        return self.replace(
            allocations=tuple(None if index is None else place[index] for index in self.allocations),
            attributes=tuple(self.attributes[index] for index in kept),
        )

    def is_consistent(self) -> bool:
        """The invariant of this module."""
        size = self.cidr.size
        held = [ordinal for ordinal, index in enumerate(self.allocations) if index is not None]
        return (
            len(self.allocations) == size
            and {index for index in self.allocations if index is not None} == set(range(len(self.attributes)))
            and sorted([*held, *self.unallocated]) == list(range(size))
        )


def new_block(
    cidr: Cidr, owner: object, claimed_at: str | None, sequence: int, host_reserved: HostReservedAttr | None = None
) -> Block:
    """A block as its claimer creates it: all free, in ascending order. `sequence` is the claim's time in nanoseconds.

    A recreated block thus never reuses the sequence numbers of the one before it. What the host keeps for itself is
    given away from the start, and has no sequence number.
    """
    size = cidr.size
    block = Block(cidr, str(owner), claimed_at, (None,) * size, tuple(range(size)), (), sequence, {})
    if host_reserved is None:
        return block
    ordinals = (*range(host_reserved.start), *range(size - host_reserved.end, size))
    return block.take(ordinals, Attribute(host_reserved.handle, {"note": host_reserved.note})).replace(sequences={})


class Owner(Value):
    """Who can be affine to a block: `kind` is `host` or `virtual`."""

    kind: str
    name: str

    def __str__(self) -> str:
        """The form a block's `affinity` field has: `host:node-a`."""
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Owner:
        kind, _, name = text.partition(":")
        return cls(kind, name)


class Affinity(Value):
    """A node (or a virtual owner) claims a block. `state` is pending, confirmed, pendingDeletion, or "" in old records.

    States go none → pending → confirmed → pendingDeletion → none; "" means confirmed. Only a confirmed affinity may be
    routed on; allocation treats any state as a lead to a block that might be ours.
    """

    state: str
    deleted: bool = False
    unknown: tuple[tuple[str, str], ...] = ()

    def is_settled(self, owner: Owner, block: Block) -> bool:
        """Whether the owner's claim of the block that this leads to is complete, and neither side says otherwise."""
        return self.state in (CONFIRMED, "") and block.affinity == str(owner)


class Handle(Value):
    """How many addresses a container holds in each block. `blocks` maps a block's canonical CIDR to at least one.

    The order of writes (count up before the block is written, down after it) sees to it that a handle counts at least
    what the blocks hold for it. After a crash it may count too much.
    """

    blocks: Mapping[Cidr, int]
    deleted: bool = False
    unknown: tuple[tuple[str, str], ...] = ()
