"""Where a node may claim its next block: a free place of its pools, or a block of its own that no affinity leads to.

In a pool with room one of the first places in the node's order is free, so these are looked at before all blocks are
listed. With the place come the affinities that others have to it: of claims and releases that stopped half-way.

Invariant: a place that is offered overlapped no block of others when it was looked at, and is not wholly reserved. Only
where a listing takes several round trips is it just the block of the place itself that is looked for, and nobody's
affinities. A block of others is taken only when it is empty and was claimed at least a minute ago, so that a fresh
claim is not pulled from under its owner.
"""

from __future__ import annotations

from domain.ipam.address import BITS, covers
from domain.ipam.block import Owner
from domain.ipam.block_order import Skip, name_seed, start_index, walk
from domain.moment import SECOND, parse_rfc3339
from domain.value import Value
from ports.datastore import BlockKey, Blocks, affinities_of_all
from ports.errors import Refused
from usecases.ipam.allocation_terms import cidr_of
from usecases.ipam.claim_block import release_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Cidr
    from domain.ipam.block import Affinity, Block
    from domain.ipam.pools import Pool
    from ports.datastore import Stored
    from usecases.ipam.allocation_terms import Terms
    from usecases.ipam.work import Work

RECLAIM_AGE = 60 * SECOND
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
            *affinities_of_all(version),
            deadline=self._work.deadline,
        )
        taken = [block.record.cidr for block in blocks if not self._is_ours_with_room(block)] + self._damaged
        cidr = free_place(self._work, self._terms.request.owner, choice.usable, reserved, taken)
        cidr = cidr or reclaim(self._work, choice.usable, reserved, blocks)
        return (
            None
            if cidr is None
            else Place(cidr, tuple([lead for some in leads for lead in some if cidr_of(lead) == cidr]))
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
            BlockKey(cidr),
            Blocks(cidr.version, cidr),
            *affinities_of_all(cidr.version, to=cidr),
            deadline=self._work.deadline,
        )
        if all(self._is_ours_with_room(block) and block == there for block in around):
            return Place(cidr, tuple([lead for some in leads for lead in some]))
        self._odd += [block.record.cidr for block in around]
        return None

    def _is_ours_with_room(self, stored: Stored[Block]) -> bool:
        block = stored.record
        return (
            block.affinity == str(self._terms.request.owner)
            and block.cidr not in self._used
            and bool(block.free(self._terms.reserved))
        )


def _order_seed(work: Work, owner: Owner, pool: Pool) -> int:
    """The seed of a node's order: its name; for one-address blocks the clock, as the original has it."""
    single = pool.cidr is not None and pool.block_length == BITS[pool.cidr.version]
    return work.clock.now() if single else name_seed(owner.name)


def free_place(
    work: Work, owner: Owner, pools: tuple[Pool, ...], reserved: tuple[Cidr, ...], existing: list[Cidr]
) -> Cidr | None:
    """The first place in the node's order that overlaps none of the existing blocks, or None."""
    for pool in pools:
        cidr = pool.cidr
        if cidr is None:
            continue
        inside = [block for block in existing if block.overlaps(cidr)]
        exact = frozenset(block.first for block in inside if block.length == pool.block_length)
        odd = tuple(block for block in inside if block.length != pool.block_length)
        skip = Skip((*odd, *(kept for kept in reserved if kept.overlaps(cidr))), exact)
        for place in walk(cidr, pool.block_length, _order_seed(work, owner, pool), skip):
            if not any(block.overlaps(place) for block in odd):
                return place
    return None


def reclaim(
    work: Work, pools: tuple[Pool, ...], reserved: tuple[Cidr, ...], blocks: Iterable[Stored[Block]]
) -> Cidr | None:
    """Free somebody's empty block and return its place, or None when there is none to be had."""
    now = work.clock.now()
    for stored in blocks:
        block = stored.record
        fresh = block.claimed_at is not None and now - parse_rfc3339(block.claimed_at) < RECLAIM_AGE
        in_pool = any(pool.cidr is not None and block.cidr in pool.cidr for pool in pools)
        if fresh or not in_pool or block.affinity is None or not block.is_empty() or not block.free(reserved):
            continue
        if release_claim(work, Owner.parse(block.affinity), block.cidr, sequence=block.sequence):
            return block.cidr
    return None


def in_node_order(
    work: Work, owner: Owner, pool: Pool, reserved: tuple[Cidr, ...], blocks: Iterable[Stored[Block]]
) -> list[Stored[Block]]:
    """The pool's existing blocks as the node's walk meets them, without the wholly reserved ones."""
    cidr = pool.cidr
    if cidr is None or cidr.length > pool.block_length:
        return []
    size = 1 << (BITS[cidr.version] - pool.block_length)
    start = start_index(cidr, pool.block_length, _order_seed(work, owner, pool))
    inside = [block for block in blocks if block.record.cidr in cidr and not covers(reserved, block.record.cidr)]
    return sorted(inside, key=lambda one: ((one.record.cidr.first - cidr.first) // size - start) % (cidr.size // size))
