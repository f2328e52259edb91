"""Make a block ours: affinity `pending`, block created, affinity `confirmed` — in that order.

The affinity comes first so that a death in between leaves a lead to the block; it is confirmed last because routing
trusts only confirmed ones. The block's own `affinity` field decides who won a race.

Giving up goes the other way: affinity `pendingDeletion`, block deleted or detached, affinity deleted. What others have
left of either ends between block and confirmation (`leads`: the affinities to the block, None if nobody has looked).

Invariant: no affinity is confirmed unless the block names the same owner.
"""

from __future__ import annotations

from domain.ipam.block import CONFIRMED, PENDING, PENDING_DELETION, Affinity, new_block
from domain.ipam.errors import IpamError
from domain.moment import rfc3339
from ports.datastore import AffinityKey, BlockKey
from ports.errors import AlreadyExists, Conflict, Expired, Missing, PortError, Unavailable
from usecases.ipam.work import LEAVE, guarded_write, rewrite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from domain.ipam.address import Cidr
    from domain.ipam.block import Block, HostReservedAttr, Owner
    from ports.datastore import Stored
    from usecases.ipam.work import Leave, Work

    R = TypeVar("R")
    Leads = tuple[Stored[Affinity], ...]


class BlockClaimConflict(Exception):
    """Somebody else owns the block. Text: `<block> already claimed by host:node2`."""


class ClaimOvertaken(BlockClaimConflict):
    """The block or its affinity changed while we claimed it; trying again may help. Text: `update conflict: <key>`."""

    def __init__(self, key: object) -> None:
        super().__init__(f"update conflict: {key}")


def _claimed_elsewhere(block: Block) -> BlockClaimConflict:
    return BlockClaimConflict(f"{block.cidr} already claimed by {block.affinity or 'nobody'}")


def claim_block(
    work: Work, owner: Owner, cidr: Cidr, host_reserved: HostReservedAttr | None = None, leads: Leads | None = None
) -> Stored[Block]:
    """Claim a block that nobody had a moment ago. `BlockClaimConflict` if somebody was faster.

    `host_reserved` is what the host keeps for itself in the block if it is made here.
    """
    affinity = _pending(work, AffinityKey(owner, cidr))
    return create_block(work, affinity, host_reserved, leads)


def _pending(work: Work, key: AffinityKey) -> Stored[Affinity]:
    """The affinity as pending, or as another process of our node has already confirmed it."""

    def pending(found: Affinity | None) -> Affinity | Leave:
        return _pending_or_confirmed(found or Affinity(""))

    try:
        return work.datastore.create(key, Affinity(PENDING), work.deadline)
    except AlreadyExists:
        return _kept(key, guarded_write(work, key, pending))


def _kept(key: object, stored: Stored[Affinity] | None) -> Stored[Affinity]:
    if stored is None:
        raise ClaimOvertaken(key)
    return stored


def create_block(
    work: Work, affinity: Stored[Affinity], host_reserved: HostReservedAttr | None = None, leads: Leads | None = None
) -> Stored[Block]:
    """Create the block that a pending affinity promises, and confirm the affinity."""
    key = AffinityKey.of(affinity)
    now = work.clock.now()
    try:
        made = new_block(key.cidr, key.owner, rfc3339(now), now, host_reserved)
        block = work.datastore.create(BlockKey(key.cidr), made, work.deadline)
    except AlreadyExists:
        found = work.datastore.get(BlockKey(key.cidr), work.deadline)
        if found is None:
            raise ClaimOvertaken(BlockKey(key.cidr)) from None
        if found.record.affinity != str(key.owner):
            drop_affinity(work, affinity)
            raise _claimed_elsewhere(found.record) from None
        block = found
    _end_stale_leads(work, key, leads)
    confirm(work, affinity)
    return block


def _end_stale_leads(work: Work, key: AffinityKey, leads: Leads | None) -> None:
    """Most often there are none, and then nothing of this is loaded."""
    if leads is None and work.datastore.lists_in_one_go:
        from usecases.ipam.stale_leads import read_leads

        leads = read_leads(work, key.cidr)
    if leads:
        from usecases.ipam.stale_leads import end_stale_leads

        end_stale_leads(work, key.owner, leads)


def confirm(work: Work, affinity: Stored[Affinity]) -> None:
    """Write `confirmed`, or see that another process of our node has. ClaimOvertaken if it is being dropped."""
    if affinity.record.state == CONFIRMED:
        return
    try:
        work.datastore.update(affinity.key, affinity.record.replace(state=CONFIRMED), affinity.revision, work.deadline)
    except (Conflict, Missing):
        again = work.datastore.get(affinity.key, work.deadline)
        if again is None or again.record.state != CONFIRMED:
            raise ClaimOvertaken(affinity.key) from None


