"""Whose interface a call is about: the identifiers from which every name of the workload follows.

Invariant: `identify` depends on the call's own words only, so ADD, CHECK and DEL of one container agree, whatever
the datastore says. (The original resolves a Mesos namespace label on ADD alone and then never finds the endpoint.)
"""

from __future__ import annotations

from domain.value import Value
from domain.workload.mesos import mesos_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.request import CniArgs, Request
    from domain.workload.endpoint import WorkloadEndpoint

KUBERNETES, CNI, LIBNETWORK = "k8s", "cni", "libnetwork"
DEFAULT_NAMESPACE = "default"
_LAUNCHER = "virt-launcher-"  # KubeVirt's pods


class Identity(Value):
    """Texts; "" where something does not apply or is not known yet.

    `pod` identifies the workload under Kubernetes, `container_id` under plain CNI, `workload` under any orchestrator
    but those and libnetwork. `endpoint` is the interface name inside the container.
    """

    orchestrator: str = ""
    node: str = ""
    pod: str = ""
    namespace: str = ""
    container_id: str = ""
    endpoint: str = ""
    workload: str = ""

    @property
    def is_named_as_launcher(self) -> bool:
        """Whether it is worth asking if the pod runs a virtual machine; the name alone is no proof."""
        return self.orchestrator == KUBERNETES and self.pod.startswith(_LAUNCHER)


def identify(request: Request, args: CniArgs, mesos_labels: tuple[tuple[str, str], ...], node: str) -> Identity:
    """The identity a call speaks of. A pod name and a namespace together make it a Kubernetes workload."""
    if args.pod_name and args.pod_namespace:
        return Identity(
            orchestrator=KUBERNETES,
            node=node,
            pod=args.pod_name,
            namespace=args.pod_namespace,
            container_id=request.container_id,
            endpoint=request.ifname,
        )
    return Identity(
        orchestrator=CNI,
        node=node,
        namespace=mesos_namespace(mesos_labels) or args.test_namespace or DEFAULT_NAMESPACE,
        container_id=request.container_id,
        endpoint=request.ifname,
    )


def identity_of(endpoint: WorkloadEndpoint) -> Identity:
    """The identity that a stored endpoint states."""
    return Identity(
        orchestrator=endpoint.orchestrator,
        node=endpoint.node,
        pod=endpoint.pod,
        namespace=endpoint.metadata.namespace,
        container_id=endpoint.container_id,
        endpoint=endpoint.endpoint,
        workload=endpoint.workload,
    )
