"""The orchestrator's own objects: what Kubernetes says about pods, namespaces, nodes and virtual machines.

Only Kubernetes workloads ask. Without a configured cluster every verb raises `BadConfiguration(NOT_CONFIGURED)`.

Invariant: reading changes nothing; what is written about a pod goes through the datastore port, as its endpoint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ports.errors import Missing, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.pod import Namespace, Pod, VirtualMachineObject
    from ports.clock import Deadline

NOT_CONFIGURED = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)


class NoSuchObject(Missing):
    """The text is the API server's own, such as `pods "web-0" not found`; `key` is (plural, namespace, name)."""

    def __init__(self, key: object, text: str) -> None:
        PortError.__init__(self, text)
        self.key = key


class Cluster(ABC):
    """All verbs raise `NoSuchObject` when there is no such object, `Unavailable`, `Unauthorized` and `Refused`."""

    def expect(self, namespace: str, pod: str) -> None:  # noqa: B027 - an adapter that gains nothing by it does nothing
        """Both are going to be read within a moment: they may go along with whatever is asked before."""

    @abstractmethod
    def namespace(self, name: str, deadline: Deadline) -> Namespace: ...

    @abstractmethod
    def pod(self, namespace: str, name: str, deadline: Deadline) -> Pod:
        """What a read of this pod's endpoint moments ago has shown may be the answer: they are one object."""

    @abstractmethod
    def pod_now(self, namespace: str, name: str, deadline: Deadline) -> Pod:
        """The same as the API server says it now, whatever has been read before."""

    @abstractmethod
    def pods_on(self, node: str, deadline: Deadline) -> tuple[Pod, ...]:
        """All pods that are scheduled to a node, as they are now; () also for a node that nobody knows."""

    @abstractmethod
    def pod_cidrs(self, node: str, deadline: Deadline) -> tuple[str, ...]:
        """`spec.podCIDRs` of a node, else its `spec.podCIDR`, as texts; () when it has none."""

    @abstractmethod
    def virtual_machine_instance(self, namespace: str, name: str, deadline: Deadline) -> VirtualMachineObject: ...

    @abstractmethod
    def virtual_machine(self, namespace: str, name: str, deadline: Deadline) -> VirtualMachineObject: ...
