"""Give a pod its addresses, its device pair and its endpoint record, each undone if a later one fails.

Unlike a plain container a pod that has an endpoint already is networked anew: a runtime that asks again has made a new
sandbox for it, and the earlier sandbox's own DEL takes back what that one had.

Invariant: everything that can be refused without allocating is refused first.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.plugin_conf import OWN_IPAM
from domain.linux.link import parse_mac
from domain.workload.annotations import FLOATING_IPS, floating_nats, hardware_address
from domain.workload.status_file import policy_key, status_file_name
from usecases.calls.effects import connect_device
from usecases.calls.network_workload import attachment_of, require_storable
from usecases.pods.pod_ipam import PodIpam
from usecases.pods.read_pod import read_pod
from usecases.pods.store_endpoint import store_pod_endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.result import Result
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.dataplane import Connected
    from ports.datastore import Stored
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.calls.safeguards import Undo
    from usecases.pods.read_pod import PodSubject
    from usecases.windows.dockershim import SharedEndpoint


def pod_networking(
    call: Call, runtime: Runtime, identity: Identity, mtu: int, existing: Stored[WorkloadEndpoint] | None
) -> PodNetworking | SharedEndpoint:
    """On Windows a container may share what its sandbox has."""
    if runtime.on_windows:
        from usecases.windows.dockershim import shared_endpoint

        shared = shared_endpoint(call, runtime, existing)
        if shared is not None:
            return shared
    return PodNetworking(call, runtime, identity, mtu, existing)


class PodNetworking:
    """What one pod is to get, decided before anything is done.

    `existing` is the pod's endpoint as stored, whose interface name is kept.
    """

    def __init__(
        self, call: Call, runtime: Runtime, identity: Identity, mtu: int, existing: Stored[WorkloadEndpoint] | None
    ) -> None:
        self._call = call
        self._runtime = runtime
        self._mtu = mtu
        self._existing = existing
        if existing is not None:
            identity = identity.replace(endpoint=existing.record.endpoint)
        self._subject: PodSubject = read_pod(call, runtime, identity)
        require_storable(self._subject.endpoint)
        _check_mac(self._subject)
        request = call.request
        runtime.dataplane.examine(
            request.netns,
            request.ifname,
            call.deadline,
            self._subject.endpoint.interface_name,
            replace_host_link=True,  # a new sandbox takes the place of the old one, whose pod is the same
        )
        self._ipam = PodIpam(call, runtime, self._subject)

    def perform(self, undo: Undo) -> tuple[Result, WorkloadEndpoint]:
        """The IPAM result, with the prefix lengths that hold in the container, and the endpoint as stored."""
        result = self._ipam.addresses(undo)
        connected = self._device(result, undo)
        networks = tuple([ip.address.address.host_cidr for ip in result.ips])
        endpoint = self._subject.endpoint.replace(
            ip_networks=networks,
            interface_name=connected.host_interface,
            mac=connected.mac,
        )
        try:
            parse_mac(connected.mac)  # a service may answer anything
            nats = floating_nats(self._subject.annotations.get(FLOATING_IPS, ""), networks)
        except ValueError as error:
            raise CniError(INTERNAL, str(error)) from error
        endpoint = endpoint.replace(ip_nats=nats)
        require_storable(endpoint)
        store_pod_endpoint(self._runtime, endpoint, self._existing, self._call.deadline, undo)
        ips = tuple([ip.replace(address=address) for ip, address in zip(result.ips, connected.addresses)])
        return result.replace(ips=ips), endpoint

    def _device(self, result: Result, undo: Undo) -> Connected:
        attachment = attachment_of(self._call, self._subject.endpoint, result, self._mtu).replace(
            routes=self._ipam.routes,
            mac=hardware_address(self._subject.annotations),
            # Felix routes to a pod whose addresses come without routes: a virtual machine on the move, or fixed ones.
            host_routes=bool(result.routes) or self._call.netconf.ipam.type != OWN_IPAM,
            replace_host_link=True,
            annotations=self._subject.annotations,
        )
        connected = connect_device(self._call, self._runtime, attachment, undo)
        if self._runtime.on_windows and self._call.netconf.mode == "vxlan":
            from usecases.windows.tunnel import keep_tunnel

            keep_tunnel(self._runtime, attachment.node, connected.addresses[0].network, self._call.deadline)
        return connected


def _check_mac(subject: PodSubject) -> None:
    """The dataplane's own words, before it has anything to do."""
    wanted = hardware_address(subject.annotations)
    if wanted is None:
        return
    try:
        parse_mac(wanted)
    except ValueError as error:
        text = f"failed to parse MAC address {wanted} provided via cni.projectcalico.org/hwAddr: {error}"
        raise CniError(INTERNAL, text) from error


def await_policy(call: Call, runtime: Runtime, endpoint: WorkloadEndpoint) -> None:
    """Wait until Felix says that the pod's policy is in place, for as long as the configuration allows.

    A pod without it is networked all the same: whether it may start is not for us to say.
    """
    seconds = call.netconf.policy_setup_timeout_seconds
    if seconds <= 0:
        return
    if runtime.on_windows:
        runtime.log.warning("policy_setup_timeout_seconds is not used on Windows")
        return
    path = f"{call.netconf.endpoint_status_dir.rstrip('/')}/{status_file_name(policy_key(endpoint))}"
    if not runtime.readiness.file_appears(path, runtime.clock.deadline(float(seconds))):
        runtime.log.warning(
            "The pod's policy is not known to be in place",
            error=f"timed out waiting for endpoint status file '{path}': file not found",
        )
