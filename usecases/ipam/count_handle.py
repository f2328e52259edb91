"""Keep a handle's counts: up before a block is written, down only after it.

A death between the two leaves a handle that counts too much, never too little, so a DEL that follows the handle
misses no block that holds one of its addresses. Counting down is where calls for one container could wrong each
other: a count that one has raised and not yet used must survive what another lowers. So a count is lowered only over
the very revision of the handle that was read before the block's last write. A call that had raised it earlier has
then lost its race for the block, and one that raises it later changes the handle first.

Invariant: a handle always counts at least what the blocks hold for it.
"""

from __future__ import annotations

from domain.ipam.block import Handle
from domain.ipam.errors import HandleFull
from domain.value import Value
from ports.datastore import BlockKey, Change, HandleKey
from ports.errors import AlreadyExists, Conflict, Missing
from usecases.ipam.work import DELETE, guarded_write, until_won, write_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.block import Block
    from ports.datastore import Stored
    from usecases.ipam.work import Work


def increment(work: Work, handle: str, block: Cidr, count: int, limit: int = 0) -> Stored[Handle]:
    """Count `count` more addresses of a block. HandleFull if the handle would hold more than `limit` of that version.

    The handle of a new container does not exist, so it is created without reading first; only if that fails is it read.
    """
    key = HandleKey(handle)

    def more(stored: Handle | None) -> Handle:
        return _raised(stored, block, Counting(handle, count, limit))

    try:
        written = write_once(work, key, None, more(None))
    except AlreadyExists:
        written = guarded_write(work, key, more)
    assert written is not None  # noqa: S101 - `more` never deletes
    return written


class Counting(Value):
    """How many more addresses a handle is to count, and how many of one version it may."""

    handle: str
    count: int
    limit: int = 0


def count_and_write(work: Work, found: Stored[Block], taken: Block, counting: Counting) -> Stored[Block]:
    """Count a handle up as `increment` does, and write the block over what was found of it: both or neither.

    `AlreadyExists`, `Conflict` or `Missing` if one of the two has changed: a handle counts as not there until this work
    has counted it.
    """
    handle = counting.handle
    known = work.counted.pop(handle, None)  # once: it may be out of date, and full
    more = _raised(known.record if known else None, taken.cidr, counting)
    changes = (
        Change(HandleKey(handle), more, known.revision if known else None),
        Change(found.key, taken.replace(sequence=found.record.sequence + 1), found.revision),
    )
    counted, written = work.datastore.write(changes, work.deadline)
    assert counted is not None  # noqa: S101 - narrows the type
    assert written is not None  # noqa: S101 - as above
    work.counted[handle] = counted
    return written


def _raised(stored: Handle | None, block: Cidr, counting: Counting) -> Handle:
    count, limit = counting.count, counting.limit
    counts = dict(stored.blocks) if stored else {}
    held = sum(number for cidr, number in counts.items() if cidr.version == block.version)
    if limit and held + count > limit:
        raise HandleFull(counting.handle, held, limit)
    counts[block] = counts.get(block, 0) + count
    return stored.replace(blocks=counts) if stored else Handle(counts)


def take_back(work: Work, incremented: Stored[Handle], block: Cidr, count: int, found: Stored[Block] | None) -> None:
    """Undo an `increment` whose block write did not happen, as far as the block shows that was `found` afterwards.

    What it holds stays counted: the write may have happened after all, and somebody may have changed the holder since.
    """
    handle = HandleKey.of(incremented).handle
    held = len(found.record.held_by(handle)) if found else 0
    try:
        lower(work, incremented, block, max(held, incremented.record.blocks.get(block, 0) - count))
    except (Conflict, Missing):
        settle(work, handle, block)


def lower(work: Work, handle: Stored[Handle] | None, block: Cidr, held: int) -> Stored[Handle] | None:
    """Make a handle count `held` addresses of a block; what is stored afterwards. A handle without counts is deleted.

    The handle must have been read before the block was last written. `Conflict` or `Missing` if it has changed since.
    """
    if handle is None or handle.record.blocks.get(block, 0) <= held:
        return handle
    counts = {cidr: count for cidr, count in {**handle.record.blocks, block: held}.items() if count > 0}
    return write_once(work, handle.key, handle, handle.record.replace(blocks=counts) if counts else DELETE)


def settle(work: Work, handle: str, block: Cidr) -> Stored[Handle] | None:
    """Make a handle count what the block holds for it, whoever else is at both; what is stored afterwards.

    If there is something to lower, the block is rewritten unchanged first.
    """

    def compare_and_lower() -> Stored[Handle] | None:
        stored = work.datastore.get(HandleKey(handle), work.deadline)
        found = work.datastore.get(BlockKey(block), work.deadline)
        held = len(found.record.held_by(handle)) if found else 0
        if stored is None or stored.record.blocks.get(block, 0) <= held:
            return stored
        if found is not None:
            same = found.record.replace(sequence=found.record.sequence + 1)
            work.datastore.update(found.key, same, found.revision, work.deadline)
        return lower(work, stored, block, held)

    return until_won(HandleKey(handle), compare_and_lower, Conflict, Missing)
