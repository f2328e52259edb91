"""Keep the address of the node's IPIP device, which host-local's range gave it without anybody's writing it down.

calico-ipam records such an address like any other. What the device has now would otherwise be free, and be given to a
container.

Invariant: the node says an address only if that is recorded for its device.
"""

from __future__ import annotations

from domain.ipam.block import HOST, Attribute, Owner
from domain.ipam.errors import IpamError
from domain.ipam.upgrade import Left, Placement, tunnel_address
from ports.datastore import NodeKey
from ports.errors import Conflict, Missing, PortError, Refused
from usecases.ipam.take_over import take_over
from usecases.upgrade.reservations import read_terms, work_step
from usecases.upgrade.switch import PAUSE, TRIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from domain.cluster import Node
    from domain.ipam.address import Address
    from ports.datastore import Stored
    from ports.runtime import UpgradeRuntime
    from usecases.ipam.work import Work


def keep_tunnel_address(
    runtime: UpgradeRuntime, name: str, of_pods: Container[str], *, foresee: bool = False
) -> tuple[Left, ...]:
    """What cannot be kept; nothing is changed if it is only to `foresee` that.

    Nothing to do for a node that says its address already, or has an IPv6 range.
    Where a pod has the address, which takes a range without the usual gateway, it is the pod's.
    """
    work = work_step(runtime)
    if _node(work, name).record.tunnel_address:
        return ()
    cidrs = runtime.cluster.pod_cidrs(name, work.deadline)
    pod_cidr = cidrs[0] if cidrs else ""
    try:
        address = tunnel_address(pod_cidr)
    except ValueError as error:
        why = f"PodCIDR {pod_cidr} did not parse successfully: {error}; give the node its podCIDR"
        return (Left(f"IPIP device of node {name}", why),)
    if address is None:
        runtime.log.info("The node's pods have IPv6 addresses, so there is no IPIP device", podCIDR=pod_cidr)
        return ()
    if str(address) in of_pods:
        return _not_kept(work, name, address, "a pod has it")
    return _keep(work, name, address, foresee=foresee)


def _keep(work: Work, name: str, address: Address, *, foresee: bool) -> tuple[Left, ...]:
    handle = f"ipip-tunnel-addr-{name}"
    placement = Placement(address, Attribute(handle, {"node": name, "type": "ipipTunnelAddress"}))
    terms = read_terms(work)
    try:
        cidr = terms.block_of(address)
    except IpamError as error:
        return (Left(f"IPIP device of node {name}", str(error)),)
    if foresee:
        return ()
    placed = take_over(work, Owner(HOST, name), cidr, [placement], terms.config)
    if placed.refused:
        return _not_kept(work, name, address, placed.refused[0][1])
    _tell_node(work, name, address)
    return ()


def _not_kept(work: Work, name: str, address: Address, why: str) -> tuple[Left, ...]:
    """The original writes it all the same. calico-node gives the device another one when it starts."""
    work.log.warning("The address of the IPIP device is not kept", node=name, address=address, reason=why)
    return ()


def _tell_node(work: Work, name: str, address: Address) -> None:
    """As the original does, five lost races are no error: calico-node writes the record, too."""
    for _ in range(TRIES):
        stored = _node(work, name)
        try:
            work.datastore.update(
                stored.key, stored.record.with_tunnel_address(address), stored.revision, work.deadline
            )
        except Conflict:
            work.clock.sleep(PAUSE)
        else:
            return


def _node(work: Work, name: str) -> Stored[Node]:
    try:
        stored = work.datastore.get(NodeKey(name), work.deadline)
        if stored is None:
            raise Missing(NodeKey(name))
    except PortError as error:
        raise Refused(f"failed to get calico node resource: {error}") from error
    return stored
