"""ADD of the network plugin: give a container its interface.

Refuse what can be refused, find out whether the container is networked already, network it if not, see that its
profile exists, and answer. Every effect is registered for undo; the caller keeps or undoes them all.

Invariant: nothing is allocated before all that can be refused has been looked at.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.result import Result, ResultInterface, ResultIp
from domain.workload.endpoint import allow_profile
from domain.workload.identity import KUBERNETES, identify
from ports.datastore import ProfileKey
from ports.errors import AlreadyExists, Damaged, Refused, Unavailable
from usecases.calls.cluster_ready import CLUSTER, pass_gates, require_ready
from usecases.calls.effects import connect_device, expect_ipam
from usecases.calls.find_endpoint import endpoint_key, endpoints_like, matching
from usecases.calls.network_workload import Networking, attachment_of
from usecases.calls.safeguards import lock_container, refuse_own_namespace
from usecases.calls.this_node import device_mtu, node_name, require_nodename_file
from usecases.ipam.sound_records import fetch_sound
from usecases.ipam.work import LEAVE, Work, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import Profile, WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.clock import Deadline
    from ports.dataplane import Connected
    from ports.datastore import Stored
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.calls.safeguards import Undo
    from usecases.ipam.work import Leave

DEVICE_TYPES = ("", "veth", "netkit")
MOST_QUEUES = 4096


def add_workload(call: Call, runtime: Runtime, undo: Undo) -> Result:
    """The answer to print, in internal form."""
    mtu = _refuse_unusable(call, runtime)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    kubernetes = identity.orchestrator == KUBERNETES
    if not kubernetes:
        if call.netconf.ip_addrs_no_ipam:
            raise CniError(INTERNAL, "requested feature is not supported for this runtime: ip_addrs_no_ipam")
        Networking(call, runtime, identity, mtu).check_names()
    lock_container(call, runtime)
    _open_datastore(runtime)
    endpoints, profile = _read_records(call, runtime, identity)
    if call.netconf.readiness_gates:
        call = call.replace(deadline=pass_gates(call, runtime))
        endpoints = runtime.datastore.list(endpoints_like(identity), call.deadline)
    existing = matching(identity, endpoints)
    if kubernetes:
        from usecases.pods.network_pod import await_policy, pod_networking

        result, endpoint = pod_networking(call, runtime, identity, mtu, existing).perform(undo)
    elif existing is not None:
        connected = _connect_again(call, runtime, existing.record, mtu, undo)
        result, endpoint = _readopt(call, runtime, existing, connected, undo)
    else:
        networking = Networking(call, runtime, identity, mtu)
        networking.examine()
        result, endpoint = networking.perform(undo)
    _ensure_profile(call, runtime, identity, profile)
    if kubernetes:
        await_policy(call, runtime, endpoint)
    return _answer(call, runtime, result, endpoint)


def _read_records(
    call: Call, runtime: Runtime, identity: Identity
) -> tuple[tuple[Stored[WorkloadEndpoint], ...], Stored[Profile] | Damaged | None]:
    """The endpoints that may be the container's, and the network's profile where it counts; refused if not ready.

    The endpoint is read by name too: a damaged record is in no listing, and must stop us here. Of the profile it is
    enough that it is there.
    """
    endpoints, profile = endpoints_like(identity), ProfileKey(call.netconf.name)
    own = endpoint_key(identity)
    if identity.orchestrator == KUBERNETES:
        from usecases.pods.read_pod import expect_pod

        expect_pod(call, runtime, identity)
    if not call.netconf.readiness_gates:  # those take their time
        expect_ipam(call, runtime)
    if call.netconf.policy.type:
        cluster, listed, _ = runtime.datastore.fetch(CLUSTER, endpoints, own, deadline=call.deadline)
        require_ready(cluster)
        return listed, None
    try:
        cluster, listed, stored, _ = runtime.datastore.fetch(CLUSTER, endpoints, profile, own, deadline=call.deadline)
    except Damaged:
        cluster, listed, _ = runtime.datastore.fetch(CLUSTER, endpoints, own, deadline=call.deadline)
        require_ready(cluster)
        return listed, fetch_sound(runtime.datastore, runtime.log, profile, deadline=call.deadline)[0]
    require_ready(cluster)
    return listed, stored


def _refuse_unusable(call: Call, runtime: Runtime) -> int:
    """Everything the configuration alone decides. Gives the MTU for the device (0: the kernel's)."""
    netconf = call.netconf
    require_nodename_file(netconf, runtime.node)
    mtu = device_mtu(netconf, runtime.node, runtime.log)
    if netconf.device_type not in DEVICE_TYPES:
        raise CniError(
            INTERNAL, f'unknown device_type "{netconf.device_type}" in CNI config (supported: "veth", "netkit")'
        )
    if netconf.policy_setup_timeout_seconds < 0:
        raise CniError(INTERNAL, f"invalid pod startup delay of {netconf.policy_setup_timeout_seconds}")
    if netconf.num_queues > MOST_QUEUES:
        raise CniError(INTERNAL, f"num_queues {netconf.num_queues} is more than a device can have ({MOST_QUEUES})")
    runtime.dataplane  # noqa: B018 - one that is not to be had is refused before anything is done
    refuse_own_namespace(call.request, runtime)
    return mtu


def _open_datastore(runtime: Runtime) -> None:
    try:
        runtime.datastore  # noqa: B018 - opening it is the point
    except Unavailable:
        raise
    except Refused as error:
        raise Refused(f"error creating calico client: {error}", error.code, error.details) from error


def _connect_again(call: Call, runtime: Runtime, endpoint: WorkloadEndpoint, mtu: int, undo: Undo) -> Connected | None:
    """A device pair with the endpoint's addresses, if its interface is gone from a namespace that can be looked into.

    A machine that starts again has new namespaces and old records, and a runtime without a DEL between the two asks
    for the same container again.
    """
    request, ifname = call.request, endpoint.endpoint
    seen = runtime.dataplane.look(request.netns, ifname, call.deadline) if request.ifname == ifname else None
    if seen is None or seen.link is not None:
        return None
    runtime.dataplane.examine(request.netns, ifname, call.deadline, endpoint.interface_name)
    runtime.log.info("Connecting a container anew that its endpoint says is connected", endpoint=endpoint.metadata.name)
    return connect_device(call, runtime, attachment_of(call, endpoint, _addresses(endpoint), mtu), undo)


def _addresses(endpoint: WorkloadEndpoint) -> Result:
    return Result(ips=tuple([ResultIp(network) for network in endpoint.ip_networks]))


def _readopt(
    call: Call, runtime: Runtime, existing: Stored[WorkloadEndpoint], connected: Connected | None, undo: Undo
) -> tuple[Result, WorkloadEndpoint]:
    """A container that has its endpoint already keeps its addresses; only the network's profile is added, and what a
    new device has of its own.
    """
    name = call.netconf.name
    work = Work.on(runtime, call.deadline)

    def with_profile(endpoint: WorkloadEndpoint | None) -> WorkloadEndpoint | Leave:
        renewed = endpoint and _renewed(endpoint, name, connected)
        return LEAVE if renewed is None or renewed == endpoint else renewed

    def without_profile(endpoint: WorkloadEndpoint | None) -> WorkloadEndpoint | Leave:
        if endpoint is None or endpoint.metadata.uid != existing.record.metadata.uid:
            return LEAVE
        return endpoint.replace(profiles=tuple([profile for profile in endpoint.profiles if profile != name]))

    def forget(deadline: Deadline) -> None:
        guarded_write(work.until(deadline), existing.key, without_profile)

    stored = guarded_write(work, existing.key, with_profile, existing)
    if stored is None:
        raise Refused(f"WorkloadEndpoint {existing.record.metadata.name} was deleted while it was being updated")
    if name not in existing.record.profiles:
        undo.register(f"add profile {name}", forget)
    return _addresses(stored.record), stored.record


def _renewed(endpoint: WorkloadEndpoint, profile: str, connected: Connected | None) -> WorkloadEndpoint:
    if connected is not None:
        endpoint = endpoint.replace(mac=connected.mac, interface_name=connected.host_interface)
    return endpoint if profile in endpoint.profiles else endpoint.replace(profiles=(*endpoint.profiles, profile))


def _ensure_profile(call: Call, runtime: Runtime, identity: Identity, profile: object | None) -> None:
    """Without a policy type the network's profile decides what the endpoint may do, so it must exist."""
    if call.netconf.policy.type or profile is not None:
        return
    try:
        runtime.datastore.create(
            ProfileKey(call.netconf.name), allow_profile(call.netconf.name, identity.orchestrator), call.deadline
        )
    except AlreadyExists:
        runtime.log.debug("Profile was created by another ADD", profile=call.netconf.name)


def _answer(call: Call, runtime: Runtime, result: Result, endpoint: WorkloadEndpoint) -> Result:
    """IPAM's result with our two interfaces; every address is the container's, without a gateway."""
    if runtime.on_windows:
        from usecases.windows.terms import answered_dns

        result = result.replace(dns=answered_dns(call))
    interfaces = (
        *result.interfaces,
        ResultInterface(endpoint.interface_name),
        ResultInterface(call.request.ifname, endpoint.mac, max(0, call.netconf.mtu), call.request.netns),
    )
    ips = tuple([ResultIp(ip.address, 1) for ip in result.ips])
    return result.replace(interfaces=interfaces, ips=ips)
