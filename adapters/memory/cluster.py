"""The orchestrator as a dict of namespaces; None stands for a node without any cluster configured."""

from __future__ import annotations

from ports.cluster import NOT_CONFIGURED, Cluster
from ports.errors import BadConfiguration, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.deadline import Deadline


class MemoryCluster(Cluster):
    """`namespaces` maps a namespace's name to its labels; a test may change it at any time."""

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.namespaces = namespaces

    def namespace_labels(self, name: str, deadline: Deadline) -> Mapping[str, str]:  # noqa: ARG002 - answers at once
        if self.namespaces is None:
            raise BadConfiguration(NOT_CONFIGURED)
        if name not in self.namespaces:
            raise Missing(f"Namespace({name})", f'namespaces "{name}" not found')
        return self.namespaces[name]
