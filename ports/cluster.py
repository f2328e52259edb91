"""The orchestrator's own objects: what Kubernetes says about pods, namespaces and nodes.

Only Kubernetes workloads ask. Without a configured cluster every verb raises `BadConfiguration(NOT_CONFIGURED)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.deadline import Deadline

NOT_CONFIGURED = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)


class Cluster(ABC):
    @abstractmethod
    def namespace_labels(self, name: str, deadline: Deadline) -> Mapping[str, str]:
        """Labels of a namespace; `ports.errors.Missing` when there is none of that name."""
