"""Give a holder one particular address (spec: ipam 10).

Invariant: an address that anybody holds, this very handle included, is refused; so is one that is cooling down. The
one exception: an earlier sandbox of the same pod on the same node, whose address moves to the new one.
"""

from __future__ import annotations

from domain.ipam.address import Address
from domain.ipam.affinity import Owner
from domain.ipam.config import AllocationConfig
from domain.ipam.errors import AddressTaken, IpamError, StillContended
from domain.ipam.pools import enabled_pools, pool_of, require_block_size
from domain.ipam.request import AssignRequest, Taken
from domain.usecases.steps.claim_block import NotOurs, claim_block, rewrite
from domain.usecases.steps.count_handle import decrement, increment
from domain.usecases.steps.work import MAX_TRIES
from ports.datastore import AllocationConfigKey, BlockKey, IPPools
from ports.errors import Conflict, Missing, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.block import Attribute, Block
    from domain.usecases.steps.work import Work
    from ports.datastore import Stored

VM_MARK = ".vmi."  # in the handle of a virtual machine, which moves by rules of its own
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
    require_block_size(pool)
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
    holder = block.holder(ordinal)
    if holder is not None and holder.holder == request.handle and request.max_per_handle:
        return Taken(block.cidr, ordinal, block.sequences.get(ordinal, 0))
    if holder is not None and not _may_take_over(holder, request):
        raise _refusal(block.cidr.at(ordinal), holder)
    increment(work, request.handle, block.cidr, 1, request.max_per_handle)
    try:
        written = rewrite(work, stored, block.give(ordinal, request.attribute))
    except (Conflict, Missing, Unavailable):
        found = work.datastore.get(stored.key, work.deadline)
        if found is None or found.record.holder(ordinal) != request.attribute:
            decrement(work, request.handle, block.cidr, 1)
            raise
        written = found
    if holder is not None and holder.holder:
        work.log.info(
            "Took an address over from the pod's earlier sandbox", address=block.cidr.at(ordinal), was=holder.holder
        )
        decrement(work, holder.holder, block.cidr, 1)
    return Taken(block.cidr, ordinal, written.record.sequences[ordinal])


def _may_take_over(holder: Attribute, request: AssignRequest) -> bool:
    """Whether the address is held by an earlier sandbox of the same pod on the same node, whose DEL never came.

    That sandbox's late DEL finds nothing under its own handle, so it cannot free the address from under us.
    """
    network = request.handle.rpartition(".")[0] + "."
    pod = request.secondary.get("pod")
    same = all(holder.secondary.get(name) == request.secondary.get(name) for name in ("pod", "namespace", "node"))
    earlier = (holder.holder or "").startswith(network) and holder.holder != request.handle
    return bool(pod) and same and earlier and not holder.released_at and VM_MARK not in (holder.holder or "")


def _refusal(address: Address, holder: Attribute) -> IpamError:
    if holder.released_at:
        return IpamError(f"address {address} is in cooldown", details=f"it was released at {holder.released_at}")
    pod = holder.secondary.get("pod")
    where = f"pod {holder.secondary.get('namespace')}/{pod} on node {holder.secondary.get('node')}"
    return AddressTaken(address, f"held by {where}, handle {holder.handle}" if pod else "")


def _require_affinity(block: Block, owner: Owner) -> None:
    if block.affinity is None:
        raise IpamError(f"Attempt to assign from block {block.cidr} with no affinity")
    if block.affinity != str(owner):
        raise IpamError("Block host affinity does not match")
