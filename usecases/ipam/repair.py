"""Put one finding of an audit right, whatever calls are at work meanwhile.

Each repair reads again what it acts on and writes only over what it has read, in the order of writes that allocation
and release use; a record that somebody has touched since the finding is left to him. A handle that counts too much is
corrected as a DEL does it: the block is rewritten first, so that a call which has counted the handle up but not yet
written the block loses its race and counts again.

Invariant: nothing that a block holds for a container is freed, unless the finding is about that very address.
"""

from __future__ import annotations

from domain.ipam import audit_addresses, audit_blocks, audit_handles
from domain.ipam.audit import UNREADABLE
from domain.ipam.audit_addresses import machine_mark
from domain.ipam.audit_blocks import lost_ordinals
from domain.ipam.audit_handles import plain
from domain.ipam.block import PENDING_DELETION, Handle
from domain.ipam.kept import left_alone
from domain.ipam.release import Release
from ports.datastore import AffinityKey, BlockKey, Blocks, HandleKey, WorkloadEndpoints
from ports.errors import AlreadyExists, Conflict, Missing
from usecases.ipam.claim_block import BlockClaimConflict, block_behind, claim_block, release_claim
from usecases.ipam.count_handle import settle
from usecases.ipam.free_addresses import Chosen, cooldown_seconds, free_in_block, settled
from usecases.ipam.release_listed import release_listed
from usecases.ipam.set_aside import set_aside
from usecases.ipam.work import DELETE, LEAVE, guarded_write, rewrite, write_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.ipam.address import Cidr
    from domain.ipam.block import Block
    from domain.ipam.inventory import Finding
    from ports.datastore import Stored
    from usecases.ipam.set_aside import Keep
    from usecases.ipam.work import Delete, Leave, Work


def repair(work: Work, finding: Finding, keep: Keep | None = None, *, patient: bool) -> bool:
    """Whether it is put right now. False: somebody has been at it, so it is no leftover. Raises what the store does.

    `patient`: the finding is older than any call lasts. Else a count that is too high by some, but not by all, is
    left: a call at work may still count it down itself. IpamError if an address is somebody else's by now. `keep`
    makes copies of damaged records; without it they stay.
    """
    try:
        if finding.kind == UNREADABLE:
            return keep is not None and set_aside(work, finding, keep)
        if finding.kind in HANDLE_KINDS:
            return _handle(work, finding, patient=patient)
        return _REPAIRS[finding.kind](work, finding)
    except (Conflict, Missing, AlreadyExists, BlockClaimConflict):
        return False


def _handle(work: Work, finding: Finding, *, patient: bool) -> bool:
    """Make the handle count what the blocks hold."""
    key, name = HandleKey(finding.handle), plain(finding.handle)
    stored = work.datastore.get(key, work.deadline)
    if (stored.revision if stored else "none") != finding.mark:
        return False
    before = stored.record.blocks if stored else {}
    places = [*before]
    if finding.kind in (audit_handles.MISSING, audit_handles.TOO_LITTLE):
        blocks = [block.record for block in work.datastore.list(Blocks(), work.deadline)]
        places += [block.cidr for block in blocks if block.cidr not in before and block.held_by(name)]
    counts = {cidr: _held(work, name, cidr, before.get(cidr, 0), patient=patient) for cidr in places}
    counts = {cidr: count for cidr, count in counts.items() if count}
    if counts == before and counts:
        return False
    if stored is not None:
        write_once(work, key, stored, stored.record.replace(blocks=counts) if counts else DELETE)
    elif counts:
        write_once(work, key, None, Handle(counts))
    return True


def _held(work: Work, handle: str, cidr: Cidr, counted: int, *, patient: bool) -> int:
    """What to count for a block: how many addresses the handle has there. If it counts more, the block is rewritten."""
    block = work.datastore.get(BlockKey(cidr), work.deadline)
    held = len(block.record.held_by(handle)) if block else 0
    if block is None or counted <= held:
        return held
    if held and not patient:
        return counted
    rewrite(work, block, block.record)
    return held


def _drop_affinity(work: Work, finding: Finding) -> bool:
    """Delete an affinity that leads nowhere, if it still does."""
    key = _affinity_key(finding)
    block = work.datastore.get(BlockKey(key.cidr), work.deadline)
    if block is not None and block.record.affinity == str(key.owner):
        return False
    work.datastore.delete(key, finding.mark, work.deadline)
    return True


def _affinity_key(finding: Finding) -> AffinityKey:
    assert finding.owner is not None  # noqa: S101 - such findings name an owner and a block
    assert finding.block is not None  # noqa: S101 - likewise
    return AffinityKey(finding.owner, finding.block)


def _finish(work: Work, finding: Finding) -> bool:
    """End what stopped half-way: give an empty block up if that was the aim, else make its affinity confirmed."""
    key = _affinity_key(finding)
    affinity, block = work.datastore.fetch(key, BlockKey(key.cidr), deadline=work.deadline)
    if affinity is None or block is None or affinity.revision != finding.mark:
        return False
    if affinity.record.state == PENDING_DELETION and block.record.is_empty():
        return release_claim(work, key.owner, key.cidr, sequence=block.record.sequence)
    block_behind(work, affinity, block)
    return True


