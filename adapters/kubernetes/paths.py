"""Where Kubernetes' own objects are.

Invariant: a name that would lead to something else raises BadRecord.
"""

from __future__ import annotations

from adapters.records.custom_names import ObjectKey, path_segment

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


def node_path(name: str) -> str:
    return f"{NODES}/{path_segment(ObjectKey('Node', name), name)}"


def namespace_path(name: str, root: str = _CORE) -> str:
    return f"{root}/namespaces/{path_segment(ObjectKey('Namespace', name), name)}"


def namespaced_path(plural: str, namespace: str, name: str, root: str = _CORE) -> str:
    segment = path_segment(ObjectKey(plural, f"{namespace}/{name}"), name)
    return f"{namespace_path(namespace, root)}/{plural}/{segment}"


def pod_path(namespace: str, name: str) -> str:
    return namespaced_path("pods", namespace, name)
