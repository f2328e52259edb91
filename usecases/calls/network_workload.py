"""Give a new container its addresses, its device pair and its endpoint record, each undone if a later one fails.

Invariant: everything that can be refused without allocating is refused first.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.resource import Metadata
from domain.workload.attachment import DEFAULT_ROUTES, Attachment
from domain.workload.endpoint import WorkloadEndpoint
from domain.workload.endpoint_rules import check_endpoint, with_forced_labels
from domain.workload.identity import InvalidField, endpoint_name, host_interface_name
from domain.workload.mesos import mesos_endpoint_labels
from ports.datastore import WorkloadEndpointKey
from ports.ipam_plugin import IpamCall
from usecases.calls.effects import ask_ipam, connect_device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.result import Result
    from domain.workload.identity import Identity
    from ports.clock import Deadline
    from ports.dataplane import Connected
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.calls.safeguards import Undo


class Networking:
    """What one container is to get, decided before anything is done."""

    def __init__(self, call: Call, runtime: Runtime, identity: Identity, mtu: int) -> None:
        self._call = call
        self._runtime = runtime
        self._mtu = mtu
        self.host_name = host_interface_name(identity)
        self.endpoint = with_forced_labels(
            WorkloadEndpoint(
                Metadata(
                    endpoint_name(identity),
                    identity.namespace,
                    labels=mesos_endpoint_labels(call.netconf.mesos_labels),
                ),
                orchestrator=identity.orchestrator,
                node=identity.node,
                container_id=identity.container_id,
                endpoint=identity.endpoint,
                profiles=(call.netconf.name,),
                interface_name=self.host_name,
            )
        )

    def check_names(self) -> None:
        """Refuse names that cannot be stored."""
        require_storable(self.endpoint)

    def examine(self) -> None:
        """Refuse a namespace that cannot be networked."""
        request = self._call.request
        self._runtime.dataplane.examine(request.netns, request.ifname, self._call.deadline, self.host_name)

    def perform(self, undo: Undo) -> tuple[Result, WorkloadEndpoint]:
        """The IPAM result, with the prefix lengths that hold in the container, and the endpoint as stored."""
        result = self._addresses(undo)
        connected = self._device(result, undo)
        endpoint = self.endpoint.replace(
            ip_networks=tuple([ip.address.address.host_cidr for ip in result.ips]),
            interface_name=connected.host_interface,
            mac=connected.mac,
        )
        require_storable(endpoint)
        self._store(endpoint, undo)
        ips = tuple([ip.replace(address=address) for ip, address in zip(result.ips, connected.addresses)])
        return result.replace(ips=ips), endpoint

    def _addresses(self, undo: Undo) -> Result:
        ipam_call = IpamCall(self._call.request, self._call.netconf, self._call.netconf_text)
        result = ask_ipam(self._runtime, ipam_call, self._call.deadline, undo)
        if not result.ips:
            why = self._call.netconf.ipam.why_nothing
            raise CniError(INTERNAL, "IPAM plugin returned no IP addresses in result", why)
        return result

    def _device(self, result: Result, undo: Undo) -> Connected:
        attachment = attachment_of(self._call, self.endpoint, result, self._mtu)
        labels = mesos_endpoint_labels(self._call.netconf.mesos_labels)  # without those that a datastore adds
        return connect_device(self._call, self._runtime, attachment.replace(labels=labels), undo)

    def _store(self, endpoint: WorkloadEndpoint, undo: Undo) -> None:
        datastore = self._runtime.datastore
        key = WorkloadEndpointKey(endpoint.metadata.namespace, endpoint.metadata.name)

        def remove(deadline: Deadline) -> None:
            """Only the record of this call; it may be there although its write failed: the answer can get lost."""
            stored = datastore.get(key, deadline)
            if stored is not None and stored.record.replace(metadata=endpoint.metadata) == endpoint:
                datastore.delete(key, stored.revision, deadline)

        undo.register("create WorkloadEndpoint", remove)
        datastore.create(key, endpoint, self._call.deadline)


def attachment_of(call: Call, endpoint: WorkloadEndpoint, result: Result, mtu: int) -> Attachment:
    """What a dataplane is to make for an endpoint with the addresses that IPAM gave."""
    return Attachment(
        netns=call.request.netns,
        ifname=call.request.ifname,
        host_name=endpoint.interface_name,
        addresses=tuple([ip.address for ip in result.ips]),
        gateways=tuple([ip.gateway for ip in result.ips]),
        routes=DEFAULT_ROUTES,
        mtu=mtu,
        num_queues=max(1, call.netconf.num_queues),
        device_type=call.netconf.device_type,
        allow_ip_forwarding=call.netconf.allow_ip_forwarding,
        name=endpoint.metadata.name,
        namespace=endpoint.metadata.namespace,
        labels=endpoint.metadata.labels,
        endpoint=endpoint.endpoint,
        node=endpoint.node,
        orchestrator=endpoint.orchestrator,
        pod=endpoint.pod,
        ports=endpoint.ports,
    )


def require_storable(endpoint: WorkloadEndpoint) -> None:
    """CniError for an endpoint that no datastore would take."""
    try:
        check_endpoint(endpoint)
    except InvalidField as error:
        raise CniError(INTERNAL, str(error)) from error
