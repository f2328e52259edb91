"""Take addresses back: write the block first, then count the handle down, or both in one where a datastore can do that.

A death in between leaves a handle that counts too much; the next DEL finds no such address in the block and corrects
the handle. An empty block that no node is affine to is deleted with its last address.

Invariant: only addresses whose holder is the named handle are freed, and with a sequence number only if it still fits.
"""

from __future__ import annotations

from domain.ipam.block import Owner
from domain.ipam.pools import deselects, enabled_pools, pool_of
from domain.value import Value
from ports.datastore import AllocationConfigKey, BlockKey, Change, HandleKey, IPPools, NodeKey
from ports.errors import Conflict, Damaged, Missing, PortError
from usecases.ipam.claim_block import release_claim
from usecases.ipam.count_handle import lower, settle
from usecases.ipam.sound_records import tell_damaged
from usecases.ipam.work import DELETE, LEAVE, Delete, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from domain.cluster import Node
    from domain.ipam.address import Cidr
    from domain.ipam.block import Attribute, Block, Handle
    from domain.ipam.pools import AllocationConfig, Pool
    from domain.ipam.request import Allocation, AssignRequest
    from ports.datastore import Stored
    from usecases.ipam.work import Leave, Work


_UNTIL_REPAIRED = 1 << 62  # seconds
_MOST_TOGETHER = 8  # blocks; a store limits the parts and the octets of one write (etcd: 128, and 1.5 MiB)


def free_handle(work: Work, handle: str) -> bool:
    """Free everything a handle holds. False if there is no such handle."""
    config, stored = work.datastore.fetch(AllocationConfigKey(), HandleKey(handle), deadline=work.deadline)
    if stored is None:
        return False
    free_held(work, stored, config.record.cooldown_seconds if config else 0)
    return True


def free_held(work: Work, stored: Stored[Handle], cooldown: int, seen: NodeAndPools | None = None) -> bool:
    """Free everything that a handle, as read or remembered, holds. False if the handle was not as given, or stays.

    `seen` saves reads for a block that gets empty.

    A handle that counts more than its blocks hold (left by a death in mid-call) is corrected too. A block is then
    rewritten even if nothing in it changes, so that a call still in flight for this handle loses its race and counts
    again before it writes. A damaged block keeps what it has.
    """
    handle = HandleKey.of(stored).handle
    together = work.datastore.writes_together and 0 < len(stored.record.blocks) <= _MOST_TOGETHER
    if together and _free_together(work, stored, cooldown, seen):
        return True
    latest: Stored[Handle] | None = stored
    as_given = True
    for cidr, counted in stored.record.blocks.items():
        try:
            chosen = Chosen(lambda block: block.held_by(handle), cooldown, counted, seen)
            free_in_block(work, cidr, chosen, work.datastore.remembered(BlockKey(cidr)))
        except Damaged as error:  # the handle goes on counting it, which leads to it once it is repaired
            tell_damaged(work.log, error)
            as_given = False
            continue
        try:
            latest = lower(work, latest, cidr, 0)
        except (Conflict, Missing):
            latest = settle(work, handle, cidr)
            as_given = False
    if not stored.record.blocks:
        guarded_write(work, stored.key, _delete_if_bare, stored)
    return as_given


def _free_together(work: Work, stored: Stored[Handle], cooldown: int, seen: NodeAndPools | None) -> bool:
    """Free all and delete the handle in one write.

    False, and nothing is written, if somebody was faster, or a block is gone or damaged.
    """
    handle, now = HandleKey.of(stored).handle, work.clock.now()
    try:
        found = work.datastore.fetch(*[BlockKey(cidr) for cidr in stored.record.blocks], deadline=work.deadline)
    except Damaged:
        return False
    changes = [Change(stored.key, None, stored.revision)]
    emptied: list[Block] = []
    for one in found:
        if one is None:
            return False
        block = one.record.collect(now, cooldown)
        held = block.held_by(handle)
        after = settled(one.record, block.release(held, now, cooldown))
        if isinstance(after, Delete):
            changes.append(Change(one.key, None, one.revision))
            continue
        changes.append(Change(one.key, after, one.revision))
        if held and after.is_empty():
            emptied.append(after)
    try:
        work.datastore.write(changes, work.deadline)
    except (Conflict, Missing):
        return False
    for block in emptied:
        give_up_if_deselected(work, block, seen)
    return True


def _delete_if_bare(found: Handle | None) -> Delete | Leave:
    return DELETE if found is not None and not found.blocks else LEAVE


