"""Put something sound in the place of one of IPAM's own records that cannot be read.

What is there is copied first, then written over or deleted under the revision that was read: nobody ever finds the
place of a block empty, where a node would make a new one, and give addresses out twice.

Invariant: nothing is taken away of which there is no copy.
"""

from __future__ import annotations

from domain.ipam.block import CONFIRMED, Affinity, Handle
from domain.ipam.rebuild import rebuilt_block
from ports.datastore import AffinityKey, BlockKey, Blocks, HandleKey
from ports.errors import Refused
from usecases.check_ipam import take_inventory
from usecases.ipam.work import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from domain.ipam.block import Block
    from domain.ipam.inventory import Finding
    from ports.datastore import BadText
    from usecases.ipam.work import Leave, Work

    Keep: TypeAlias = Callable[[BadText], None]


def set_aside(work: Work, finding: Finding, keep: Keep) -> bool:
    """Whether it is done. False if the record has changed since the finding. `keep` makes the copy."""
    key = _key(finding)
    bad = next((damaged for damaged in work.datastore.unreadable(work.deadline) if damaged.key == key), None)
    if bad is None or bad.revision != finding.mark:
        return False
    if isinstance(key, BlockKey):
        return _block(work, bad, keep)
    record = _handle(work, key) if isinstance(key, HandleKey) else _affinity(work, key)
    keep(bad)
    if record is None:
        work.datastore.delete(bad.key, bad.revision, work.deadline)
    else:
        work.datastore.update(bad.key, record, bad.revision, work.deadline)
    return True


def _key(finding: Finding) -> BlockKey | HandleKey | AffinityKey:
    if finding.handle:
        return HandleKey(finding.handle)
    assert finding.block is not None  # noqa: S101 - such findings name one of the three
    return AffinityKey(finding.owner, finding.block) if finding.owner else BlockKey(finding.block)


def _block(work: Work, bad: BadText, keep: Keep) -> bool:
    """Handles count its addresses before it holds them, as everywhere."""
    assert bad.salvage is not None  # noqa: S101 - the finding is about a block that can be
    block = rebuilt_block(take_inventory(work), bad.salvage)
    for handle in dict.fromkeys(
        [attribute.holder for attribute in block.attributes if attribute.holder and not attribute.is_hosts_own]
    ):
        _count(work, handle, block)
    keep(bad)
    if block.affinity is None and block.is_empty():
        work.datastore.delete(bad.key, bad.revision, work.deadline)
    else:
        work.datastore.update(bad.key, block, bad.revision, work.deadline)
    return True


def _count(work: Work, handle: str, block: Block) -> None:
    held = len(block.held_by(handle))

    def enough(found: Handle | None) -> Handle | Leave:
        counts = dict(found.blocks) if found else {}
        if counts.get(block.cidr, 0) >= held:
            return LEAVE
        counts[block.cidr] = held
        return found.replace(blocks=counts) if found else Handle(counts)

    try:
        guarded_write(work, HandleKey(handle), enough)
    except Refused as error:  # it is damaged as well, and will be written anew from the blocks
        work.log.warning("Cannot count an address for a handle", handle=handle, error=error)


def _handle(work: Work, key: HandleKey) -> Handle | None:
    """What the blocks hold for it."""
    blocks = [block.record for block in work.datastore.list(Blocks(), work.deadline)]
    counts = {block.cidr: len(block.held_by(key.handle)) for block in blocks if block.held_by(key.handle)}
    return Handle(counts) if counts else None


def _affinity(work: Work, key: AffinityKey) -> Affinity | None:
    """Confirmed if the block is the owner's."""
    block = work.datastore.get(BlockKey(key.cidr), work.deadline)
    return Affinity(CONFIRMED) if block is not None and block.record.affinity == str(key.owner) else None
