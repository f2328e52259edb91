"""Make a block ours: affinity `pending`, block created, affinity `confirmed` — in that order.

The affinity comes first so that a death in between leaves a lead to the block; it is confirmed last because routing
trusts only confirmed ones. The block's own `affinity` field decides who won a race.

Invariant: no affinity is confirmed unless the block names the same owner.
"""

from __future__ import annotations

from domain.ipam.affinity import CONFIRMED, PENDING, Affinity
from domain.ipam.block import new_block
from domain.moment import rfc3339
from domain.usecases.steps.guarded_write import LEAVE, guarded_write
from ports.datastore import AffinityKey, BlockKey
from ports.errors import AlreadyExists, Conflict, Missing, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.affinity import Owner
    from domain.ipam.block import Block
    from domain.usecases.steps.guarded_write import Leave
    from domain.usecases.steps.work import Work
    from ports.datastore import Stored


class NotOurs(Exception):
    """Somebody else owns the block, or took it while we claimed it."""


def claim_block(work: Work, owner: Owner, cidr: Cidr) -> Stored[Block]:
    """Claim a block that nobody had a moment ago. `NotOurs` if somebody was faster."""
    affinity = _pending(work, AffinityKey(owner, cidr))
    return create_block(work, affinity)


def _pending(work: Work, key: AffinityKey) -> Stored[Affinity]:
    """The affinity as pending, or as another process of our node has already confirmed it."""

    def pending(found: Affinity | None) -> Affinity | Leave:
        if found is not None and found.state == CONFIRMED:
            return LEAVE
        return (found or Affinity("")).replace(state=PENDING)

    try:
        return work.datastore.create(key, Affinity(PENDING), work.deadline)
    except AlreadyExists:
        return _kept(guarded_write(work, key, pending))


def _kept(stored: Stored[Affinity] | None) -> Stored[Affinity]:
    if stored is None:
        raise NotOurs
    return stored


def create_block(work: Work, affinity: Stored[Affinity]) -> Stored[Block]:
    """Create the block that a pending affinity promises, and confirm the affinity."""
    key = affinity.key
    assert isinstance(key, AffinityKey)  # noqa: S101 - narrows the type
    now = work.clock.now()
    try:
        block = work.datastore.create(
            BlockKey(key.cidr), new_block(key.cidr, key.owner, rfc3339(now), now), work.deadline
        )
    except AlreadyExists:
        found = work.datastore.get(BlockKey(key.cidr), work.deadline)
        if found is None:
            raise NotOurs from None
        if found.record.affinity != str(key.owner):
            drop_affinity(work, affinity)
            raise NotOurs from None
        block = found
    confirm(work, affinity)
    return block


def confirm(work: Work, affinity: Stored[Affinity]) -> None:
    """Write `confirmed`, or see that another process of our node has. `NotOurs` if the affinity is being dropped."""
    if affinity.record.state == CONFIRMED:
        return
    try:
        work.datastore.update(affinity.key, affinity.record.replace(state=CONFIRMED), affinity.revision, work.deadline)
    except (Conflict, Missing):
        again = work.datastore.get(affinity.key, work.deadline)
        if again is None or again.record.state != CONFIRMED:
            raise NotOurs from None


def drop_affinity(work: Work, affinity: Stored[Affinity]) -> None:
    """Delete an affinity that leads to somebody else's block. Losing a race here is fine: whoever won saw more."""
    try:
        work.datastore.delete(affinity.key, affinity.revision, work.deadline)
    except PortError as error:
        work.log.warning("Could not delete a stale block affinity", affinity=affinity.key, error=error)


def block_behind(work: Work, affinity: Stored[Affinity], block: Stored[Block] | None) -> Stored[Block]:
    """The block an affinity of ours leads to, claimed or confirmed as needed. `NotOurs` when it is not ours."""
    key = affinity.key
    assert isinstance(key, AffinityKey)  # noqa: S101 - narrows the type
    if block is None:
        return create_block(work, _kept(guarded_write(work, key, _back_to_pending, affinity)))
    if block.record.affinity != str(key.owner):
        drop_affinity(work, affinity)
        raise NotOurs
    if affinity.record.state in (CONFIRMED, ""):
        return block
    return _reconfirm(work, affinity, block)


def _reconfirm(work: Work, affinity: Stored[Affinity], block: Stored[Block]) -> Stored[Block]:
    """Finish a claim that stopped half-way, or take back a release that did.

    The block is rewritten unchanged, so that a releaser that has read it loses its race.
    """
    pending = _kept(guarded_write(work, affinity.key, _back_to_pending, affinity))
    try:
        block = rewrite(work, block, block.record)
    except (Conflict, Missing):
        raise NotOurs from None
    confirm(work, pending)
    return block


def _back_to_pending(found: Affinity | None) -> Affinity | Leave:
    return LEAVE if found is None else found.replace(state=PENDING)


def rewrite(work: Work, stored: Stored[Block], record: Block) -> Stored[Block]:
    """Update a block; every update raises its sequence number by one."""
    written = record.replace(sequence=stored.record.sequence + 1)
    return work.datastore.update(stored.key, written, stored.revision, work.deadline)


def release_claim(work: Work, owner: Owner, cidr: Cidr, *, sequence: int | None = None) -> bool:
    """Give up an empty block: affinity `pendingDeletion`, block deleted, affinity deleted. Says whether it is gone.

    Nothing happens when the block is not empty, is not the owner's, or (with `sequence`) has changed.
    """
    affinity, block = work.datastore.fetch(AffinityKey(owner, cidr), BlockKey(cidr), deadline=work.deadline)
    if affinity is None or block is None:
        return False
    if block.record.affinity not in (None, str(owner)):
        drop_affinity(work, affinity)
        return False
    if not block.record.is_empty() or sequence not in (None, block.record.sequence):
        return False
    try:
        marked = work.datastore.update(
            affinity.key, affinity.record.replace(state="pendingDeletion"), affinity.revision, work.deadline
        )
        work.datastore.delete(block.key, block.revision, work.deadline)
    except (Conflict, Missing):
        return False
    drop_affinity(work, marked)
    return True
