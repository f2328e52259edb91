"""Take back everything a pod's sandbox has.

The device goes first: whatever becomes of the datastore, the container is off the network at once. It is
looked for inside the given namespace only: the host-side name may be a newer sandbox's by now.

Invariant: the endpoint of another sandbox of the same pod stays; every part is tried, whatever fails before it.
"""

from __future__ import annotations

from domain.cni.errors import CniError
from ports.errors import Conflict, Damaged, Missing, Refused, Unauthorized, Unavailable
from ports.ipam_plugin import IpamCall
from usecases.calls.cluster_ready import CLUSTER, require_ready
from usecases.calls.deletion import FIRST_ANSWER
from usecases.calls.effects import Disconnection, expect_ipam
from usecases.calls.find_endpoint import endpoint_key, endpoints_like, matching
from usecases.calls.former_ipam import RecordRemoval
from usecases.calls.safeguards import attempt
from usecases.ipam.sound_records import fetch_sound, if_sound, tell_damaged
from usecases.pods.pod_ipam import AZURE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.identity import Identity
    from ports.runtime import Runtime
    from usecases.calls.call import Call

MAX_TRIES = 6


def remove_pod(call: Call, runtime: Runtime, identity: Identity) -> None:
    """Tries everything; then raises what failed: the endpoint's failure before the device's before IPAM's."""
    if runtime.on_windows:
        from usecases.windows.dockershim import note_deletion

        note_deletion(call, runtime)
    disconnection = Disconnection(call, runtime)
    device = attempt(runtime, "remove the device", disconnection.begin)
    try:
        _remove_records(_PodRemoval(call, runtime, identity), runtime, device)
    finally:
        disconnection.end()


def _remove_records(removal: _PodRemoval, runtime: Runtime, device: Exception | None) -> None:
    looking = attempt(runtime, "look for the endpoint", removal.look)
    if isinstance(looking, (Unavailable, CniError)):
        raise looking
    others = endpoint = None
    if looking is None:
        others = attempt(runtime, "release what another IPAM plugin gave", removal.release_others)
    if others is None:  # else only the endpoint tells the next DEL of them
        endpoint = attempt(runtime, "delete the endpoint", removal.delete_endpoint)
    if isinstance(endpoint, Unavailable):
        raise endpoint
    addresses = attempt(runtime, "release the addresses", removal.release)
    failure = looking or endpoint or device or addresses or others
    if failure is not None:
        raise failure


class _PodRemoval(RecordRemoval):
    """The endpoint of another sandbox stays. `_damaged` says that the pod's own record cannot be read."""

    _damaged = False

    def look(self) -> None:
        """An outage, and credentials that are refused, are told within ten seconds as something to retry."""
        first = self._call.deadline.sooner(self._runtime.clock.monotonic(), FIRST_ANSWER)
        expect_ipam(self._call, self._runtime)
        own = endpoint_key(self._identity)  # read by name too: a damaged record is in no listing
        needs = (CLUSTER, endpoints_like(self._identity), own)
        try:
            cluster, listed, named = fetch_sound(self._runtime.datastore, self._runtime.log, *needs, deadline=first)
        except Unauthorized as error:
            raise Unavailable(str(error)) from error
        if not isinstance(cluster, Damaged):
            require_ready(cluster)
        self._damaged = isinstance(named, Damaged)
        self._stored = matching(self._identity, if_sound(listed) or ())
        if self._stored is not None and self._is_of_other_interface(self._stored.record):
            self._runtime.log.info("Keeping what another interface has that is still there", endpoint=self._stored.key)
            self._keep = True

    def _is_of_other_interface(self, endpoint: WorkloadEndpoint) -> bool:
        """Only an endpoint of this very sandbox tells of the sandbox's interfaces."""
        return endpoint.container_id == self._call.request.container_id and self._has_other_interface(endpoint.endpoint)

    def delete_endpoint(self) -> None:
        if self._damaged and self._stored is None:
            self._delete_damaged()
            return
        stored = self._stored
        for _ in range(MAX_TRIES):  # not `until_won`: as often as the original tries, and ended in its words
            if self._keep or stored is None or not self._is_ours(stored.record):
                return
            try:
                self._runtime.datastore.delete(stored.key, stored.revision, self._call.deadline)
            except Missing:
                return
            except Unauthorized as error:
                raise Unavailable(str(error)) from error
            except Conflict as error:
                last = error
                stored = self._runtime.datastore.get(stored.key, self._call.deadline)
            else:
                return
        raise Refused(f"error deleting endpoint: endpoint was modified before it could be deleted: {last}")

    def _delete_damaged(self) -> None:
        """Its owner is unknown. It goes all the same, because every ADD of the pod fails as long as it is there."""
        try:
            self._runtime.datastore.delete(endpoint_key(self._identity), None, self._call.deadline)
        except Missing:
            return
        except Damaged as error:  # a pod, which goes with its own deletion
            tell_damaged(self._runtime.log, error)

    def _is_ours(self, endpoint: WorkloadEndpoint) -> bool:
        if endpoint.container_id in ("", self._call.request.container_id):
            return True
        self._runtime.log.info("Keeping the endpoint of a newer sandbox", container=endpoint.container_id)
        return False

    def release(self) -> None:
        if self._keep:
            return
        try:
            if self._call.netconf.ipam.type == AZURE:
                self._release_by_azure()
            else:
                super().release()
        except Unauthorized as error:
            raise Unavailable(str(error)) from error

    def _release_by_azure(self) -> None:
        from usecases.pods.azure_state import after_delete, before_delete

        request, netconf, node = self._call.request, self._call.netconf, self._runtime.node
        text = before_delete(node, netconf.name, request, self._call.netconf_text)
        if text is not None:
            self._runtime.ipam_plugin.delete(IpamCall(request, netconf, text), self._call.deadline)
            after_delete(node, netconf.name, request)
