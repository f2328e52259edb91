"""Give addresses that are in use already to those who use them, many of a block at once.

Calico knows one way to assign a particular address, a call for each. An upgrade has thousands, so here one block is
written once for all of its addresses; what is stored afterwards is the same. Handles are counted before the block is
written, and what they count too much, as after an attempt that died, is corrected at the end.

Invariant: an address that somebody else holds stays his. A handle counts at least what the block holds for it.
"""

from __future__ import annotations

from domain.ipam.upgrade import place
from ports.datastore import AffinityKey, BlockKey
from ports.errors import Conflict, Missing, Unavailable
from usecases.ipam.claim_block import BlockClaimConflict, block_behind, claim_block
from usecases.ipam.count_handle import increment, settle
from usecases.ipam.work import until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from domain.ipam.address import Cidr
    from domain.ipam.block import Block, Handle, Owner
    from domain.ipam.pools import AllocationConfig
    from domain.ipam.upgrade import Placed, Placement
    from ports.datastore import Stored
    from usecases.ipam.work import Work


def take_over(
    work: Work, owner: Owner, cidr: Cidr, placements: Sequence[Placement], config: AllocationConfig
) -> Placed:
    """All of them are in the block, which is the owner's afterwards if it is nobody's."""
    counted: dict[str, Stored[Handle]] = {}

    def attempt() -> Placed:
        stored = _block(work, owner, cidr)
        placed = place_in(work, stored.record, owner, placements, config)
        for handle, number in _by_handle(placed.taken).items():
            if handle not in counted:
                counted[handle] = increment(work, handle, cidr, number)
        if placed.taken:
            _write(work, stored, placed)
        return placed

    placed = until_won(BlockKey(cidr), attempt, Conflict, Missing, BlockClaimConflict)
    _settle(work, cidr, placed, counted)
    return placed


def _block(work: Work, owner: Owner, cidr: Cidr) -> Stored[Block]:
    """Another's as it is; ours with its affinity confirmed, since only then it is routed to this node."""
    block, affinity = work.datastore.fetch(BlockKey(cidr), AffinityKey(owner, cidr), deadline=work.deadline)
    if block is not None and block.record.affinity != str(owner):
        return block
    return claim_block(work, owner, cidr) if affinity is None else block_behind(work, affinity, block)


def place_in(
    work: Work, block: Block, owner: Owner, placements: Sequence[Placement], config: AllocationConfig
) -> Placed:
    """What would become of them in this block now."""
    block = block.collect(work.clock.now(), config.cooldown_seconds)
    if config.strict_affinity and block.affinity != str(owner):
        why = (
            f"block {block.cidr} belongs to {block.affinity or 'nobody'}, and strictAffinity is set; unset it meanwhile"
        )
        return place(block, ()).replace(refused=tuple([(one, why) for one in placements]))
    return place(block, placements)


def _write(work: Work, stored: Stored[Block], placed: Placed) -> None:
    try:
        work.datastore.update(stored.key, placed.block, stored.revision, work.deadline)
    except Unavailable:  # only the answer may have been lost
        found = work.datastore.get(stored.key, work.deadline)
        if found is None or any(
            found.record.holder(found.record.ordinal(one.address)) != one.attribute for one in placed.taken
        ):
            raise


def _by_handle(placements: Sequence[Placement]) -> Mapping[str, int]:
    numbers: dict[str, int] = {}
    for one in placements:
        numbers[one.handle] = numbers.get(one.handle, 0) + 1
    return numbers


def _settle(work: Work, cidr: Cidr, placed: Placed, counted: Mapping[str, Stored[Handle]]) -> None:
    """Those that were there before, or were counted for nothing. A new handle counts what has just been taken."""
    taken = _by_handle(placed.taken)
    doubtful = [handle for handle, stored in counted.items() if stored.record.blocks.get(cidr) != taken.get(handle)]
    for handle in dict.fromkeys([*doubtful, *[one.handle for one in placed.had]]):
        settle(work, handle, cidr)
