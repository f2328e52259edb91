"""DEL of the network plugin: take back everything a container has.

Addresses first, then the endpoint, then the device: whatever fails, the later ones are still tried, so that a
repeated DEL has less to do. A datastore that cannot be reached, or that this DEL's configuration no longer leads to,
leaves only the records for later: the device goes at once, and what another IPAM plugin gave with it.

Invariant: DEL of a container that has nothing, or of one that is half gone, succeeds; and so does one of which only
damaged records are left, which are the operator's to mend (`usecases/ipam/sound_records.py`).
"""

from __future__ import annotations

from domain.cni.plugin_conf import OWN_IPAM
from domain.workload.identity import KUBERNETES, identify, names_fault
from ports.errors import Damaged, Missing, PortError, Unavailable
from usecases.calls.cluster_ready import cluster_and, require_ready
from usecases.calls.deletion import FIRST_ANSWER, with_settings_of_add
from usecases.calls.effects import disconnect, expect_ipam
from usecases.calls.find_endpoint import endpoint_key, endpoints_like, matching, was_never_ours
from usecases.calls.former_ipam import RecordRemoval, release_by_plugin
from usecases.calls.safeguards import attempt, lock_container, refuse_own_namespace
from usecases.calls.this_node import node_name, require_nodename_file
from usecases.ipam.sound_records import tell_damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.datastore import Stored
    from ports.runtime import Runtime
    from usecases.calls.call import Call


def delete_workload(call: Call, runtime: Runtime) -> None:
    """Tries everything; then raises what failed: the endpoint's failure before the device's before IPAM's."""
    with_settings_of_add(_delete, call, runtime)


def _delete(call: Call, runtime: Runtime) -> None:
    if call.request.netns:
        runtime.dataplane  # noqa: B018 - one that is not to be had is refused before anything is done
    refuse_own_namespace(call.request, runtime)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    if was_never_ours(identity, runtime.log):
        return
    lock_container(call, runtime)
    nodename = attempt(runtime, "tell this node's name", lambda: require_nodename_file(call.netconf, runtime.node))
    if nodename is not None or names_fault(identity) is not None:
        _delete_on_nameless_node(call, runtime, nodename)
    elif identity.orchestrator == KUBERNETES:
        from usecases.pods.remove_pod import remove_pod

        remove_pod(call, runtime, identity)
    else:
        _delete_container(call, runtime, identity)


def _delete_on_nameless_node(call: Call, runtime: Runtime, nodename: Exception | None) -> None:
    """The endpoint's name is not known, so there is none to delete; the rest goes by the container alone."""
    device = attempt(runtime, "remove the device", lambda: disconnect(call.request, runtime, call.deadline))
    addresses = attempt(runtime, "release the addresses", lambda: release_by_plugin(call, runtime))
    failure = nodename or device or addresses
    if failure is not None:
        raise failure


def _delete_container(call: Call, runtime: Runtime, identity: Identity) -> None:
    removal = _ContainerRemoval(call, runtime, identity)
    expect_ipam(call, runtime)
    try:
        listed = _endpoints_if_ready(call, runtime, identity)
    except PortError as error:
        _do_without_records(call, runtime, error)
        raise
    looking = attempt(runtime, "look for the endpoint", lambda: removal.look(listed))
    addresses = attempt(runtime, "release the addresses", removal.release)
    others = attempt(runtime, "release what another IPAM plugin gave", removal.release_others)
    endpoint = attempt(runtime, "delete the endpoint", removal.delete_endpoint)
    device = attempt(runtime, "remove the device", lambda: disconnect(call.request, runtime, call.deadline))
    failure = looking or endpoint or device or addresses or others
    if failure is not None:
        raise failure


def _endpoints_if_ready(
    call: Call, runtime: Runtime, identity: Identity
) -> tuple[Stored[WorkloadEndpoint], ...] | None:
    """None if they have still to be read. CniError if the cluster is not ready; that it is can be taken for granted
    where its record is damaged.
    """
    first = call.deadline.sooner(runtime.clock.monotonic(), FIRST_ANSWER)
    try:
        cluster, listed = cluster_and(runtime.datastore, endpoints_like(identity), first)
    except Damaged as error:
        tell_damaged(runtime.log, error)
        return None
    require_ready(cluster)
    return listed


def _do_without_records(call: Call, runtime: Runtime, why: PortError) -> None:
    """An outage passes. Anything else may last, so what another IPAM plugin gave is released at once."""
    attempt(runtime, "remove the device", lambda: disconnect(call.request, runtime, call.deadline))
    if not isinstance(why, Unavailable) and call.netconf.ipam.type != OWN_IPAM:
        attempt(runtime, "release the addresses", lambda: release_by_plugin(call, runtime))


class _ContainerRemoval(RecordRemoval):
    """A container that was added under one interface name may be deleted under another; its endpoint goes with it."""

    def look(self, listed: tuple[Stored[WorkloadEndpoint], ...] | None) -> None:
        """With None what is listed has still to be read."""
        if listed is None:
            try:
                listed = self._runtime.datastore.list(endpoints_like(self._identity), self._call.deadline)
            except Missing:  # a Kubernetes datastore knows pods only, so it has none of this container's
                return
        key = endpoint_key(self._identity)
        own = next((stored for stored in listed if stored.key == key), None)
        self._stored = own or matching(self._identity, listed)
        if self._stored is not None and own is None and self._has_other_interface(self._stored.record.endpoint):
            self._runtime.log.info(
                "Keeping the endpoint of another interface that is still there", endpoint=self._stored.key
            )
            self._keep = True

    def delete_endpoint(self) -> None:
        """By name and whatever is in it: a damaged record goes as well."""
        if self._keep:
            return
        key = self._stored.key if self._stored is not None else endpoint_key(self._identity)
        try:
            self._runtime.datastore.delete(key, None, self._call.deadline)
        except Missing:
            self._runtime.log.debug("The endpoint is gone already", endpoint=key)
