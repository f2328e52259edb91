"""Give a holder one particular address.

Invariant: an address that anybody holds, this very handle included, is refused; so is one that is cooling down. The
one exception: an earlier sandbox of the same pod on the same node, whose address moves to the new one.
"""

from __future__ import annotations

from domain.cni.errors import INVALID_CONFIG
from domain.ipam.address import Address
from domain.ipam.block import MACHINE_MARK, Owner
from domain.ipam.errors import AddressTaken, HandleFull, IpamError
from domain.ipam.kept import KEPT_AS, is_unused
from domain.ipam.pools import AllocationConfig, enabled_pools, pool_of, require_block_size
from domain.ipam.request import Allocation, AssignRequest
from domain.value import Value
from ports.datastore import AllocationConfigKey, BlockKey, HandleKey, IPPools
from ports.errors import Conflict, Missing, PortError, Refused, Unavailable
from usecases.ipam.claim_block import BlockClaimConflict, claim_block
from usecases.ipam.count_handle import increment, lower, settle, take_back
from usecases.ipam.free_addresses import free_allocation
from usecases.ipam.held_before import adopt, counted_in, held_in, settle_all
from usecases.ipam.work import LostRace, rewrite, until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.block import Attribute, Block, Handle
    from domain.ipam.pools import Pool
    from ports.datastore import Stored
    from ports.node import ThisNode
    from usecases.calls.safeguards import Undo
    from usecases.ipam.work import Work

UPGRADED = "/var/run/calico/cni/ipam_upgraded"
NOT_IN_A_POOL = "The provided IP address is not in a configured pool\n"


def assign_specific(work: Work, request: AssignRequest, address: Address, undo: Undo) -> Allocation:
    """The address, taken and registered for undo. IpamError says why it cannot be had."""
    config, pools = work.datastore.fetch(AllocationConfigKey(), IPPools(), deadline=work.deadline)
    pool = pool_of(enabled_pools([one.record for one in pools], address.version), address)
    if pool is None:
        from domain.ipam.pool_reasons import outside  # few calls are refused

        raise IpamError(NOT_IN_A_POOL, details=outside([pool.record for pool in pools], address))
    if request.use and request.use not in pool.uses:
        raise IpamError(
            f'IP address {address} is in IP pool "{pool.metadata.name}", which is not allowed for use '
            f'"{request.use}" (allowedUses: [{" ".join(pool.uses)}])'
        )
    require_block_size(pool)
    _require_room(pool, request, address.version)
    cidr = address.host_cidr.replace(length=pool.block_length).network
    asked = _Asked(request, config.record if config else AllocationConfig(), undo)

    def take() -> Allocation:
        try:
            block = work.datastore.get(BlockKey(cidr), work.deadline)
            block = block or claim_block(work, request.owner, cidr, request.host_reserved.get(address.version))
            return _take(work, asked, block, block.record.ordinal(address))
        except HandleFull:
            _require_leftovers(work, request, address)
            raise LostRace from None

    return until_won(BlockKey(cidr), take, Conflict, Missing, BlockClaimConflict)


def _take(work: Work, asked: _Asked, stored: Stored[Block], ordinal: int) -> Allocation:
    """One try; `Conflict` or `Missing` when the block changed under it."""
    request = asked.request
    block = stored.record.collect(work.clock.now(), asked.config.cooldown_seconds)
    if asked.config.strict_affinity:
        _require_affinity(block, request.owner)
    holder = block.holder(ordinal)
    if holder is not None and holder.holder == request.handle and request.max_per_handle:
        return _adopted(work, request.handle, Allocation(block.cidr, ordinal, block.sequences.get(ordinal, 0)))
    if holder is not None and not _may_take_over(holder, request):
        raise _refusal(block.cidr.at(ordinal), holder)
    former = work.datastore.get(HandleKey(holder.holder), work.deadline) if holder and holder.holder else None
    handle = increment(work, request.handle, block.cidr, 1, request.max_per_handle)
    try:
        written = rewrite(work, stored, block.give(ordinal, request.attribute))
    except (Conflict, Missing, Unavailable):
        found = work.datastore.get(stored.key, work.deadline)
        if found is None or found.record.holder(ordinal) != request.attribute:
            take_back(work, handle, block.cidr, 1, found)
            raise
        written = found
    allocation = Allocation(block.cidr, ordinal, block.sequence)
    asked.undo.register(
        f"assign {allocation.address}",
        lambda deadline: free_allocation(work.until(deadline), request.handle, allocation, request.attribute),
    )
    if holder is not None and holder.holder:
        _count_down_former(work, former, holder.holder, written.record)
    return allocation


