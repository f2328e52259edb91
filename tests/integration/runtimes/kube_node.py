"""A node of the cluster: a machine, its runtime and its kubelet; and the routes by which nodes reach each other's pods.

Routes between nodes are not the plugins' business: `Routes` plays a node agent's part, by the blocks that nodes hold.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from integration.runtimes.containerd import BIN, Containerd
from integration.runtimes.nodes import Node, Process
from services.kube_client import KubeClient, Object, Refused

if TYPE_CHECKING:
    from integration.runtimes.cluster import KubeCluster

_BLOCKS = "/apis/crd.projectcalico.org/v1/blockaffinities"
_TIMED = """#!/bin/bash
began=${EPOCHREALTIME/./}
/opt/cni/bin/timed/calico
code=$?
took=$((${EPOCHREALTIME/./} - began))
uid=${CNI_ARGS##*K8S_POD_UID=}
[ "$CNI_COMMAND" != ADD ] || echo "${uid%%;*} $took" >>/run/timed
exit $code
"""
_KUBELET: Object = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "readOnlyPort": 0,
    "failCgroupV1": False,
    "cgroupDriver": "cgroupfs",
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "oomScoreAdj": 0,
    "failSwapOn": False,
    "makeIPTablesUtilChains": False,
    "localStorageCapacityIsolation": False,
    "evictionHard": dict.fromkeys(
        ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"), "0%"
    ),
    "imageMinimumGCAge": "24h",
    "nodeStatusUpdateFrequency": "2s",
    "nodeLeaseDurationSeconds": 8,
    "volumePluginDir": "/var/lib/kubelet/volumeplugins",
    "resolvConf": "",
    "registerWithTaints": [],
}


class KubeNode:
    """A machine, its runtime and its kubelet."""

    def __init__(self, cluster: KubeCluster, node: Node) -> None:
        self.cluster, self.node, self.name = cluster, node, node.name
        self.runtime = Containerd(node)
        self.kubelet: Process

    def start(self) -> None:
        self.node.run("mkdir", "-p", BIN)
        self.node.run("cp", "/usr/lib/cni/loopback", "/usr/lib/cni/portmap", BIN)
        self.runtime.__enter__()
        self.runtime.load(self.cluster.image)
        self.launch()

    def launch(self) -> None:
        """The kubelet, on a runtime that runs."""
        server, folder = self.cluster.server, self.node.folder
        user = server.client_certificate(f"system:node:{self.name}", "system:nodes", inline=True)
        config = server.kubeconfig(folder / "kubelet.kubeconfig", user=user)
        settings = folder / "kubelet.json"
        settings.write_text(json.dumps(_KUBELET | {"containerRuntimeEndpoint": f"unix://{self.runtime.socket}"}))
        words = [self.cluster.programs["kubelet"], "--config", str(settings), "--kubeconfig", str(config)]
        words += ["--hostname-override", self.name, "--node-ip", f"{self.node.address4},{self.node.address6}"]
        self.kubelet = self.node.start(*words, "--root-dir", "/var/lib/kubelet", "--cert-dir", "/var/lib/kubelet/pki")

    def lose(self) -> None:
        self.node.halt()

    def come_back(self) -> None:
        self.node.boot()
        self.cluster.routes.forget(self.node)
        self.runtime.launch()
        self.launch()

    def execute(self, pod: Object, *words: str) -> tuple[int, str]:
        """In a pod of this node."""
        identity = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        return self.runtime.execute(identity, *words)

    def pod_links(self) -> list[str]:
        return [one["ifname"] for one in self.node.show("link") if one["ifname"].startswith("cali")]

    def results(self) -> list[str]:
        """Of the CNI library, which keeps each ADD's until its DEL."""
        return self.node.run("sh", "-c", "ls /var/lib/cni/results 2>/dev/null || true").split()

    @contextmanager
    def timed(self, took: dict[str, float]) -> Iterator[None]:
        """Adds the seconds of each ADD of our plugin meanwhile to those of its pod's uid, once it is left."""
        self.node.run("mkdir", "-p", f"{BIN}/timed")
        self.node.run("mv", f"{BIN}/calico", f"{BIN}/timed/calico")
        self.node.write(f"{BIN}/calico", _TIMED, 0o755)
        yield
        self.node.run("mv", f"{BIN}/timed/calico", f"{BIN}/calico")
        for line in self.node.run("cat", "/run/timed").splitlines():
            uid, microseconds = line.split()
            took[uid] = took.get(uid, 0.0) + int(microseconds) / 1e6


class Routes(threading.Thread):
    """Tells each node where the blocks of the others are."""

    def __init__(self, cluster: KubeCluster, client: KubeClient) -> None:
        super().__init__(daemon=True)
        self._cluster, self._client = cluster, client
        self._ended = threading.Event()
        self._known: dict[str, set[tuple[str, str]]] = {}

    def forget(self, node: Node) -> None:
        self._known.pop(node.name, None)

    def are_known(self) -> bool:
        """Whether each node that is up has been told of each block that there is."""
        return all(wanted <= self._known.get(here.name, set()) for here, wanted in self._wanted() if here.is_up)

    def run(self) -> None:
        while not self._ended.wait(0.2):
            with suppress(OSError, Refused, RuntimeError):
                for here, wanted in self._wanted():
                    self._tell(here, wanted)

    def _wanted(self) -> list[tuple[Node, set[tuple[str, str]]]]:
        blocks = [(one["spec"]["cidr"], one["spec"]["node"]) for one in self._client.list(_BLOCKS)]
        nodes = dict(self._cluster.nodes)
        return [(nodes[here].node, {one for one in blocks if one[1] in nodes.keys() - {here}}) for here in nodes]

    def _tell(self, here: Node, wanted: set[tuple[str, str]]) -> None:
        known = self._known.setdefault(here.name, set())
        for cidr, name in wanted - known:
            if here.is_up:
                other = self._cluster.nodes[name].node
                here.run("ip", "route", "replace", cidr, "via", other.address6 if ":" in cidr else other.address4)
                known.add((cidr, name))

    def end(self) -> None:
        self._ended.set()
        self.join(30)
