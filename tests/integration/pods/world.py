"""A node of a Kubernetes cluster as its kubelet and container runtime see it: pods, their sandboxes, and three places
where Calico's records may be.

Invariant: pods always come from the API server; only Calico's own records are elsewhere with etcd.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from adapters.kubernetes.api import Api
from adapters.kubernetes.datastore import KubernetesDatastore
from adapters.linux.clock import SystemClock
from adapters.records.codec import encode
from integration.plugin.host import Answer, Container, Host
from integration.plugin.kernel import NUMBERS, Namespace
from integration.plugin.kubernetes_store import KubernetesRecords, Served
from integration.plugin.store import IPAM, NODE, EtcdRecords, Records, pool_record
from ports.datastore import WorkloadEndpoints
from services.custom_resources import GROUPS
from services.etcd import EtcdServer
from services.tcp_proxy import TcpProxy

K8S_POLICY = {"type": "k8s"}
NAMESPACE = "test"


class EtcdBesidePods(EtcdRecords):
    """Calico's records in etcd, the pods in Kubernetes; CNI 0.3.1 is what this has been tried with for years."""

    def __init__(self, server: EtcdServer, port: int, served: Served, kubeconfig: Path) -> None:
        super().__init__(server, port)
        self.served = served
        self.settings |= {"cniVersion": "0.3.1", "policy": K8S_POLICY, "kubernetes": {"kubeconfig": str(kubeconfig)}}

    def begin(self) -> None:
        super().begin()
        self.served.fresh("v1")


class Sandbox(Container):
    """A container that is a pod's sandbox."""

    def __init__(self, identity: str, netns: Namespace | str, pod: str, namespace: str, ifname: str = "eth0") -> None:
        super().__init__(identity, netns, ifname)
        self.pod = pod
        self.namespace = namespace
        self.args = f"K8S_POD_NAME={pod};K8S_POD_NAMESPACE={namespace};K8S_POD_INFRA_CONTAINER_ID=whatever"

    @property
    def host_name(self) -> str:
        return "cali" + hashlib.sha1(f"{self.namespace}.{self.pod}".encode()).hexdigest()[:11]  # noqa: S324 - a name

    def with_interface(self, ifname: str) -> Sandbox:
        return Sandbox(self.identity, self.space or self.netns, self.pod, self.namespace, ifname)


