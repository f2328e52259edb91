"""Nodes and profiles: records that Kubernetes' own objects stand for, and that only their owners write.

The one exception is the address of a node's IPIP device, which an upgrade from host-local stores where the original
does: in an annotation, by way of the node's status.

Invariant: nothing else here writes.
"""

from __future__ import annotations

from adapters.kubernetes.answers import refusal
from adapters.kubernetes.objects import Family, all_of, one, read_objects, unsupported
from adapters.kubernetes.paths import (
    NAMESPACES,
    NODES,
    SERVICE_ACCOUNTS,
    namespace_path,
    namespaced_path,
    node_path,
)
from adapters.kubernetes.transport.seam import STRATEGIC_MERGE_PATCH, HttpRequest
from adapters.records.custom_resources import ObjectKey, object_revision
from adapters.records.endpoints import DEFAULT_ALLOW
from adapters.records.kubernetes_nodes import decode_kubernetes_node, tunnel_patch
from adapters.records.kubernetes_profiles import namespace_profile, profile_source, service_account_profile
from adapters.records.members import BadRecord
from domain.json_text import dumps
from ports.datastore import BadText, NodeKey, Nodes, ProfileKey, Stored
from ports.errors import AlreadyExists, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from adapters.kubernetes.api import Api
    from adapters.kubernetes.objects import Found, Object
    from domain.cluster import Node
    from ports.clock import Deadline
    from ports.datastore import Need, Revision

_DEFAULT_ALLOW_KEY = ProfileKey(DEFAULT_ALLOW.metadata.name)
_DEFAULT_ALLOW = Stored(_DEFAULT_ALLOW_KEY, DEFAULT_ALLOW, "1")


class KubernetesNodes(Family):
    def __init__(self, api: Api) -> None:
        self._api = api

    def requests(self, need: Need[Any], deadline: Deadline) -> tuple[HttpRequest, ...]:  # noqa: ARG002 - asks nobody first
        return (one(node_path(need.name)) if isinstance(need, NodeKey) else all_of(NODES),)

    def answer(self, need: Need[Any], found: list[Found], deadline: Deadline) -> Any:  # noqa: ARG002 - has all it needs
        (value,) = found
        if isinstance(need, Nodes):
            return _readable(_node, value)
        return _node(value) if isinstance(value, dict) else None

    def update(self, key: NodeKey, record: Node, replaces: Revision, deadline: Deadline) -> Stored[Any]:
        """Of the record only what it says of the node's tunnels, which must be something."""
        path, patch = f"{node_path(key.name)}/status", tunnel_patch(record, replaces)
        if not patch:
            raise unsupported("Update", key)
        reply = self._api.write(
            HttpRequest("PATCH", path, body=patch.encode(), content_type=STRATEGIC_MERGE_PATCH), deadline
        )
        if not reply.ok:
            raise refusal(reply, key)
        return _node(reply.object)

    def unreadable(self, deadline: Deadline) -> tuple[BadText, ...]:
        """Of a node that is not told of it would be concluded that it is gone."""
        (objects,) = read_objects(self._api, [all_of(NODES)], deadline)
        faults = []
        for value in objects if isinstance(objects, list) else ():
            try:
                decode_kubernetes_node(value)
            except BadRecord as error:
                name = error.key.name if isinstance(error.key, ObjectKey) else ""
                faults.append(BadText(NodeKey(name), error.fault, dumps(value), object_revision(value)))
        return tuple(faults)


class DerivedProfiles(Family):
    """One per namespace (`kns.`) and service account (`ksa.`), and the one that allows everything."""

    def requests(self, need: Need[Any], deadline: Deadline) -> tuple[HttpRequest, ...]:  # noqa: ARG002 - asks nobody first
        if not isinstance(need, ProfileKey):
            return (all_of(NAMESPACES), all_of(SERVICE_ACCOUNTS))
        if need == _DEFAULT_ALLOW_KEY:
            return ()
        source = profile_source(need.name)
        if source is None:  # in the original's words: it takes a name with a dot for a name with a revision
            raise Refused("Revision  invalid" if "." in need.name else f"Invalid name {need.name}")
        namespace, account = source
        return (one(namespaced_path("serviceaccounts", namespace, account) if account else namespace_path(namespace)),)

    def answer(self, need: Need[Any], found: list[Found], deadline: Deadline) -> Any:  # noqa: ARG002 - has all it needs
        if not isinstance(need, ProfileKey):
            namespaces, accounts = found
            listed = (*_readable(namespace_profile, namespaces), *_readable(service_account_profile, accounts))
            return (*listed, _DEFAULT_ALLOW)
        if not found:
            return _DEFAULT_ALLOW
        read = namespace_profile if need.name.startswith("kns.") else service_account_profile
        return read(found[0]) if isinstance(found[0], dict) else None

    def create(self, key: Any, record: Any, deadline: Deadline) -> Stored[Any]:  # noqa: ARG002 - never done
        if key == _DEFAULT_ALLOW_KEY:
            raise AlreadyExists(key)
        raise unsupported("Create", key)


def _node(value: Object) -> Stored[Node]:
    node = decode_kubernetes_node(value)
    revision: Revision = object_revision(value)
    return Stored(NodeKey(node.metadata.name), node, revision)


def _readable(read: Callable[[Object], Stored[Any]], objects: Found) -> tuple[Stored[Any], ...]:
    """Those of a collection that can be read."""
    found = []
    for value in objects if isinstance(objects, list) else ():
        try:
            found.append(read(value))
        except BadRecord:
            continue
    return tuple(found)
