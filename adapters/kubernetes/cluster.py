"""What Kubernetes says about pods, namespaces, nodes and virtual machines.

Invariant: reading changes nothing, and a pod or namespace that was read moments ago is not read again (`Api`), unless
somebody asks how it is now.
"""

from __future__ import annotations

from adapters.kubernetes.answers import NOT_FOUND
from adapters.kubernetes.objects import all_of, one, read_objects
from adapters.kubernetes.paths import KUBEVIRT, PODS, namespace_path, namespaced_path, node_path, pod_path
from adapters.records.kubernetes_nodes import pod_cidrs
from adapters.records.kubernetes_objects import decode_namespace, decode_pod, decode_virtual_machine_object
from ports.cluster import Cluster, NoSuchObject
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.kubernetes.api import Api
    from adapters.kubernetes.objects import Object
    from domain.workload.pod import Namespace, Pod, VirtualMachineObject
    from ports.clock import Deadline


class KubernetesCluster(Cluster):
    def __init__(self, api: Api) -> None:
        self._api = api

    def expect(self, namespace: str, pod: str) -> None:
        self._api.expect([one(namespace_path(namespace)), one(pod_path(namespace, pod))])

    def namespace(self, name: str, deadline: Deadline) -> Namespace:
        return decode_namespace(self._read(namespace_path(name), ("namespaces", "", name), deadline))

    def pod(self, namespace: str, name: str, deadline: Deadline) -> Pod:
        return decode_pod(self._read(pod_path(namespace, name), ("pods", namespace, name), deadline))

    def pod_now(self, namespace: str, name: str, deadline: Deadline) -> Pod:
        self._api.forget(pod_path(namespace, name))
        return self.pod(namespace, name, deadline)

    def pods_on(self, node: str, deadline: Deadline) -> tuple[Pod, ...]:
        """One that cannot be read is an error: of a pod that is not told would be concluded that it is gone."""
        (found,) = read_objects(self._api, [all_of(PODS, fields=f"spec.nodeName={node}")], deadline)
        return tuple([decode_pod(value) for value in found or () if isinstance(value, dict)])

    def pod_cidrs(self, node: str, deadline: Deadline) -> tuple[str, ...]:
        return pod_cidrs(self._read(node_path(node), ("nodes", "", node), deadline))

    def virtual_machine_instance(self, namespace: str, name: str, deadline: Deadline) -> VirtualMachineObject:
        return self._virtual("virtualmachineinstances", namespace, name, deadline)

    def virtual_machine(self, namespace: str, name: str, deadline: Deadline) -> VirtualMachineObject:
        return self._virtual("virtualmachines", namespace, name, deadline)

    def _virtual(self, plural: str, namespace: str, name: str, deadline: Deadline) -> VirtualMachineObject:
        path = namespaced_path(plural, namespace, name, KUBEVIRT)
        return decode_virtual_machine_object(self._read(path, (plural, namespace, name), deadline))

    def _read(self, path: str, key: tuple[str, str, str], deadline: Deadline) -> Object:
        (reply,) = self._api.read([one(path)], deadline)
        if reply.ok:
            return reply.object
        raise NoSuchObject(key, reply.message) if reply.status == NOT_FOUND else Refused(reply.message)
