"""Who has an address, and who uses it: look it up, change it, and end a live migration.

During a live migration an address has two owners. When KubeVirt says that it is over, Felix, where the target runs,
makes the target the active owner; the source's own DEL then clears the slot that it was moved to.

No plugin and no command calls this. It is kept for Felix's part of a migration, which the plugins' own part (adding an
owner, leaving) is tested against, and so that whoever uses Calico's IPAM library finds its operations here.

Invariant: a handle is only an index: what it has is what the blocks that it names say. Only the handle that has the
address may change its owners, and expectations are checked against exactly the record that is written over. The two
owners change places in one write, and only if the target is still the alternate one; doing it again changes nothing.
"""

from __future__ import annotations

from domain.ipam.errors import InCooldown, IpamError, StaleRequest
from domain.ipam.owner_update import ANYTHING, Expectation, OwnerPod, OwnerUpdate, require_sense, update_owners
from ports.datastore import BlockKey, HandleKey, IPPools
from ports.errors import Missing
from usecases.ipam.locate_block import BlockLocator
from usecases.ipam.work import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Address
    from domain.ipam.block import Attribute, Block
    from usecases.ipam.work import Leave, Work

TRIES = 5


class AlternateOwnerEmpty(IpamError):
    """Nobody is about to take the address over."""


class AlternateOwnerMismatch(IpamError):
    """Another pod is about to take the address over."""


def promote_owner(work: Work, handle: str, target: OwnerPod) -> None:
    """Every address of the machine. IpamError if it has none, or if the target is not about to have one of them."""
    try:
        addresses = addresses_of_handle(work, handle)
    except Missing as error:
        raise IpamError(f"failed to get IPs for handle {handle}: {error}") from error
    if not addresses:
        raise IpamError(f"failed to get IPs for handle {handle}: it has none")
    for address in addresses:
        _promote(work, address, handle, target)


def _promote(work: Work, address: Address, handle: str, target: OwnerPod) -> None:
    last: StaleRequest | None = None
    for _ in range(TRIES):  # not `until_won`: whoever asked is told what the last one found, as by the original
        holder = holder_of_address(work, address)
        source, coming = holder.secondary, holder.alternate
        if target.owns(source):
            return
        if not coming:
            raise AlternateOwnerEmpty(f"no pod is the alternate owner of {address}, expected {target}")
        if not target.owns(coming):
            raise AlternateOwnerMismatch(f"the alternate owner of {address} is {_named(coming)}, expected {target}")
        expected = Expectation(_named(source) if source else None, target, active_empty=not source)
        update = OwnerUpdate(active=coming, alternate=source or None, clear_alternate=not source)
        try:
            set_owner_attributes(work, address, handle, update, expected)
        except StaleRequest as error:
            last = error
        else:
            return
    assert last is not None  # noqa: S101 - every round but the last has raised
    raise last


def _named(owner: Mapping[str, str]) -> OwnerPod:
    return OwnerPod(owner.get("namespace", ""), owner.get("pod", ""))


def set_owner_attributes(
    work: Work, address: Address, handle: str, update: OwnerUpdate | None, expected: Expectation = ANYTHING
) -> None:
    """Set or clear the two owners of an address, if they are what is expected.

    Raises StaleRequest if they are not, Missing if nobody has the address, IpamError if another handle has it or the
    request contradicts itself. Nothing is changed then.
    """
    wanted = require_sense(update, expected)
    pools = [pool.record for pool in work.datastore.list(IPPools(), work.deadline)]
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
    pools = [pool.record for pool in work.datastore.list(IPPools(), work.deadline)]
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
