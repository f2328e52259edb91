"""Give a holder one particular address (spec: ipam 10).

Invariant: an address that anybody holds, this very handle included, is refused; so is one that is cooling down.
"""

from __future__ import annotations

from domain.ipam.address import Address
from domain.ipam.affinity import Owner
from domain.ipam.config import AllocationConfig
from domain.ipam.errors import IpamError, StillContended
from domain.ipam.pools import enabled_pools, pool_of
from domain.ipam.request import AssignRequest, Taken
from domain.usecases.steps.claim_block import NotOurs, claim_block, rewrite
from domain.usecases.steps.count_handle import decrement, increment
from domain.usecases.steps.work import MAX_TRIES
from ports.datastore import AllocationConfigKey, BlockKey, IPPools
from ports.errors import Conflict, Missing, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.block import Block
    from domain.usecases.steps.work import Work
    from ports.datastore import Stored

NOT_IN_A_POOL = "The provided IP address is not in a configured pool\n"


def assign_specific(work: Work, request: AssignRequest, address: Address) -> Taken:
    """The address, taken. IpamError says why it cannot be had."""
    config, pools = work.datastore.fetch(AllocationConfigKey(), IPPools(), deadline=work.deadline)
    pool = pool_of(enabled_pools([one.record for one in pools], address.version), address)
    if pool is None:
        raise IpamError(NOT_IN_A_POOL)
    if request.use and request.use not in pool.uses:
        raise IpamError(
            f'IP address {address} is in IP pool "{pool.metadata.name}", which is not allowed for use '
            f'"{request.use}" (allowedUses: [{" ".join(pool.uses)}])'
        )
    cidr = address.host_cidr.replace(length=pool.block_length).network
    settings = config.record if config else AllocationConfig()
    for _ in range(MAX_TRIES):
        try:
            block = work.datastore.get(BlockKey(cidr), work.deadline) or claim_block(work, request.owner, cidr)
            return _take(work, request, settings, block, block.record.ordinal(address))
        except (Conflict, Missing, NotOurs):
            continue
    raise StillContended(BlockKey(cidr))


def _take(work: Work, request: AssignRequest, config: AllocationConfig, stored: Stored[Block], ordinal: int) -> Taken:
    """One try; `Conflict` or `Missing` when the block changed under it."""
    block = stored.record.collect(work.clock.now(), config.cooldown_seconds)
    if config.strict_affinity:
        _require_affinity(block, request.owner)
    if block.holder(ordinal) is not None:
        raise IpamError(
            f"resource already exists: {block.cidr.at(ordinal)} with error: Address already assigned in block"
        )
    increment(work, request.handle, block.cidr, 1, request.max_per_handle)
    try:
        written = rewrite(work, stored, block.take((ordinal,), request.attribute))
    except (Conflict, Missing, Unavailable):
        found = work.datastore.get(stored.key, work.deadline)
        if found is not None and found.record.holder(ordinal) == request.attribute:
            return Taken(block.cidr, ordinal, found.record.sequences[ordinal])
        decrement(work, request.handle, block.cidr, 1)
        raise
    return Taken(block.cidr, ordinal, written.record.sequences[ordinal])


def _require_affinity(block: Block, owner: Owner) -> None:
    if block.affinity is None:
        raise IpamError(f"Attempt to assign from block {block.cidr} with no affinity")
    if block.affinity != str(owner):
        raise IpamError("Block host affinity does not match")
