"""Where Kubernetes' own objects are, and whether an answer is about what a path asks for.

A proxy or a server gone wrong may send any object in place of the right one. Whoever took it for the right one would
change somebody else's object, or take what is no listing for an empty one: nothing is in use, every node is gone.

Invariant: a name that would lead to something else raises BadRecord. What passes as an answer has the kind, the name
and the namespace that the path says, and a version to name when it is changed. Items of a listing have the same but the
kind, which the server does not repeat.
"""

from __future__ import annotations

from adapters.records.custom_names import KIND_OF, ObjectKey, path_segment
from adapters.records.members import BadRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.kubernetes.transport.seam import HttpRequest
    from domain.json_text import Json

_CORE = "/api/v1"
NODES, NAMESPACES, PODS, SERVICE_ACCOUNTS = (
    f"{_CORE}/{plural}" for plural in ("nodes", "namespaces", "pods", "serviceaccounts")
)
FOREIGN_KINDS = {
    "nodes": "Node",
    "namespaces": "Namespace",
    "pods": "Pod",
    "serviceaccounts": "ServiceAccount",
    "virtualmachines": "VirtualMachine",
    "virtualmachineinstances": "VirtualMachineInstance",
}
"""By the plural in their paths; those that are not Calico's."""
KUBEVIRT = "/apis/kubevirt.io/v1"
CORE_RESOURCES = _CORE
"""Answered with what there is in the oldest group."""
TOKEN_REQUEST = "TokenRequest"  # noqa: S105 - no secret
"""The kind of what is asked of an account, and of the answer."""


def node_path(name: str) -> str:
    return f"{NODES}/{path_segment(ObjectKey('Node', name), name)}"


def namespace_path(name: str, root: str = _CORE) -> str:
    return f"{root}/namespaces/{path_segment(ObjectKey('Namespace', name), name)}"


def namespaced_path(plural: str, namespace: str, name: str, root: str = _CORE) -> str:
    segment = path_segment(ObjectKey(plural, f"{namespace}/{name}"), name)
    return f"{namespace_path(namespace, root)}/{plural}/{segment}"


def pod_path(namespace: str, name: str) -> str:
    return namespaced_path("pods", namespace, name)


def token_path(namespace: str, account: str) -> str:
    """Where to ask for a token of a service account."""
    return f"{namespaced_path('serviceaccounts', namespace, account)}/token"


_DELETED = "Status"
_LONGEST_NAME = 100  # characters of a stranger's name that are shown


def stranger(request: HttpRequest, found: dict[str, Json]) -> str:
    """What is wrong with the object that answers a request; "" if nothing is."""
    parts = request.path.split("/")[1:]
    place = 2 if parts[0] == "api" else 3
    if len(parts) <= place:
        listed, what = ("resources", f"resources in {parts[1]}") if len(parts) > 1 else ("groups", "API groups")
        return "" if isinstance(found.get(listed), list) else f"{_shown(found)} instead of the list of {what}"
    version, parts = "/".join(parts[1:place] if place == 3 else parts[1:2]), parts[place:]
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    kind, name = KIND_OF.get(parts[0]) or FOREIGN_KINDS.get(parts[0], ""), "/".join(parts[1:2])
    if request.method == "DELETE" and found.get("kind") == _DELETED:
        return ""
    if request.method == "GET" and not name:
        return _wrong_list(found, version, f"{kind}List")
    if parts[2:] == ["token"]:
        return "" if found.get("kind") == TOKEN_REQUEST else f"{_shown(found)} instead of {TOKEN_REQUEST}"
    if found.get("apiVersion") != version or (kind and found.get("kind") != kind):
        return f"{_shown(found)} instead of {kind} in {version}"
    # An object that was just made has a name that the path does not say.
    return _incomplete(found) or (_misnamed(found, name, namespace) if name else "")


def _wrong_list(found: dict[str, Json], version: str, kind: str) -> str:
    items, metadata = found.get("items"), found.get("metadata")
    if found.get("apiVersion") != version or found.get("kind") != kind:
        return f"{_shown(found)} instead of {kind} in {version}"
    if not (items is None and "items" in found) and not isinstance(items, list):
        return f"{kind} without items"
    if not isinstance((metadata if isinstance(metadata, dict) else {}).get("continue", ""), str):
        return f"{kind} whose token is no text"
    for item in items or ():
        wrong = _incomplete(item) if isinstance(item, dict) else "an item that is no object"
        if wrong:
            return f"{kind} with {wrong}"
    return ""


def _incomplete(found: dict[str, Json]) -> str:
    metadata = found.get("metadata")
    for member in ("name", "resourceVersion"):
        value = metadata.get(member) if isinstance(metadata, dict) else None
        if not isinstance(value, str) or not value:
            return f"{_shown(found)} without metadata.{member}"
    return ""


def _misnamed(found: dict[str, Json], name: str, namespace: str) -> str:
    metadata = found["metadata"]
    assert isinstance(metadata, dict)  # noqa: S101 - it has a name
    try:
        same = path_segment("", str(metadata["name"])) == name and metadata.get("namespace", "") == namespace
    except BadRecord:
        same = False
    return "" if same else f"{_shown(found)} instead of {name}"


def _shown(found: dict[str, Json]) -> str:
    """Kind and name."""
    kind, metadata = found.get("kind"), found.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    words = [word[:_LONGEST_NAME] for word in (kind, name) if isinstance(word, str) and word]
    return " ".join(words) or "an object without kind and name"