class PodHost(Host):
    """`kind` is where Calico's records are: `etcd`, or in Kubernetes in group `v1` or `v3`."""

    def __init__(
        self, binaries: Path, folder: Path, undo: ExitStack, kind: str, served: Served, etcd: EtcdServer | None
    ) -> None:
        super().__init__(binaries, folder, undo)
        self.kind = kind
        self.served = served
        self.cluster = served.server.cluster
        self.proxy = undo.enter_context(TcpProxy(served.port, host=served.host, netns=self.net.path))
        kubeconfig = served.kubeconfig(folder / "kubeconfig", self.proxy.port)
        self.store = self._records(kubeconfig, etcd)

    def _records(self, kubeconfig: Path, etcd: EtcdServer | None) -> Records:
        if self.kind == "etcd":
            assert etcd is not None
            proxy = self.undo.enter_context(TcpProxy(etcd.port, host=etcd.host, netns=self.net.path, port=23790))
            return EtcdBesidePods(etcd, proxy.port, self.served, kubeconfig)
        records = KubernetesRecords(self.served, self.kind, kubeconfig)
        records.settings |= {"policy": K8S_POLICY}
        return records

    @property
    def keeps_macs(self) -> bool:
        """Whether endpoints are records of their own, which go at DEL and have more than pods say."""
        return self.kind == "etcd"

    # What there is to begin with

    def pools(self, *cidrs: str, block_size: int = 26, **spec: Any) -> None:
        for cidr in cidrs:
            self.store.put_all(pool_record(cidr, blockSize=122 if ":" in cidr else block_size, **spec))

    def fill(self, *blocks: str) -> None:
        """Take every address of these blocks, which are another node's."""
        for cidr in blocks:
            size = 1 << (32 - int(cidr.partition("/")[2]))
            tail = f"ipv4/block/{cidr.replace('/', '-')}"
            block = {
                "cidr": cidr,
                "affinity": "host:node-b",
                "strictAffinity": False,
                "allocations": [0] * size,
                "unallocated": [],
                "attributes": [{"handle_id": "test-handle", "secondary": {"node": "node-b"}}],
                "deleted": False,
                "sequenceNumber": 100,
                "sequenceNumberForAllocation": {str(ordinal): 100 for ordinal in range(size)},
            }
            self.store.put(f"{IPAM}/assignment/{tail}", block)
        self.store.put(f"{IPAM}/handle/test-handle", {"block": dict.fromkeys(blocks, 8), "deleted": False})

    def give_pod_cidrs(self, node: str, ranges: list[str]) -> None:
        """As the controller manager would; the node is added if the cluster has none of that name."""
        client, path = self.cluster.client, f"/api/v1/nodes/{node}"
        if client.find(path) is None:
            self.cluster.add_node(node, pod_cidrs=ranges)
        else:
            client.patch(path, {"spec": {"podCIDR": ranges[0], "podCIDRs": ranges}})

    def pod(
        self, name: str = "", *, namespace: str = NAMESPACE, node: str = NODE, identity: str = "", **more: Any
    ) -> Sandbox:
        """Create a pod and give it a sandbox; `more` is annotations, labels, ports and so on."""
        name = name or f"test-pod-{next(NUMBERS)}"
        self.cluster.add_pod(namespace, name, node=node, **more)
        return self.sandbox(name, namespace=namespace, identity=identity)

    def sandbox(self, pod: str, *, namespace: str = NAMESPACE, identity: str = "") -> Sandbox:
        """One more sandbox of a pod, with a namespace of its own."""
        number = next(NUMBERS)
        return Sandbox(identity or f"{number:010x}" + "0" * 54, Namespace("pod", self.undo), pod, namespace)

    # What a runtime does

    def environment(self, verb: str, container: Container, **more: str | None) -> dict[str, str]:
        if isinstance(container, Sandbox) and more.get("CNI_ARGS") is None:
            more["CNI_ARGS"] = container.args
        return super().environment(verb, container, **more)

    def tortie(self, *words: str) -> Answer:
        """An operator's command, on the records' datastore."""
        if self.kind == "etcd":
            environment = {"DATASTORE_TYPE": "etcdv3", "ETCD_ENDPOINTS": self.store.settings["etcd_endpoints"]}
        else:
            config = self.served.kubeconfig(self.folder / "admin.kubeconfig", self.proxy.port, administrator=True)
            environment = {"DATASTORE_TYPE": "kubernetes", "KUBECONFIG": str(config)}
            environment["CALICO_API_GROUP"] = GROUPS[self.kind]
        return self.raw(environment, "", *words, program="tortie")

    def clean(self) -> None:
        """Records agree with themselves, and an operator's check has nothing to say."""
        self.store.check()
        answer = self.tortie("ipam", "check")
        assert answer.exit == 0, answer
        assert "Clean" in answer.stdout, answer

    # What has come of it

    def stored(self) -> dict[str, Any]:
        """Endpoints by namespace and name, in etcd's form. In Kubernetes each pod is one, even without addresses."""
        if self.kind == "etcd":
            return self.store.endpoints()
        clock = SystemClock()
        datastore = KubernetesDatastore(Api(self.served.transport, clock), clock, group=GROUPS[self.kind])
        found = datastore.list(WorkloadEndpoints(), clock.deadline(30))
        return {
            f"{one.record.metadata.namespace}/{one.record.metadata.name}": json.loads(encode(one.key, one.record))
            for one in found
        }

    def endpoint(self, sandbox: Sandbox) -> dict[str, Any]:
        endpoint: dict[str, Any] = self.stored()[endpoint_key(sandbox)]
        return endpoint

    def annotations(self, sandbox: Sandbox) -> dict[str, str]:
        found: dict[str, str] = self.cluster.pod(sandbox.namespace, sandbox.pod)["metadata"].get("annotations", {})
        return found

    def holds(self, container: Container, network: str = "net1") -> list[str]:
        """The addresses that the container's handle has."""
        places = self.store.allocated().get(f"{network}.{container.identity}", [])
        return [address_at(cidr, ordinal) for cidr, ordinal in places]


def endpoint_key(sandbox: Sandbox, node: str = NODE) -> str:
    pod, node = sandbox.pod.replace("-", "--"), node.replace("-", "--")
    return f"{sandbox.namespace}/{node}-k8s-{pod}-eth0"


def address_at(cidr: str, ordinal: int) -> str:
    network = cidr.partition("/")[0]
    head, _, last = network.rpartition(".")
    return f"{head}.{int(last) + ordinal}"
