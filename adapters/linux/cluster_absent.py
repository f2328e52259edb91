"""The cluster of a node that has none: calls that need no orchestrator never notice, others say what is missing."""

from __future__ import annotations

from ports.cluster import NOT_CONFIGURED, Cluster
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.deadline import Deadline


class AbsentCluster(Cluster):
    def namespace_labels(self, name: str, deadline: Deadline) -> Mapping[str, str]:  # noqa: ARG002 - nobody to ask
        raise BadConfiguration(NOT_CONFIGURED)