def _write_affinity(work: Work, finding: Finding) -> bool:
    key = _affinity_key(finding)
    block = work.datastore.get(BlockKey(key.cidr), work.deadline)
    if block is None or block.record.affinity != str(key.owner):
        return False
    work.datastore.upgrade_affinities(key.owner, work.deadline)  # it may be there, and only not be listed
    claim_block(work, key.owner, key.cidr)
    return True


def _give_back(work: Work, finding: Finding) -> bool:
    """Delete an empty block that no node has, or whose node is gone, and its affinity."""
    block = _collected(work, finding)
    if block is None or not block.record.is_empty():
        return False
    if finding.owner is None:
        work.datastore.delete(block.key, block.revision, work.deadline)
        return True
    if block.record.affinity != str(finding.owner):
        return False
    if release_claim(work, finding.owner, block.record.cidr, sequence=block.record.sequence):
        return True
    if work.datastore.get(_affinity_key(finding), work.deadline) is not None:
        return False
    work.datastore.delete(block.key, block.revision, work.deadline)
    return True


def _collected(work: Work, finding: Finding) -> Stored[Block] | None:
    """The block as allocation would see it: what has cooled down is free."""
    assert finding.block is not None  # noqa: S101 - such findings name a block
    block = work.datastore.get(BlockKey(finding.block), work.deadline)
    if block is None or block.record.is_empty():
        return block
    after = block.record.collect(work.clock.now(), cooldown_seconds(work))
    return rewrite(work, block, after) if after != block.record else block


def _find_lost(work: Work, finding: Finding) -> bool:
    assert finding.block is not None  # noqa: S101 - such findings name a block
    endpoints = work.datastore.list(WorkloadEndpoints(), work.deadline)
    used = frozenset([address for endpoint in endpoints for address in endpoint.record.addresses])

    def found(block: Block | None) -> Block | Delete | Leave:
        lost = lost_ordinals(block, used) if block else ()
        if block is None or not lost:
            return LEAVE
        return settled(block, block.replace(unallocated=(*block.unallocated, *lost)))

    guarded_write(work, BlockKey(finding.block), found)
    return True


def _release(work: Work, finding: Finding) -> bool:
    assert finding.address is not None  # noqa: S101 - such findings name an address
    sequence = int(finding.mark)
    outcome = release_listed(work, [Release(finding.address, finding.handle or None, sequence)])
    if outcome.error is not None:
        raise outcome.error
    return bool(outcome.released)


def _release_of_machine(work: Work, finding: Finding) -> bool:
    """Freed only while its owners are the very same: a machine of that name may have started again."""
    address, cidr = finding.address, finding.block
    assert address is not None  # noqa: S101 - such findings name an address and its block
    assert cidr is not None  # noqa: S101 - likewise

    def same(block: Block) -> tuple[int, ...]:
        ordinal = block.ordinal(address)
        is_same = ordinal in block.held_by(finding.handle) and machine_mark(block, ordinal) == finding.mark
        return (ordinal,) if is_same else ()

    freed = free_in_block(work, cidr, Chosen(same, cooldown_seconds(work)))
    settle(work, finding.handle, cidr)
    return bool(freed.holders)


def _leave_to_name(work: Work, finding: Finding) -> bool:
    """Its time begins, unless it is another allocation by now: a pod may have taken it, or left it."""
    address, cidr = finding.address, finding.block
    assert address is not None  # noqa: S101 - such findings name an address and its block
    assert cidr is not None  # noqa: S101 - likewise
    done = False

    def left(block: Block | None) -> Block | Leave:
        nonlocal done
        ordinal = block.ordinal(address) if block else 0
        holder = block.holder(ordinal) if block else None
        if block is None or holder is None or str(block.sequences.get(ordinal, 0)) != finding.mark:
            return LEAVE
        done = True
        return block.give(ordinal, left_alone(holder, work.clock.now())).replace(sequence=block.sequence + 1)

    guarded_write(work, BlockKey(cidr), left)
    return done


HANDLE_KINDS = frozenset(
    (audit_handles.ORPHAN, audit_handles.TOO_MUCH, audit_handles.TOO_LITTLE, audit_handles.MISSING)
)
_REPAIRS: dict[str, Callable[[Work, Finding], bool]] = {
    audit_blocks.NO_BLOCK: _drop_affinity,
    audit_blocks.FOREIGN: _drop_affinity,
    audit_blocks.DOUBLE: _drop_affinity,
    audit_blocks.UNFINISHED: _finish,
    audit_blocks.NO_AFFINITY: _write_affinity,
    audit_blocks.LOST: _find_lost,
    audit_addresses.LEAKED: _release,
    audit_addresses.VANISHED_NODE: _release,
    audit_addresses.VANISHED_MACHINE: _release_of_machine,
    audit_addresses.KEPT_WITHOUT_POD: _leave_to_name,
    audit_addresses.KEPT_TOO_LONG: _release,
    audit_blocks.EMPTY_UNOWNED: _give_back,
    audit_blocks.EMPTY_VANISHED: _give_back,
    audit_blocks.VANISHED: _give_back,
}
