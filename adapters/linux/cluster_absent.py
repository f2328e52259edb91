"""The cluster of a node that has none: calls that need no orchestrator never notice, others say what is missing.

Invariant: asked for anything, it says what to configure.
"""

from __future__ import annotations

from ports.cluster import NOT_CONFIGURED, Cluster
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.pod import Namespace, Pod, VirtualMachineObject
    from ports.clock import Deadline


class AbsentCluster(Cluster):
    def namespace(self, name: str, deadline: Deadline) -> Namespace:  # noqa: ARG002 - nobody to ask
        raise BadConfiguration(NOT_CONFIGURED)

    def pod(self, namespace: str, name: str, deadline: Deadline) -> Pod:  # noqa: ARG002 - nobody to ask
        raise BadConfiguration(NOT_CONFIGURED)

    def pod_now(self, namespace: str, name: str, deadline: Deadline) -> Pod:  # noqa: ARG002 - nobody to ask
        raise BadConfiguration(NOT_CONFIGURED)

    def pods_on(self, node: str, deadline: Deadline) -> tuple[Pod, ...]:  # noqa: ARG002 - nobody to ask
        raise BadConfiguration(NOT_CONFIGURED)

    def pod_cidrs(self, node: str, deadline: Deadline) -> tuple[str, ...]:  # noqa: ARG002 - nobody to ask
        raise BadConfiguration(NOT_CONFIGURED)

    def virtual_machine_instance(
        self,
        namespace: str,  # noqa: ARG002 - nobody to ask
        name: str,  # noqa: ARG002 - nobody to ask
        deadline: Deadline,  # noqa: ARG002 - nobody to ask
    ) -> VirtualMachineObject:
        raise BadConfiguration(NOT_CONFIGURED)

    def virtual_machine(self, namespace: str, name: str, deadline: Deadline) -> VirtualMachineObject:  # noqa: ARG002 - nobody to ask
        raise BadConfiguration(NOT_CONFIGURED)
