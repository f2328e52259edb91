"""The orchestrator as dicts of its objects; `namespaces` None stands for a node without any cluster configured.

Invariant: what is not in the dicts is missing in the words of the API server.
"""

from __future__ import annotations

from domain.workload.pod import Namespace
from ports.cluster import NOT_CONFIGURED, Cluster, NoSuchObject
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from domain.workload.pod import Pod, VirtualMachineObject
    from ports.clock import Deadline

    Found = TypeVar("Found")


class MemoryCluster(Cluster):
    """`namespaces` maps a namespace's name to its labels.

    `annotations` (of namespaces), `pods`, `nodes` (their pod CIDRs), `instances` and `machines` are dicts that a test
    fills and may change at any time; keys of namespaced objects are (namespace, name).
    """

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.namespaces = namespaces
        self.annotations: dict[str, Mapping[str, str]] = {}
        self.pods: dict[tuple[str, str], Pod] = {}
        self.nodes: dict[str, tuple[str, ...]] = {}
        self.instances: dict[tuple[str, str], VirtualMachineObject] = {}
        self.machines: dict[tuple[str, str], VirtualMachineObject] = {}

    def namespace(self, name: str, deadline: Deadline) -> Namespace:  # noqa: ARG002 - answers at once
        self._require_configured()
        labels = self._find("namespaces", "", name, (self.namespaces or {}).get(name))
        return Namespace(name, labels, self.annotations.get(name, {}))

    def pod(self, namespace: str, name: str, deadline: Deadline) -> Pod:  # noqa: ARG002 - answers at once
        return self._find("pods", namespace, name, self.pods.get((namespace, name)))

    def pod_now(self, namespace: str, name: str, deadline: Deadline) -> Pod:
        return self.pod(namespace, name, deadline)

    def pods_on(self, node: str, deadline: Deadline) -> tuple[Pod, ...]:  # noqa: ARG002 - answers at once
        self._require_configured()
        return tuple([self.pods[key] for key in sorted(self.pods) if self.pods[key].node == node])

    def pod_cidrs(self, node: str, deadline: Deadline) -> tuple[str, ...]:  # noqa: ARG002 - answers at once
        return self._find("nodes", "", node, self.nodes.get(node))

    def virtual_machine_instance(self, namespace: str, name: str, deadline: Deadline) -> VirtualMachineObject:  # noqa: ARG002 - answers at once
        kind = "virtualmachineinstances.kubevirt.io"
        return self._find(kind, namespace, name, self.instances.get((namespace, name)))

    def virtual_machine(self, namespace: str, name: str, deadline: Deadline) -> VirtualMachineObject:  # noqa: ARG002 - answers at once
        return self._find("virtualmachines.kubevirt.io", namespace, name, self.machines.get((namespace, name)))

    def _require_configured(self) -> None:
        if self.namespaces is None:
            raise BadConfiguration(NOT_CONFIGURED)

    def _find(self, kind: str, namespace: str, name: str, found: Found | None) -> Found:
        self._require_configured()
        if found is None:
            raise NoSuchObject((kind, namespace, name), f'{kind} "{name}" not found')
        return found
