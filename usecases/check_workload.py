"""CHECK of the network plugin: is everything that ADD answered still there?

Compared are the container's link, addresses and routes, the host's link and routes, and the endpoint record, as far
as the dataplane lets us see them. Every fault is named in one message, so that an operator sees all of them at once.

Invariant: CHECK changes nothing, and an unreachable datastore is reported as such, not as a fault of the container.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.plugin_conf import OWN_IPAM
from domain.ipam.address import V4, V6, Address, Cidr
from domain.value import Value
from domain.workload.attachment import DEFAULT_ROUTES
from domain.workload.host_local import HOST_LOCAL, pod_routes, text_for_release
from domain.workload.identity import KUBERNETES, identify
from domain.workload.plan import GATEWAY_V4
from ports.dataplane import Seen
from ports.errors import Refused
from ports.ipam_plugin import IpamCall
from usecases.calls.cluster_ready import CLUSTER, require_ready
from usecases.calls.find_endpoint import endpoints_like, matching
from usecases.calls.safeguards import refuse_own_namespace
from usecases.calls.this_node import node_name, require_nodename_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.cni.result import Result
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.runtime import Runtime
    from usecases.calls.call import Call

PROXY = {V4: "proxy_arp", V6: "proxy_ndp"}
LINK_LOCAL = Cidr.parse("fe80::/10")
GATEWAY_ROUTE = GATEWAY_V4.host_cidr


def check_workload(call: Call, runtime: Runtime) -> None:
    """Silent when healthy; CniError naming each fault otherwise. Without `prevResult` there is nothing to compare."""
    if not call.netconf.prev_result:
        return
    previous = call.previous_result()
    require_nodename_file(call.netconf, runtime.node)
    runtime.dataplane  # noqa: B018 - one that is not to be had is refused first
    refuse_own_namespace(call.request, runtime)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    cluster, endpoints = runtime.datastore.fetch(CLUSTER, endpoints_like(identity), deadline=call.deadline)
    require_ready(cluster)
    stored = matching(identity, endpoints)
    inside = runtime.dataplane.look(call.request.netns, call.request.ifname, call.deadline)
    host_name = _host_interface(previous)
    outside = runtime.dataplane.look("", host_name, call.deadline) if host_name else Seen(None)
    expected = _Expected(previous, _gateways(outside), _routes_of(call, identity))
    faults = _faults_inside(call, expected, inside) if inside else []
    faults += _faults_outside(call, host_name, previous, outside) if outside else []
    faults += _faults_of_endpoint(call, previous, stored.record if stored else None)
    faults += _faults_of_ipam(call, runtime)
    if faults:
        raise CniError(INTERNAL, f"CHECK of {call.request.ifname} failed: {'; '.join(faults)}")


class _Expected(Value):
    """What the container should have. `gateways` are by IP version, where known; `routes` lead there."""

    previous: Result
    gateways: Mapping[int, Address]
    routes: tuple[Cidr, ...]


def _routes_of(call: Call, identity: Identity) -> tuple[Cidr, ...]:
    """A pod may have others, which only host-local's configuration says."""
    if identity.orchestrator != KUBERNETES or call.netconf.ipam.type != HOST_LOCAL:
        return DEFAULT_ROUTES
    try:
        return pod_routes(call.netconf_text, include_default_routes=call.netconf.include_default_routes)
    except ValueError as error:
        raise CniError(INTERNAL, str(error)) from error


def _host_interface(previous: Result) -> str:
    """The host end is the interface without a sandbox."""
    return next((interface.name for interface in previous.interfaces if not interface.sandbox), "")


def _gateways(outside: Seen | None) -> dict[int, Address]:
    """By IP version, where known: the address every pod has in common, and the host link's own link-local one."""
    local = [cidr.address for cidr in outside.addresses if cidr.address in LINK_LOCAL] if outside else []
    return {V4: GATEWAY_ROUTE.address} | ({V6: local[0]} if local else {})


