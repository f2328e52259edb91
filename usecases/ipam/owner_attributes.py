"""Change who uses an address: the owner attributes of an allocation, in one guarded write (spec: ipam 14.5).

Invariant: only the handle that has the address may change its owners, and expectations are checked against exactly the
record that is written over.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from domain.ipam.owner_update import ANYTHING, require_sense, update_owners
from ports.datastore import BlockKey, IPPools
from ports.errors import Missing
from usecases.ipam.locate_block import BlockLocator
from usecases.ipam.work import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address
    from domain.ipam.block import Block
    from domain.ipam.owner_update import Expectation, OwnerUpdate
    from usecases.ipam.work import Leave, Work


def set_owner_attributes(
    work: Work, address: Address, handle: str, update: OwnerUpdate | None, expected: Expectation = ANYTHING
) -> None:
    """Set or clear the two owners of an address, if they are what is expected.

    Raises StaleRequest if they are not, Missing if nobody has the address, IpamError if another handle has it or the
    request contradicts itself. Nothing is changed then.
    """
    wanted = require_sense(update, expected)
    pools = [one.record for one in work.datastore.list(IPPools(), work.deadline)]
    cidr = BlockLocator(work, pools).block_of(address)
    if cidr is None:
        raise Missing(address, "it is in no configured pool")

    def changed(found: Block | None) -> Block | Leave:
        if found is None:
            raise Missing(BlockKey(cidr))
        ordinal = found.ordinal(address)
        holder = found.holder(ordinal)
        if holder is None:
            raise Missing(address, "IP is unassigned")
        if holder.holder != handle:
            raise IpamError(f"IP {address} is not assigned to handle {handle}")
        block = update_owners(found, ordinal, wanted, expected)
        return LEAVE if block == found else block.replace(sequence=found.sequence + 1)

    guarded_write(work, BlockKey(cidr), changed)