class _Asked(Value):
    """What one call is about."""

    request: AssignRequest
    config: AllocationConfig
    undo: Undo


def _require_room(pool: Pool, request: AssignRequest, version: int) -> None:
    """The address's block may have to be made, with what the host keeps for itself."""
    if pool.block_length > request.longest_block(version):
        raise IpamError(
            f"IPPool {pool.metadata.name} has blocks of /{pool.block_length}, "
            "too small for the addresses that this host keeps for itself in each",
            code=INVALID_CONFIG,
        )


def _adopted(work: Work, handle: str, allocation: Allocation) -> Allocation:
    """The address that the handle has had before; `Conflict` if it loses it meanwhile."""
    again = adopt(work, handle, allocation)
    if again is None:
        raise Conflict(BlockKey(allocation.block))
    return again


def _require_leftovers(work: Work, request: AssignRequest, address: Address) -> None:
    """Settle what a handle counts without holding it; IpamError if it does hold as many addresses as it may."""
    counts = counted_in(work, request.handle, address.version)
    held = held_in(work, request.handle, counts)
    if sum(counts.values()) < request.max_per_handle or settle_all(work, request.handle, counts, held):
        return
    raise IpamError(
        f"handle {request.handle} already has IP(s) allocated, cannot assign additional IP {address} "
        f"(maxAllocPerIPVersion={request.max_per_handle})",
        details=f"it has {', '.join([str(allocation.address) for allocation in held])}",
    )


def _count_down_former(work: Work, former: Stored[Handle] | None, handle: str, block: Block) -> None:
    work.log.info("Took an address over from the pod's earlier sandbox", block=block.cidr, was=handle)
    try:
        lower(work, former, block.cidr, len(block.held_by(handle)))
    except (Conflict, Missing):
        settle(work, handle, block.cidr)


def _may_take_over(holder: Attribute, request: AssignRequest) -> bool:
    """Whether the address is held by an earlier sandbox of the same pod on the same node, whose DEL never came.

    That sandbox's late DEL finds nothing under its own handle, so it cannot free the address from under us. An address
    that is kept for the pod's own name, and that nobody has, is its own to ask for, too.
    """
    if is_unused(holder):
        return holder.secondary[KEPT_AS] == f"{request.secondary.get('namespace')}/{request.secondary.get('pod')}"
    network = request.handle.rpartition(".")[0] + "."
    pod = request.secondary.get("pod")
    same = all(holder.secondary.get(name) == request.secondary.get(name) for name in ("pod", "namespace", "node"))
    earlier = (holder.holder or "").startswith(network) and holder.holder != request.handle
    return bool(pod) and same and earlier and not holder.released_at and MACHINE_MARK not in (holder.holder or "")


def _refusal(address: Address, holder: Attribute) -> IpamError:
    if holder.released_at:
        return IpamError(f"address {address} is in cooldown", details=f"it was released at {holder.released_at}")
    if is_unused(holder):
        kept = (
            f"kept for {holder.secondary[KEPT_AS]}; `tortie ipam release --kept {holder.secondary[KEPT_AS]}` frees it"
        )
        return AddressTaken(address, kept)
    pod = holder.secondary.get("pod")
    where = f"pod {holder.secondary.get('namespace')}/{pod} on node {holder.secondary.get('node')}"
    return AddressTaken(address, f"held by {where}, handle {holder.handle}" if pod else "")


def _require_affinity(block: Block, owner: Owner) -> None:
    if block.affinity is None:
        raise IpamError(f"Attempt to assign from block {block.cidr} with no affinity")
    if block.affinity != str(owner):
        raise IpamError("Block host affinity does not match")


def upgrade_host(work: Work, node: ThisNode, owner: Owner) -> None:
    """Once per boot, before a particular address is assigned: bring the node's old affinity records up to date.

    Old versions stored affinities without the labels by which they are listed today. The file tells all plugins of a
    host that it has been done, so it is written only after the records are.
    """
    if node.exists(UPGRADED):
        return
    try:
        work.datastore.upgrade_affinities(owner, work.deadline)
        node.write(UPGRADED, "")
    except Unavailable as error:
        raise Unavailable(f"failed to upgrade IPAM database: {error}") from error
    except PortError as error:
        raise Refused(f"failed to upgrade IPAM database: {error}") from error
