"""Keep a handle's counts: up before a block is written, down after it.

A death between the two leaves a handle that counts too much, never too little, so a DEL that follows the handle
misses no block that holds one of its addresses.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from domain.ipam.handle import Handle
from domain.usecases.steps.guarded_write import DELETE, LEAVE, guarded_write, write_once
from ports.datastore import HandleKey
from ports.errors import AlreadyExists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.usecases.steps.guarded_write import Delete, Leave
    from domain.usecases.steps.work import Work
    from ports.datastore import Stored


def increment(work: Work, handle: str, block: Cidr, count: int, limit: int = 0) -> None:
    """Count `count` more addresses of a block. IpamError if the handle would hold more than `limit` of that version.

    The handle of a new container does not exist, so it is created without reading first; only if that fails is it read.
    """
    key = HandleKey(handle)

    def more(stored: Handle | None) -> Handle:
        counts = dict(stored.blocks) if stored else {}
        held = sum(number for cidr, number in counts.items() if cidr.version == block.version)
        if limit and held + count > limit:
            raise IpamError(
                f"handle {handle} already has {held} allocation(s), cannot allocate more (maxAlloc={limit})"
            )
        counts[block] = counts.get(block, 0) + count
        return stored.replace(blocks=counts) if stored else Handle(counts)

    try:
        write_once(work, key, None, more(None))
    except AlreadyExists:
        guarded_write(work, key, more)


def decrement(
    work: Work, handle: str, block: Cidr, count: int, stored: Stored[Handle] | None = None
) -> Stored[Handle] | None:
    """Count `count` addresses of a block less, at most down to none; a handle without counts is deleted.

    A count that would go below zero means that somebody else has already corrected it. Returns the handle as it is
    stored afterwards; `stored` is the handle as last read, where the caller knows it.
    """

    def fewer(found: Handle | None) -> Handle | Delete | Leave:
        if found is None or block not in found.blocks:
            return LEAVE
        counts = dict(found.blocks)
        counts[block] -= count
        if counts[block] <= 0:
            del counts[block]
        return found.replace(blocks=counts) if counts else DELETE

    return guarded_write(work, HandleKey(handle), fewer, stored)
