"""Take addresses back: write the block first, then count the handle down.

A death in between leaves a handle that counts too much; the next DEL finds no such address in the block and corrects
the handle. An empty block that no node is affine to is deleted with its last address.

Invariant: only addresses whose holder is the named handle are freed, and with a sequence number only if it still fits.
"""

from __future__ import annotations

from domain.ipam.affinity import Owner
from domain.ipam.pools import deselects, enabled_pools, pool_of
from domain.usecases.steps.claim_block import release_claim
from domain.usecases.steps.count_handle import decrement
from domain.usecases.steps.guarded_write import DELETE, LEAVE, guarded_write, write_once
from ports.datastore import AllocationConfigKey, BlockKey, HandleKey, IPPools, NodeKey
from ports.errors import Conflict, Missing, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from domain.ipam.address import Cidr
    from domain.ipam.block import Attribute, Block
    from domain.ipam.handle import Handle
    from domain.ipam.request import Taken
    from domain.usecases.steps.guarded_write import Delete, Leave
    from domain.usecases.steps.work import Work
    from ports.datastore import Stored


def free_handle(work: Work, handle: str) -> bool:
    """Free everything a handle holds. False if there is no such handle.

    A handle that counts more than its block holds (left by a death in mid-call) is corrected too. The block is then
    rewritten even if nothing in it changes, so that a call still in flight for this handle loses its race and counts
    again before it writes.
    """
    config, stored = work.datastore.fetch(AllocationConfigKey(), HandleKey(handle), deadline=work.deadline)
    if stored is None:
        return False
    cooldown = config.record.cooldown_seconds if config else 0
    latest: Stored[Handle] | None = stored
    for cidr, counted in stored.record.blocks.items():
        freed = len(free_in_block(work, cidr, cooldown, lambda block: block.held_by(handle), expected=counted))
        try:
            latest = _strike(work, latest, cidr)
        except (Conflict, Missing):
            decrement(work, handle, cidr, freed)
            latest = work.datastore.get(HandleKey(handle), work.deadline)
    if not stored.record.blocks:
        guarded_write(work, HandleKey(handle), _delete_if_bare, stored)
    return True


def _strike(work: Work, handle: Stored[Handle] | None, cidr: Cidr) -> Stored[Handle] | None:
    """Take one block off a handle, if the handle is still as it was read before that block was written."""
    if handle is None or cidr not in handle.record.blocks:
        return handle
    rest = {block: count for block, count in handle.record.blocks.items() if block != cidr}
    return write_once(work, handle.key, handle, handle.record.replace(blocks=rest) if rest else DELETE)


def _delete_if_bare(found: Handle | None) -> Delete | Leave:
    return DELETE if found is not None and not found.blocks else LEAVE


def free_taken(work: Work, handle: str, taken: Taken) -> None:
    """Free one address that this call gave out, if it is still exactly that allocation."""

    def exactly(block: Block) -> tuple[int, ...]:
        holder = block.holder(taken.ordinal)
        ours = holder is not None and holder.holder == handle
        return (taken.ordinal,) if ours and block.sequences.get(taken.ordinal) == taken.sequence else ()

    freed = free_in_block(work, taken.block, cooldown_seconds(work), exactly)
    if freed:
        decrement(work, handle, taken.block, len(freed))


def cooldown_seconds(work: Work) -> int:
    """How long a released address stays taken."""
    config = work.datastore.get(AllocationConfigKey(), work.deadline)
    return config.record.cooldown_seconds if config else 0


def free_in_block(
    work: Work, cidr: Cidr, cooldown: int, chosen: Callable[[Block], tuple[int, ...]], *, expected: int = 0
) -> Mapping[int, Attribute]:
    """Free the ordinals that `chosen` names; returns who held each. A block that is gone holds nothing.

    With `expected` the block is rewritten even if there is nothing to free. What `chosen` raises goes to the caller,
    and nothing is written.
    """
    freed: dict[int, Attribute] = {}

    def release(found: Block | None) -> Block | Delete | Leave:
        freed.clear()
        if found is None:
            return LEAVE
        now = work.clock.now()
        block = found.collect(now, cooldown)
        ordinals = chosen(block)
        if not ordinals and not expected:
            return LEAVE
        freed.update({ordinal: block.attributes[block.allocations[ordinal] or 0] for ordinal in ordinals})
        return settled(found, block.release(ordinals, now, cooldown))

    left = guarded_write(work, BlockKey(cidr), release)
    if freed and left is not None and left.record.is_empty():
        give_up_if_deselected(work, left.record)
    return freed


def settled(found: Block, after: Block) -> Block | Delete:
    """What to write over a block of which addresses were freed: an empty one that nobody owns is deleted."""
    if after.affinity is None and after.is_empty():
        return DELETE
    return after.replace(sequence=found.sequence + 1)


def give_up_if_deselected(work: Work, block: Block) -> None:
    """An empty block whose pool no longer selects its node goes back. A failure here costs nobody an address."""
    owner = Owner.parse(block.affinity or "")
    try:
        node, stored = work.datastore.fetch(NodeKey(owner.name), IPPools(), deadline=work.deadline)
        pool = pool_of(enabled_pools((one.record for one in stored), block.cidr.version), block.cidr)
        if node is None or pool is None or not deselects(pool, node.record.metadata.labels):
            return
        release_claim(work, owner, block.cidr)
    except PortError as error:
        work.log.warning("Could not give up an empty block of a deselected pool", block=block.cidr, error=error)
