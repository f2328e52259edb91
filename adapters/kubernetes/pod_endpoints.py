"""Workload endpoints, which Kubernetes has no objects for: an endpoint is what its pod says, and a write annotates it.

What an ADD stores (addresses, container) goes into annotations with one patch of the pod's status. That patch names
no version, as a kubelet writes the same object all the time, and nobody else writes these annotations; but it names the
uid of the pod that was read, since another one may be made under its name meanwhile. What a DEL takes away belongs to
one sandbox of one pod, so that patch names both.

Invariant: the revision of an endpoint is `<resourceVersion>/<uid>` of its pod, with a third part when the pod has no
address left to take away.
"""

from __future__ import annotations

from adapters.kubernetes.answers import refusal
from adapters.kubernetes.objects import UNCHECKED, Family, all_of, one, read_objects
from adapters.kubernetes.paths import PODS, namespace_path, pod_path
from adapters.kubernetes.transport.seam import STRATEGIC_MERGE_PATCH, HttpRequest
from adapters.records.kubernetes_objects import (
    POD_IP,
    POD_IPS,
    decode_pod,
    endpoint_patch,
    endpoint_removal_patch,
)
from adapters.records.members import BadRecord
from domain.workload.identity import KUBERNETES, parse_name
from domain.workload.pod_endpoint import is_networked, pod_endpoint, without_wishes
from ports.datastore import Stored, WorkloadEndpointKey, WorkloadEndpoints
from ports.errors import Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from adapters.kubernetes.answers import Reply
    from adapters.kubernetes.api import Api
    from adapters.kubernetes.objects import Found, Object
    from domain.workload.endpoint import WorkloadEndpoint
    from domain.workload.pod import Pod
    from ports.clock import Deadline
    from ports.datastore import Need, Revision

_MALFORMED = "malformed WorkloadEndpoint name - unable to determine Pod name"
_BLANK = "blank"


