"""A Kubernetes pod, as far as networking it asks: what it is, where it runs, and what its owner wishes for it.

Invariant: this is the pod as one read gave it; `revision` names that version of the object.
"""

from __future__ import annotations

from domain.resource import NO_LABELS
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class ContainerPort(Value):
    """A port as a container declares it. `protocol` may be ""; 0 and "" where the pod says nothing."""

    port: int
    name: str = ""
    protocol: str = ""
    host_port: int = 0
    host_ip: str = ""


class OwnerReference(Value):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class Pod(Value):
    """`labels` and `annotations` are the pod's own.

    `node` is "" while it is not scheduled. `ips` are `status.podIPs`, else `status.podIP`, as texts without prefix.
    `ports` are those of the containers, then of the init containers, in the pod's order. `deleting`: the object has a
    deletion timestamp.
    """

    name: str
    namespace: str
    uid: str = ""
    revision: str = ""
    created: str = ""
    generate_name: str = ""
    labels: Mapping[str, str] = NO_LABELS
    annotations: Mapping[str, str] = NO_LABELS
    owners: tuple[OwnerReference, ...] = ()
    deleting: bool = False
    node: str = ""
    service_account: str = ""
    host_network: bool = False
    ports: tuple[ContainerPort, ...] = ()
    phase: str = ""
    ips: tuple[str, ...] = ()


class Namespace(Value):
    name: str
    labels: Mapping[str, str] = NO_LABELS
    annotations: Mapping[str, str] = NO_LABELS


class VirtualMachineObject(Value):
    """A KubeVirt VirtualMachine or VirtualMachineInstance; only its metadata counts."""

    name: str
    namespace: str
    uid: str = ""
    deleting: bool = False
    owners: tuple[OwnerReference, ...] = ()