def _faults_inside(call: Call, expected: _Expected, seen: Seen) -> list[str]:
    name, netns, previous = call.request.ifname, call.request.netns, expected.previous
    if seen.link is None:
        return [f"container interface {name} is missing in {netns}"]
    faults = [] if seen.link.up else [f"container interface {name} is down"]
    wanted_mac = next(
        (interface.mac for interface in previous.interfaces if interface.sandbox and interface.name == name), ""
    )
    if wanted_mac and seen.link.mac.lower() != wanted_mac.lower():
        faults.append(f"container interface {name} has MAC {seen.link.mac} instead of {wanted_mac}")
    present = {address.address for address in seen.addresses}
    faults += [
        f"address {ip.address.address} is missing on container interface {name}"
        for ip in previous.ips
        if ip.address.address not in present
    ]
    for version in sorted({ip.address.version for ip in previous.ips}):
        for route in [destination for destination in expected.routes if destination.version == version]:
            faults += _faults_of_route(name, route, seen, expected.gateways.get(version))
        if version == V4 and GATEWAY_ROUTE not in [destination for destination, _ in seen.routes]:
            faults.append(f"route to {GATEWAY_ROUTE} is missing on container interface {name}")
    return faults


def _faults_of_route(name: str, route: Cidr, seen: Seen, gateway: Address | None) -> list[str]:
    """It must lead to our gateway, where that is known."""
    ways = [way for destination, way in seen.routes if destination == route]
    if not ways:
        return [f"route to {route} is missing on container interface {name}"]
    if gateway is not None and gateway not in ways:
        shown = ", ".join(str(way or "no gateway") for way in ways)
        return [f"route to {route} on container interface {name} goes by {shown} instead of {gateway}"]
    return []


def _faults_outside(call: Call, name: str, previous: Result, seen: Seen) -> list[str]:
    if not name:
        return ["prevResult names no host interface"]
    if seen.link is None:
        return [f"host interface {name} is missing"]
    faults = [] if seen.link.up else [f"host interface {name} is down"]
    faults += [
        f"host interface {name} does not answer for IPv{version} neighbours ({PROXY[version]} is off)"
        for version in sorted({ip.address.version for ip in previous.ips})
        if seen.proxies is not None and version not in seen.proxies
    ]
    if call.netconf.ipam.type == OWN_IPAM and not previous.routes:
        return faults  # the routes of fixed addresses, and of a virtual machine on the move, are Felix's
    destinations = {destination for destination, _ in seen.routes}
    return faults + [
        f"host route to {ip.address.address.host_cidr} on {name} is missing"
        for ip in previous.ips
        if ip.address.address.host_cidr not in destinations
    ]


def _faults_of_endpoint(call: Call, previous: Result, endpoint: WorkloadEndpoint | None) -> list[str]:
    if endpoint is None:
        return [f"no WorkloadEndpoint is stored for container {call.request.container_id}"]
    faults = []
    if endpoint.container_id != call.request.container_id:
        faults.append(f"WorkloadEndpoint {endpoint.metadata.name} belongs to container {endpoint.container_id}")
    addresses = [ip.address.address for ip in previous.ips]
    if sorted(map(str, endpoint.addresses)) != sorted(map(str, addresses)):
        shown = ", ".join(str(network) for network in endpoint.ip_networks) or "none"
        faults.append(f"WorkloadEndpoint {endpoint.metadata.name} has other addresses: {shown}")
    return faults


def _faults_of_ipam(call: Call, runtime: Runtime) -> list[str]:
    """Whether the IPAM plugin still has the addresses. With `ip_addrs_no_ipam` a pod's may be unknown to it."""
    netconf = call.netconf
    if netconf.ip_addrs_no_ipam:
        return []
    text = text_for_release(netconf, call.netconf_text)
    try:
        runtime.ipam_plugin.check(IpamCall(call.request, netconf, text), call.deadline)
    except (Refused, CniError) as error:
        return [f"{netconf.ipam.type}: {error}"]
    return []
