"""DEL of the network plugin: take back everything a container has (spec: cni-plugin 6).

Addresses first, then the endpoint, then the device: whatever fails, the later steps are still tried, so that a
repeated DEL has less to do. An unreachable datastore leaves only the records for later: the device goes at once.

Invariant: DEL of a container that has nothing, or of one that is half gone, succeeds.
"""

from __future__ import annotations

from domain.usecases.steps.cluster_ready import cluster_and, require_ready
from domain.usecases.steps.find_endpoint import endpoint_key, endpoints_like, matching
from domain.usecases.steps.host_lock import lock_container
from domain.usecases.steps.ipam_text import text_for_release
from domain.usecases.steps.node_name import node_name, require_nodename_file
from domain.usecases.steps.own_namespace import refuse_own_namespace
from domain.usecases.steps.removal import FIRST_ANSWER, attempt, disconnect
from domain.workload.identity import KUBERNETES, identify
from ports.datastore import WorkloadEndpointKey
from ports.errors import Missing, PortError, Unavailable
from ports.ipam_plugin import IpamCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.usecases.call import Call
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.datastore import Stored
    from ports.runtime import Runtime


def delete_workload(call: Call, runtime: Runtime) -> None:
    """Tries everything; then raises what failed: the endpoint's failure before the device's before IPAM's."""
    require_nodename_file(call.netconf, runtime.node)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    refuse_own_namespace(call.request, runtime)
    if identity.orchestrator == KUBERNETES:
        from domain.usecases.steps.remove_pod import remove_pod

        endpoint_key(identity)  # names that cannot be meant are refused before anything is touched
        remove_pod(call, runtime, identity)
        return
    key, like = endpoint_key(identity), endpoints_like(identity)
    lock_container(call, runtime)
    try:
        first = call.deadline.sooner(runtime.clock.monotonic(), FIRST_ANSWER)
        cluster, listed = cluster_and(runtime.datastore, like, first)
        require_ready(cluster)
    except Unavailable:
        attempt(runtime, "remove the device", lambda: disconnect(call, runtime))
        raise
    deletion = _Deletion(call, runtime, identity, key)
    looking = attempt(runtime, "look for the endpoint", lambda: deletion.look(listed))
    addresses = attempt(runtime, "release the addresses", deletion.release)
    endpoint = attempt(runtime, "delete the endpoint", deletion.delete_endpoint)
    device = attempt(runtime, "remove the device", lambda: disconnect(call, runtime))
    failure = looking or endpoint or device or addresses
    if failure is not None:
        raise failure


class _Deletion:
    """What one DEL takes back of the records.

    A container that was added under one interface name may be deleted under another. Its endpoint goes with it, unless
    the interface that the endpoint is about is still there: then this DEL is about another one, which never had an
    address of its own, and the endpoint and its addresses stay.
    """

    def __init__(self, call: Call, runtime: Runtime, identity: Identity, key: WorkloadEndpointKey) -> None:
        self._call = call
        self._runtime = runtime
        self._identity = identity
        self._key = key
        self._keep = False

    def look(self, listed: tuple[Stored[WorkloadEndpoint], ...] | None) -> None:
        """With None what is listed has still to be read."""
        if listed is None:
            try:
                listed = self._runtime.datastore.list(endpoints_like(self._identity), self._call.deadline)
            except Missing:  # a Kubernetes datastore knows pods only, so it has none of this container's
                return
        if any(stored.key == self._key for stored in listed):
            return
        other = matching(self._identity, listed)
        if other is None:
            return
        if self._is_alive(other.record.endpoint):
            self._runtime.log.info("Keeping the endpoint of another interface that is still there", endpoint=other.key)
            self._keep = True
        else:
            metadata = other.record.metadata
            self._key = WorkloadEndpointKey(metadata.namespace, metadata.name)

    def _is_alive(self, ifname: str) -> bool:
        netns = self._call.request.netns
        if not netns or ifname == self._call.request.ifname:
            return False
        try:
            seen = self._runtime.dataplane.look(netns, ifname, self._call.deadline)
        except PortError:
            return False  # the namespace is gone, and every interface with it
        return seen is not None and seen.link is not None

    def release(self) -> None:
        if self._keep:
            return
        text = text_for_release(self._call.netconf, self._call.netconf_text)
        self._runtime.ipam_plugin.delete(IpamCall(self._call.request, self._call.netconf, text), self._call.deadline)

    def delete_endpoint(self) -> None:
        """By name and whatever is in it: a damaged record goes as well."""
        if self._keep:
            return
        try:
            self._runtime.datastore.delete(self._key, None, self._call.deadline)
        except Missing:
            self._runtime.log.debug("The endpoint is gone already", endpoint=self._key)
