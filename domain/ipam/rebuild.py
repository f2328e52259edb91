"""A damaged block written anew: what it still says of itself, and what endpoints prove.

An endpoint proves that a container has an address. Which handle its DEL will ask for is the name of a handle record, if
there is one for that container; else it is the one of old versions, which every DEL looks for as well.

Invariant: an address that an endpoint has is held for its container, so nobody else gets it.
"""

from __future__ import annotations

from domain.ipam.audit_addresses import belongs
from domain.ipam.block import CONFIRMED, Attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.block import Block
    from domain.ipam.inventory import Inventory
    from domain.workload.endpoint import WorkloadEndpoint


def rebuilt_block(inventory: Inventory, salvage: Block) -> Block:
    """`salvage` is what still makes sense of it. Numbers of allocations begin above all that were given before."""
    block = salvage.replace(sequence=max(salvage.sequence, inventory.now))
    if block.affinity is None:
        block = block.replace(affinity=_claimed_by(inventory, block.cidr))
    for endpoint in inventory.endpoints:
        for address in endpoint.addresses:
            if address in block.cidr:
                block = _with(inventory, block, block.ordinal(address), endpoint)
    return block


def _claimed_by(inventory: Inventory, cidr: Cidr) -> str | None:
    """Whoever has the only confirmed affinity."""
    owners = [str(claim.owner) for claim in inventory.claims if claim.cidr == cidr and claim.state in (CONFIRMED, "")]
    return owners[0] if len(owners) == 1 else None


def _with(inventory: Inventory, block: Block, ordinal: int, endpoint: WorkloadEndpoint) -> Block:
    holder = block.holder(ordinal)
    if holder is not None and not holder.released_at and belongs(endpoint, holder):
        return block
    about = {"node": endpoint.node}
    if endpoint.pod:
        about = {"namespace": endpoint.metadata.namespace, **about, "pod": endpoint.pod}
    return block.give(ordinal, Attribute(_handle_of(inventory, block.cidr, endpoint), about))


def _handle_of(inventory: Inventory, cidr: Cidr, endpoint: WorkloadEndpoint) -> str:
    container = endpoint.container_id
    tail = f".{container}"
    names = [name for name in (*inventory.handles, *inventory.unreadable.handles) if container and name.endswith(tail)]
    counting = [name for name in names if name in inventory.handles and cidr in inventory.handles[name][0].blocks]
    old = f"{endpoint.metadata.namespace}.{endpoint.pod}" if endpoint.pod else container or endpoint.metadata.name
    return (counting or names or [old])[0]