def free_allocation(work: Work, handle: str, allocation: Allocation, attribute: Attribute | None = None) -> None:
    """Free one address that this call gave out, if it is still exactly that allocation.

    With `attribute` only while it is that one: a virtual machine's address may have got another owner since.
    """
    config, stored = work.datastore.fetch(AllocationConfigKey(), HandleKey(handle), deadline=work.deadline)

    def exactly(block: Block) -> tuple[int, ...]:
        holder = block.holder(allocation.ordinal)
        ours = holder is not None and holder.holder == handle and attribute in (None, holder)
        return (allocation.ordinal,) if ours and block.sequences.get(allocation.ordinal) == allocation.sequence else ()

    freed = free_in_block(work, allocation.block, Chosen(exactly, config.record.cooldown_seconds if config else 0))
    if not freed.holders:
        return
    try:
        lower(work, stored, allocation.block, freed.still_held(handle))
    except (Conflict, Missing):
        settle(work, handle, allocation.block)


def free_unfinished(work: Work, request: AssignRequest, kept: Container[tuple[Cidr, int]] = ()) -> None:
    """Free whatever this very call has taken, and correct what its handle counts too much.

    A call that a signal ends in the middle of a write does not know whether it happened. `kept` are (block, ordinal)
    that bear the call's attribute and are not its own to free.
    """
    config, stored = work.datastore.fetch(AllocationConfigKey(), HandleKey(request.handle), deadline=work.deadline)
    cooldown = config.record.cooldown_seconds if config else 0

    def by_this_call(block: Block) -> tuple[int, ...]:
        held = [ordinal for ordinal in block.held_by(request.handle) if (block.cidr, ordinal) not in kept]
        return tuple([ordinal for ordinal in held if block.holder(ordinal) == request.attribute])

    for cidr in stored.record.blocks if stored else ():
        free_in_block(work, cidr, Chosen(by_this_call, cooldown))
        settle(work, request.handle, cidr)


def cooldown_seconds(work: Work) -> int:
    """How long a released address stays taken."""
    config = work.datastore.get(AllocationConfigKey(), work.deadline)
    return config.record.cooldown_seconds if config else 0


def cooldown_of(config: Stored[AllocationConfig] | Damaged | None) -> int:
    """The same of settings that have been read. Where they are damaged, addresses cool down until they are repaired."""
    if isinstance(config, Damaged):
        return _UNTIL_REPAIRED
    return config.record.cooldown_seconds if config else 0


class NodeAndPools(Value):
    """What was read a moment ago of a node and of the pools."""

    node: Stored[Node] | None
    pools: tuple[Stored[Pool], ...]

    def is_about(self, name: str) -> bool:
        return self.node is not None and self.node.record.metadata.name == name


class Chosen(Value):
    """Which ordinals of a block to free. With `expected` the block is rewritten even if there are none."""

    ordinals: Callable[[Block], tuple[int, ...]]
    cooldown: int
    expected: int = 0
    seen: NodeAndPools | None = None


class Freed(Value):
    """What a write freed: who held each ordinal, and the block as it was written (None: it is gone)."""

    holders: Mapping[int, Attribute]
    left: Block | None

    def still_held(self, handle: str) -> int:
        """How many addresses of the block the handle has now."""
        return len(self.left.held_by(handle)) if self.left else 0


def free_in_block(
    work: Work,
    cidr: Cidr,
    chosen: Chosen,
    stored: Stored[Block] | None = None,
) -> Freed:
    """Free the ordinals that are chosen. A block that is gone holds nothing.

    What `chosen` raises goes to the caller, and nothing is written. `stored` saves the first read.
    """
    freed: dict[int, Attribute] = {}

    def release(found: Block | None) -> Block | Delete | Leave:
        freed.clear()
        if found is None:
            return LEAVE
        now = work.clock.now()
        block = found.collect(now, chosen.cooldown)
        ordinals = chosen.ordinals(block)
        if not ordinals and not chosen.expected:
            return LEAVE
        freed.update({ordinal: block.attributes[block.allocations[ordinal] or 0] for ordinal in ordinals})
        return settled(found, block.release(ordinals, now, chosen.cooldown))

    left = guarded_write(work, BlockKey(cidr), release, stored)
    if freed and left is not None and left.record.is_empty():
        give_up_if_deselected(work, left.record, chosen.seen)
    return Freed(freed, left.record if left else None)


def settled(found: Block, after: Block) -> Block | Delete:
    """What to write over a block of which addresses were freed: an empty one that nobody owns is deleted."""
    if after.affinity is None and after.is_empty():
        return DELETE
    return after.replace(sequence=found.sequence + 1)


def give_up_if_deselected(work: Work, block: Block, seen: NodeAndPools | None = None) -> None:
    """Give an empty block back if its pool no longer selects its node. A failure costs nobody an address."""
    owner = Owner.parse(block.affinity or "")
    try:
        if seen is None or not seen.is_about(owner.name):
            seen = NodeAndPools(
                *work.datastore.fetch(NodeKey(owner.name), IPPools(may_lag=True), deadline=work.deadline)
            )
        node = seen.node
        pool = pool_of(enabled_pools((one.record for one in seen.pools), block.cidr.version), block.cidr)
        if node is None or pool is None or not deselects(pool, node.record.metadata.labels):
            return
        release_claim(work, owner, block.cidr)
    except PortError as error:
        work.log.warning("Could not give up an empty block of a deselected pool", block=block.cidr, error=error)