def drop_affinity(work: Work, affinity: Stored[Affinity]) -> None:
    """Delete an affinity that leads to somebody else's block. Losing a race here is fine: whoever won saw more."""
    try:
        work.datastore.delete(affinity.key, affinity.revision, work.deadline)
    except PortError as error:
        work.log.warning("Could not delete a stale block affinity", affinity=affinity.key, error=error)


def block_behind(
    work: Work, affinity: Stored[Affinity], block: Stored[Block] | None, host_reserved: HostReservedAttr | None = None
) -> Stored[Block]:
    """The block an affinity of ours leads to, claimed or confirmed as needed. BlockClaimConflict if it is not ours."""
    key = AffinityKey.of(affinity)
    if block is None:
        return create_block(work, _kept(key, guarded_write(work, key, _back_to_pending, affinity)), host_reserved)
    if affinity.record.is_settled(key.owner, block.record):
        return block
    if block.record.affinity != str(key.owner):
        drop_affinity(work, affinity)
        raise _claimed_elsewhere(block.record)
    return _reconfirm(work, affinity, block)


def _reconfirm(work: Work, affinity: Stored[Affinity], block: Stored[Block]) -> Stored[Block]:
    """Finish a claim that stopped half-way, or take back a release that did.

    The block is rewritten unchanged, so that a releaser that has read it loses its race. There is nothing to finish
    where another process of our node has been faster: what is confirmed stays so, as routing trusts in it.
    """
    pending = _kept(affinity.key, guarded_write(work, affinity.key, _pending_or_confirmed, affinity))
    if pending.record.state == CONFIRMED:
        return block
    try:
        block = rewrite(work, block, block.record)
    except (Conflict, Missing):
        raise ClaimOvertaken(block.key) from None
    except Unavailable:  # only the answer may have been lost
        found = work.datastore.get(block.key, work.deadline)
        if found is None or found.record != block.record.replace(sequence=block.record.sequence + 1):
            raise
        block = found
    _end_stale_leads(work, AffinityKey.of(pending), None)
    confirm(work, pending)
    return block


def _back_to_pending(found: Affinity | None) -> Affinity | Leave:
    return LEAVE if found is None else found.replace(state=PENDING)


def _pending_or_confirmed(found: Affinity | None) -> Affinity | Leave:
    return LEAVE if found is None or found.state == CONFIRMED else found.replace(state=PENDING)


def give_up_block(work: Work, owner: Owner, cidr: Cidr, *, must_be_empty: bool, sequence: int | None = None) -> None:
    """Undo a claim: an empty block is deleted, another one left without an owner to those who hold its addresses.

    IpamError if it is not empty though it must be, or if (with `sequence`) it has changed; Missing without affinity or
    block; BlockClaimConflict for somebody else's block, whose stale affinity is then deleted; Conflict if either record
    changes meanwhile, which leaves the affinity `pendingDeletion` at most: the owner's next allocation confirms it.
    """
    if not owner.name:
        raise IpamError("Hostname must be specified to release block affinity")
    affinity, block = work.datastore.fetch(AffinityKey(owner, cidr), BlockKey(cidr), deadline=work.deadline)
    if affinity is None:
        raise Missing(AffinityKey(owner, cidr))
    if block is None:
        raise Missing(BlockKey(cidr))
    if sequence not in (None, block.record.sequence):
        raise IpamError("IPAM block updated since we last read it")
    if block.record.affinity not in (None, str(owner)):
        drop_affinity(work, affinity)
        raise _claimed_elsewhere(block.record)
    if must_be_empty and not block.record.is_empty():
        raise IpamError(f"block '{cidr}' is not empty")
    leaving = affinity.record.replace(state=PENDING_DELETION)
    marked = work.datastore.update(affinity.key, leaving, affinity.revision, work.deadline)
    if block.record.is_empty():
        _delete(work, block)
    else:
        rewrite(work, block, block.record.replace(affinity=None, claimed_at=None))
    _delete(work, marked)


def _delete(work: Work, stored: Stored[R]) -> None:
    try:
        work.datastore.delete(stored.key, stored.revision, work.deadline)
    except Missing:
        return


def release_claim(work: Work, owner: Owner, cidr: Cidr, *, sequence: int | None = None) -> bool:
    """Give up a block if it is empty, the owner's, and (with `sequence`) unchanged. Says whether it is gone.

    Nobody depends on it, so whatever fails is left for another time; only the end of the call's time is raised.
    """
    try:
        give_up_block(work, owner, cidr, must_be_empty=True, sequence=sequence)
    except (BlockClaimConflict, IpamError, Conflict, Missing):
        return False
    except Expired:
        raise
    except PortError as error:
        work.log.warning("Could not give up an empty block", block=cidr, error=error)
        return False
    return True
