"""Replaying a recording of the original on a real kube-apiserver: the same for objects as `Replay` does for records.

Invariant: of objects nothing is dropped but their resourceVersion, which counts the writes of the whole server.
"""

from __future__ import annotations

import json
import re
from typing import Any

from integration.plugin.replay import Labels, Replay
from integration.pods.world import PodHost
from services.cluster import Cluster

NAMESPACE = "gold"
NODES = {"node-a": ("10.50.1.0/24", "fd50:1::/64"), "node-b": ("10.50.2.0/24", "fd50:2::/64")}
_POD_MEMBERS = ("name", "namespace", "uid", "labels", "annotations", "ownerReferences")


class KubernetesReplay(Replay):
    host: PodHost

    def __init__(self, host: PodHost, recorded: dict[str, Any]) -> None:
        super().__init__(host, recorded)
        self.recorded, self.ours = ObjectLabels(), ObjectLabels()
        self.name: str = recorded["name"]

    def begin(self, records: dict[str, Any]) -> None:
        cluster: Cluster = self.host.cluster
        self.host.store.begin()
        cluster.add_namespace(NAMESPACE)
        for node, ranges in NODES.items():
            cluster.add_node(node, pod_cidrs=ranges)
        for key, value in records.items():
            plural, name = key.split("/")
            if plural == "pods":
                metadata = {member: value["metadata"].get(member, {}) for member in ("labels", "annotations")}
                cluster.add_pod(NAMESPACE, name, node=self._node_of(name), **metadata)
            else:
                cluster.add(self.host.kind, plural, name, value["spec"])

    def _node_of(self, pod: str) -> str:
        """Where it is said to be networked."""
        for step in self.steps:
            if f"K8S_POD_NAME={pod};" in step["call"]["env"]["CNI_ARGS"] + ";":
                node: str = json.loads(step["call"]["stdin"])["nodename"]
                return node
        raise AssertionError(pod)

    def texts(self) -> dict[str, str]:
        found = self.host.cluster.calico(self.host.kind)
        for pod in self.host.cluster.client.list(f"/api/v1/namespaces/{NAMESPACE}/pods"):
            metadata = {member: value for member, value in pod["metadata"].items() if member in _POD_MEMBERS}
            status = {member: pod["status"][member] for member in ("phase", "podIPs") if member in pod["status"]}
            found[f"pods/{metadata['name']}"] = {"metadata": metadata, "status": status}
        return {key: json.dumps(value) for key, value in found.items()}

    def namespace_seen(self, step: dict[str, Any]) -> str:
        """After the late DEL of the first sandbox the recorder looked at the second, which must be as it was."""
        late = self.name == "kdd-late-del" and step is self.steps[2]
        return "g2" if late else super().namespace_seen(step)

    def _localise_netconf(self, text: str) -> str:
        more = {"ipam_lock_file": str(self.host.folder / "ipam.lock")}
        text = text.replace("<KUBECONFIG>", self.host.store.settings["kubernetes"]["kubeconfig"])
        local = '"ipam": {"type": "host-local"'
        text = text.replace(local, f'{local}, "dataDir": "{self.host.folder}/networks"')
        return self._localise(re.sub(r"^\{", "{" + json.dumps(more)[1:-1] + ", ", text))


class ObjectLabels(Labels):
    def records(self, texts: dict[str, Any]) -> dict[str, Any]:
        return super().records({key: one if isinstance(one, str) else json.dumps(one) for key, one in texts.items()})

    def _record(self, key: str, record: dict[str, Any]) -> Any:
        record["metadata"].pop("resourceVersion", None)
        if key.startswith("ipamblocks/"):
            record["spec"] = super()._record(key, record["spec"])
        return self.apply(record)
