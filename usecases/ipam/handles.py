"""Look up which addresses a handle has, and who has an address (spec: ipam 11, 12.3).

The handle is only an index: what it has is what the blocks that it names say.
"""

from __future__ import annotations

from domain.ipam.errors import InCooldown
from ports.datastore import BlockKey, HandleKey, IPPools
from ports.errors import Missing
from usecases.ipam.locate_block import BlockLocator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address
    from domain.ipam.block import Attribute
    from usecases.ipam.work import Work


def addresses_of_handle(work: Work, handle: str) -> tuple[Address, ...]:
    """All addresses that a handle has, block by block. Missing if there is no such handle."""
    stored = work.datastore.get(HandleKey(handle), work.deadline)
    if stored is None:
        raise Missing(HandleKey(handle))
    found: list[Address] = []
    for cidr in stored.record.blocks:
        block = work.datastore.get(BlockKey(cidr), work.deadline)
        if block is not None:
            found += [cidr.at(ordinal) for ordinal in block.record.held_by(handle)]
    return tuple(found)


def holder_of_address(work: Work, address: Address) -> Attribute:
    """Who has an address: handle, active and alternate owner. Missing if nobody has; InCooldown if nobody has any more.

    An address whose pool is disabled or deleted is found all the same.
    """
    pools = [one.record for one in work.datastore.list(IPPools(), work.deadline)]
    cidr = BlockLocator(work, pools).block_of(address)
    if cidr is None:
        raise Missing(address, "it is in no configured pool")
    block = work.datastore.get(BlockKey(cidr), work.deadline)
    if block is None:
        raise Missing(BlockKey(cidr))
    holder = block.record.holder(block.record.ordinal(address))
    if holder is None:
        raise Missing(address, "IP is unassigned")
    if holder.released_at:
        raise InCooldown(address)
    return holder
