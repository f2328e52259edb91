"""Where a node may claim its next block: a free place of its pools, or a block of its own that no affinity leads to.

In a pool with room one of the first places in the node's order is free, so these are looked at before all blocks are
listed. With the place come the affinities that others have to it: of claims and releases that stopped half-way.

Invariant: a place that is offered overlapped no block of others when it was looked at. Only where a listing takes
several round trips is it just the block of the place itself that is looked for, and nobody's affinities.
"""

from __future__ import annotations

from domain.ipam.affinity import HOST, VIRTUAL, Owner
from domain.value import Value
from ports.datastore import Affinities, BlockKey, Blocks
from ports.errors import Refused
from usecases.ipam.allocation_terms import cidr_of
from usecases.ipam.find_block import free_place, reclaim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.affinity import Affinity
    from domain.ipam.block import Block
    from ports.datastore import Stored
    from usecases.ipam.allocation_terms import Terms
    from usecases.ipam.work import Work

PROBES = 3  # places looked at before all blocks are listed


class Place(Value):
    """`leads` are the affinities to it that there were, of whichever owner."""

    cidr: Cidr
    leads: tuple[Stored[Affinity], ...] = ()


class Places:
    """For one IP version of one request. `used`: blocks that have been handed out already."""

    def __init__(self, work: Work, terms: Terms, used: set[Cidr]) -> None:
        self._work = work
        self._terms = terms
        self._used = used
        self._probed: list[Cidr] = []
        self._odd: list[Cidr] = []  # blocks that overlap a place that was looked at
        self._damaged: list[Cidr] = []

    def leave_out(self, cidr: Cidr, error: Refused) -> None:
        """A block that cannot be read: its place is not offered again."""
        self._work.log.error("Leaving out a block that cannot be read", block=cidr, error=error)
        self._damaged.append(cidr)

    def look_again(self, cidr: Cidr) -> None:
        """It may be ours all the same, half claimed."""
        self._probed = [place for place in self._probed if place != cidr]

    def next(self) -> Place | None:
        """A free place or a block of ours without an affinity, else somebody's empty block; None if there is none."""
        return self._probe() or self._search()

    def _search(self) -> Place | None:
        version, choice, reserved = self._terms.version, self._terms.choice, self._terms.reserved
        blocks, *leads = self._work.datastore.fetch(
            Blocks(version),
            Affinities(Owner(HOST, ""), version),
            Affinities(Owner(VIRTUAL, ""), version),
            deadline=self._work.deadline,
        )
        taken = [one.record.cidr for one in blocks if not self._is_ours_with_room(one)] + self._damaged
        cidr = free_place(self._work, self._terms.request.owner, choice.usable, reserved, taken)
        cidr = cidr or reclaim(self._work, choice.usable, reserved, blocks)
        return (
            None
            if cidr is None
            else Place(cidr, tuple([one for some in leads for one in some if cidr_of(one) == cidr]))
        )

    def _probe(self) -> Place | None:
        """The first places of the node's walk, looked at one by one."""
        choice, reserved = self._terms.choice, self._terms.reserved
        while len(self._probed) < PROBES:
            seen = [*self._probed, *self._odd, *self._used, *self._damaged]
            cidr = free_place(self._work, self._terms.request.owner, choice.usable, reserved, seen)
            if cidr is None:
                return None
            self._probed.append(cidr)
            try:
                place = self._look_at(cidr)
            except Refused as error:
                self.leave_out(cidr, error)
                continue
            if place is not None:
                return place
        return None

    def _look_at(self, cidr: Cidr) -> Place | None:
        """The place, if it is free. Refused if there is a block that cannot be read."""
        if not self._work.datastore.lists_in_one_go:
            stored = self._work.datastore.get(BlockKey(cidr), self._work.deadline)
            return Place(cidr) if stored is None or self._is_ours_with_room(stored) else None
        there, around, *leads = self._work.datastore.fetch(
            BlockKey(cidr), Blocks(cidr.version, cidr), *leads_to(cidr), deadline=self._work.deadline
        )
        if all(self._is_ours_with_room(one) and one == there for one in around):
            return Place(cidr, tuple([one for some in leads for one in some]))
        self._odd += [one.record.cidr for one in around]
        return None

    def _is_ours_with_room(self, stored: Stored[Block]) -> bool:
        block = stored.record
        return (
            block.affinity == str(self._terms.request.owner)
            and block.cidr not in self._used
            and bool(block.free(self._terms.reserved))
        )


def leads_to(cidr: Cidr) -> tuple[Affinities, Affinities]:
    """What to fetch for all affinities to a block."""
    return Affinities(Owner(HOST, ""), cidr.version, to=cidr), Affinities(Owner(VIRTUAL, ""), cidr.version, to=cidr)
