"""Write a pod's endpoint over whatever an earlier sandbox of the pod has left there.

Others write it meanwhile (kubelet, calicoctl, a controller), so a lost race is tried again with what is stored then.
The original gives up at the first.

A pod that is deleted and made again under its name is another one, though: the call for the first is late then.

Invariant: what this call does not decide (uid, creation time, what others added) stays as it is stored.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from ports.datastore import WorkloadEndpointKey
from ports.errors import AlreadyExists, Conflict, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import WorkloadEndpoint
    from ports.clock import Deadline
    from ports.datastore import Datastore, Stored
    from ports.runtime import Runtime
    from usecases.calls.safeguards import Undo

MAX_WRITES = 5


def store_pod_endpoint(
    runtime: Runtime,
    endpoint: WorkloadEndpoint,
    existing: Stored[WorkloadEndpoint] | None,
    deadline: Deadline,
    undo: Undo,
) -> None:
    """`existing` is the pod's endpoint as it was read. `Conflict`: every try lost. CniError: the pod was made again."""
    datastore = runtime.datastore
    key = WorkloadEndpointKey(endpoint.metadata.namespace, endpoint.metadata.name)

    def restore(deadline: Deadline) -> None:
        """Only over this call's own record, which may be there although its write failed: the answer can get lost.

        An earlier record without addresses counts as a missing one.
        """
        stored = datastore.get(key, deadline)
        earlier = existing.record if existing else None
        if stored is None or not _is_of_this_call(stored.record, endpoint, earlier):
            return
        if earlier is None or not earlier.ip_networks or earlier.container_id in ("", endpoint.container_id):
            datastore.delete(key, stored.revision, deadline)
        else:
            datastore.update(key, earlier, stored.revision, deadline)

    undo.register("store WorkloadEndpoint", restore)
    stored = existing
    for _ in range(MAX_WRITES - 1):  # not `until_won`: as often as the original tries; the last write's error counts
        try:
            return _write_once(datastore, key, endpoint, stored, deadline)
        except (Conflict, AlreadyExists, Missing) as error:
            if stored is None and isinstance(error, Missing):  # the pod itself is gone
                raise
            stored = datastore.get(key, deadline)
            _require_same(existing, stored)
    return _write_once(datastore, key, endpoint, stored, deadline)


def _require_same(existing: Stored[WorkloadEndpoint] | None, stored: Stored[WorkloadEndpoint] | None) -> None:
    if existing is None or stored is None:
        return
    was, now = existing.record.metadata.uid, stored.record.metadata.uid
    if was and was != now:
        name = f"{stored.record.metadata.namespace}/{stored.record.pod}"
        raise CniError(INTERNAL, f"pod {name} was made again during this call: its uid is {now}, not {was}")


def _write_once(
    datastore: Datastore,
    key: WorkloadEndpointKey,
    endpoint: WorkloadEndpoint,
    stored: Stored[WorkloadEndpoint] | None,
    deadline: Deadline,
) -> None:
    if stored is None:
        datastore.create(key, endpoint, deadline)
    else:
        datastore.update(key, _over(stored.record, endpoint), stored.revision, deadline)


def _is_of_this_call(stored: WorkloadEndpoint, endpoint: WorkloadEndpoint, earlier: WorkloadEndpoint | None) -> bool:
    """By the container; addresses tell only an earlier call for the same one apart.

    In a Kubernetes datastore the addresses of a pod are those that its kubelet has reported, and not the new sandbox's.
    """
    if stored.container_id != endpoint.container_id:
        return False
    repeated = earlier is not None and earlier.container_id == endpoint.container_id
    return not repeated or stored.ip_networks == endpoint.ip_networks


def _over(stored: WorkloadEndpoint, endpoint: WorkloadEndpoint) -> WorkloadEndpoint:
    metadata = endpoint.metadata.replace(
        uid=stored.metadata.uid,
        created=stored.metadata.created,
        annotations=stored.metadata.annotations,
        unknown=stored.metadata.unknown,
    )
    return endpoint.replace(metadata=metadata, unknown=stored.unknown, spec_unknown=stored.spec_unknown)