class PodEndpoints(Family):
    """`host_prefix` is the text of FELIX_INTERFACEPREFIX."""

    def __init__(self, api: Api, host_prefix: str) -> None:
        self._api = api
        self._host_prefix = host_prefix

    def requests(self, need: Need[Any], deadline: Deadline) -> tuple[HttpRequest, ...]:  # noqa: ARG002 - asks nobody first
        if isinstance(need, WorkloadEndpointKey):
            pod = _pod_name(need.name)
            return (one(pod_path(need.namespace, pod)),) if pod else ()
        assert isinstance(need, WorkloadEndpoints)  # noqa: S101 - what else there is of this kind
        pod = _listed_pod(need)
        if need.namespace and pod:
            return (one(pod_path(need.namespace, pod)),)
        fields = f"spec.nodeName={need.node}" if need.node else ""
        return (all_of(f"{namespace_path(need.namespace)}/pods" if need.namespace else PODS, fields=fields),)

    def answer(self, need: Need[Any], found: list[Found], deadline: Deadline) -> Any:  # noqa: ARG002 - has all it needs
        if isinstance(need, WorkloadEndpointKey):
            return self._one(need, found)
        assert isinstance(need, WorkloadEndpoints)  # noqa: S101 - as above
        (objects,) = found
        listed = []
        for value in objects if isinstance(objects, list) else [objects] if objects else []:
            stored = self._listed(value)
            if stored is None or need.node not in ("", stored.record.node):
                continue
            if stored.record.metadata.name.startswith(need.name_prefix):
                listed.append(stored)
        return tuple(listed)

    def create(self, key: WorkloadEndpointKey, record: WorkloadEndpoint, deadline: Deadline) -> Stored[Any]:
        """The pod must be there: `Missing` if it is not."""
        return self._store(key, record, "", deadline)

    def _store(self, key: WorkloadEndpointKey, record: WorkloadEndpoint, uid: str, deadline: Deadline) -> Stored[Any]:
        if record.metadata.name != key.name:
            raise BadRecord(key, f"its name is {record.metadata.name!r}")
        if record.metadata.namespace != key.namespace:
            raise BadRecord(key, f"its namespace is {record.metadata.namespace!r}")
        reply = self._patch(key, endpoint_patch(record, uid), deadline)
        if not reply.ok:
            raise refusal(reply, key)
        return self._written(key, reply.object)

    def update(
        self,
        key: WorkloadEndpointKey,
        record: WorkloadEndpoint,
        replaces: Revision,
        deadline: Deadline,
    ) -> Stored[Any]:
        """Of `replaces` the uid counts, as the module says: `Missing` if the pod has been made again."""
        return self._store(key, record, "".join(replaces.split("/")[1:2]), deadline)

    def delete(self, key: WorkloadEndpointKey, replaces: Revision | None, deadline: Deadline) -> None:
        version, uid, *blank = (replaces or self._any_version(key, deadline)).split("/")
        if blank:
            return
        reply = self._patch(key, endpoint_removal_patch(version, uid), deadline)
        if not reply.ok:
            raise refusal(reply, key)

    def _any_version(self, key: WorkloadEndpointKey, deadline: Deadline) -> Revision:
        """The endpoint's revision without the version."""
        stored = self._one(key, read_objects(self._api, self.requests(key, deadline), deadline))
        if stored is None:
            raise Missing(key)
        return "/" + stored.revision.partition("/")[2]

    def _one(self, key: WorkloadEndpointKey, found: list[Found]) -> Stored[WorkloadEndpoint] | None:
        """None for a pod that is no endpoint, or that of another name: it has moved to another node since."""
        value = found[0] if found else None
        pod = decode_pod(value) if isinstance(value, dict) else None
        if pod is None or not is_networked(pod):
            return None
        stored = self._stored(pod)
        return stored if stored.key == key else None

    def _listed(self, value: Object) -> Stored[WorkloadEndpoint] | None:
        try:
            pod = decode_pod(value)
            return self._stored(pod) if is_networked(pod) else None
        except BadRecord:
            return None

    def _stored(self, pod: Pod) -> Stored[WorkloadEndpoint]:
        """Of a networked pod. Where annotations cannot be read, the endpoint is without any but the container's ID."""
        try:
            endpoint = pod_endpoint(pod, self._host_prefix)
        except ValueError:
            endpoint = self._plain(pod)
        return Stored(WorkloadEndpointKey(pod.namespace, endpoint.metadata.name), endpoint, _revision(pod))

    def _plain(self, pod: Pod) -> WorkloadEndpoint:
        try:
            return pod_endpoint(without_wishes(pod), self._host_prefix)
        except ValueError as error:
            raise BadRecord(WorkloadEndpointKey(pod.namespace, pod.name), str(error)) from error

    def _written(self, key: WorkloadEndpointKey, value: Object) -> Stored[WorkloadEndpoint]:
        return self._stored(decode_pod(value)).replace(key=key)

    def _patch(self, key: WorkloadEndpointKey, patch: str, deadline: Deadline) -> Reply:
        pod = _pod_name(key.name)
        if not pod:
            raise Missing(key, _MALFORMED)
        path = f"{pod_path(key.namespace, pod)}/status"
        return self._api.write(HttpRequest("PATCH", path, UNCHECKED, patch.encode(), STRATEGIC_MERGE_PATCH), deadline)


def _pod_name(name: str) -> str:
    """The pod that an endpoint's name means, "" if none."""
    try:
        identity = parse_name(name)
    except ValueError:
        return ""
    return identity.pod if identity.orchestrator == KUBERNETES else ""


def _listed_pod(listing: WorkloadEndpoints) -> str:
    """The one pod that a listing is about, or "" for one about more. `Missing` for one that can be about none."""
    prefix = listing.name_prefix
    pod = _pod_name(prefix)
    if prefix and not pod:
        raise Missing(WorkloadEndpointKey(listing.namespace, prefix), _MALFORMED)
    return pod


def _revision(pod: Pod) -> Revision:
    """A pod that got its address from somebody who leaves no annotations still has one to take away."""
    annotations = pod.annotations
    blank = not (annotations.get(POD_IP) or annotations.get(POD_IPS)) and (POD_IP in annotations or not pod.ips)
    parts = (pod.revision, pod.uid, _BLANK) if blank else (pod.revision, pod.uid)
    return "/".join(parts)
