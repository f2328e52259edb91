"""A holder that may have only so many addresses is answered with those that it has.

A virtual machine is such a holder: its containers come and go, and share one handle. A handle may count addresses that
no block holds, left by a call that died; so before it keeps anybody from an address, it is made to count what is there.
A call that has counted and not yet written its block loses its race for the block by that, and finds our address.

An address that is answered again gets a new sequence number, and a new time in its attributes. So the undo of the call
that took it leaves it alone, and so does a garbage collection that is about to free it.

Invariant: a handle's limit is never exceeded, and a handle that holds enough is never refused.
"""

from __future__ import annotations

from domain.ipam.errors import HandleFull
from domain.ipam.request import Allocation
from domain.moment import go_string
from ports.datastore import BlockKey, HandleKey
from usecases.ipam.count_handle import settle
from usecases.ipam.work import LEAVE, LostRace, guarded_write, until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from domain.ipam.address import Cidr
    from domain.ipam.block import Attribute, Block
    from domain.ipam.request import AssignRequest
    from usecases.ipam.work import Leave, Work

TIMESTAMP = "timestamp"


def adopt_held(work: Work, request: AssignRequest, version: int, allocations: Iterable[Allocation]) -> list[Allocation]:
    """Addresses that complete what the call has taken, if the handle may have no more; none if it has room.

    HandleFull if the handle is at its limit and holds less than what is asked for.
    """
    mine = {(allocation.block, allocation.ordinal) for allocation in allocations}
    wanted = request.counts[version]
    missing = wanted - len(mine)

    def adopt_missing() -> list[Allocation]:
        counts = counted_in(work, request.handle, version)
        total = sum(counts.values())
        if total + missing <= request.max_per_handle:
            return []
        held = held_in(work, request.handle, counts)
        if len(held) >= wanted:
            others = [allocation for allocation in held if (allocation.block, allocation.ordinal) not in mine][:missing]
            adopted = [adopt(work, request.handle, allocation) for allocation in others]
            found = [allocation for allocation in adopted if allocation is not None]
            if len(found) == missing:
                return found
        elif not settle_all(work, request.handle, counts, held):
            raise HandleFull(request.handle, total, request.max_per_handle)
        raise LostRace

    return until_won(HandleKey(request.handle), adopt_missing)


def counted_in(work: Work, handle: str, version: int) -> Mapping[Cidr, int]:
    """How many addresses of one IP version a handle counts in each block."""
    stored = work.datastore.get(HandleKey(handle), work.deadline)
    counts = stored.record.blocks if stored else {}
    return {cidr: count for cidr, count in counts.items() if cidr.version == version}


def held_in(work: Work, handle: str, cidrs: Iterable[Cidr]) -> list[Allocation]:
    """What a handle holds in those blocks."""
    found: list[Allocation] = []
    for cidr in cidrs:
        stored = work.datastore.get(BlockKey(cidr), work.deadline)
        if stored is not None:
            sequences = stored.record.sequences
            found += [Allocation(cidr, ordinal, sequences.get(ordinal, 0)) for ordinal in stored.record.held_by(handle)]
    return found


def settle_all(work: Work, handle: str, counts: Mapping[Cidr, int], held: Iterable[Allocation]) -> bool:
    """Lower what a handle counts beyond what it holds. Says whether there was anything like it."""
    places = [allocation.block for allocation in held]
    excess = [cidr for cidr, count in counts.items() if count > places.count(cidr)]
    for cidr in excess:
        settle(work, handle, cidr)
    return bool(excess)


def adopt(work: Work, handle: str, allocation: Allocation) -> Allocation | None:
    """Make an address that the handle holds this call's answer too; None if it holds it no more."""

    def renew(found: Block | None) -> Block | Leave:
        holder = _holder(found, allocation.ordinal, handle)
        if found is None or holder is None:
            return LEAVE
        renewed = {TIMESTAMP: go_string(work.clock.now())} if TIMESTAMP in holder.secondary else {}
        again = found.give(allocation.ordinal, holder.replace(secondary={**holder.secondary, **renewed}))
        return again.replace(sequence=found.sequence + 1)

    left = guarded_write(work, BlockKey(allocation.block), renew)
    if left is None or _holder(left.record, allocation.ordinal, handle) is None:
        return None
    return allocation.replace(sequence=left.record.sequences[allocation.ordinal], held_before=True)


def _holder(block: Block | None, ordinal: int, handle: str) -> Attribute | None:
    """Who has the ordinal, if it is that handle."""
    holder = block.holder(ordinal) if block else None
    return holder if holder is not None and holder.holder == handle else None
