"""Find a block that a node may claim: the first free place in its pools, else an empty block somebody else owns.

Invariant: a place that overlaps any existing block, or is wholly reserved, is never offered; blocks of others are
taken only when empty and claimed at least a minute ago, so that a fresh claim is not pulled from under its owner.
"""

from __future__ import annotations

from domain.ipam.address import BITS, covers
from domain.ipam.affinity import Owner
from domain.ipam.block_order import Skip, name_seed, start_index, walk
from domain.moment import SECOND, parse_rfc3339
from usecases.ipam.claim_block import release_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Cidr
    from domain.ipam.block import Block
    from domain.ipam.pools import Pool
    from ports.datastore import Stored
    from usecases.ipam.work import Work

RECLAIM_AGE = 60 * SECOND


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
        inside = [one for one in existing if one.overlaps(cidr)]
        exact = frozenset(one.first for one in inside if one.length == pool.block_length)
        odd = tuple(one for one in inside if one.length != pool.block_length)
        skip = Skip((*odd, *(one for one in reserved if one.overlaps(cidr))), exact)
        for place in walk(cidr, pool.block_length, _order_seed(work, owner, pool), skip):
            if not any(one.overlaps(place) for one in odd):
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
    inside = [one for one in blocks if one.record.cidr in cidr and not covers(reserved, one.record.cidr)]
    return sorted(inside, key=lambda one: ((one.record.cidr.first - cidr.first) // size - start) % (cidr.size // size))
