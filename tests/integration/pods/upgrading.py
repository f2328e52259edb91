"""Nodes whose pods have addresses of host-local, and their upgrade to calico-ipam as an init container runs it.

Nodes share one cluster, one after the other: each has a range of pods of its own, so that nothing is to be cleared in
between.

Invariant: records are looked at past the product.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from integration.plugin.host import Answer
from integration.plugin.kubernetes_store import Served
from integration.plugin.store import IPAM, V3, cluster_records, node_record
from integration.pods.world import NAMESPACE, PodHost
from services.custom_resources import GROUPS
from services.etcd import EtcdServer
from services.kube_proxy import Asked, KubeProxy
from services.manifests import read, remove
from services.request_faults import after, before, lose_reply
from services.request_proxy import Cut, Request, RequestProxy

NETWORK = "k8s-pod-network"
POOL = "10.64.0.0/12"
ACCOUNT = ("kube-system", "tortie-node")
RIGHTS = Path(__file__).resolve().parents[3] / "manifests/parts/upgrade-account.yaml"
PROGRAMS = ("calico", "host-local")
_NUMBERS = itertools.count(1)


class Node:
    """One to be upgraded; `containers` is address → container."""

    def __init__(self, host: UpgradeHost, name: str, prefix: str, tunnel: str) -> None:
        self.host, self.name, self.prefix, self.tunnel_address = host, name, prefix, tunnel
        self.containers: dict[str, str] = {}
        self.reservations = host.folder / name / "networks" / NETWORK
        self.programs = host.folder / name / "bin"
        self.reservations.mkdir(parents=True)
        self.programs.mkdir()
        for program in (*PROGRAMS, "calico-ipam"):
            (self.programs / program).write_text("old")

    @property
    def handle_of_tunnel(self) -> str:
        return f"ipip-tunnel-addr-{self.name}"

    def reserve(self, last: object, container: str = "") -> str:
        """A running pod with the address `<prefix>.<last>`, and what host-local has written about it."""
        address = f"{self.prefix}.{last}"
        container = container or f"{next(_NUMBERS):012x}" + "e" * 52
        pod = f"pod-{address.replace('.', '-')}"
        self.host.cluster.add_pod(NAMESPACE, pod, node=self.name)
        self.host.cluster.set_pod_status(NAMESPACE, pod, phase="Running", podIP=address, podIPs=[{"ip": address}])
        self.put(address, f"{container}\r\neth0")
        self.containers[address] = container
        return container

    def put(self, name: str, text: str) -> None:
        path = self.reservations / name
        path.write_bytes(text.encode())
        path.chmod(0o600)

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **self.host.client,
            "KUBERNETES_NODE_NAME": self.name,
            "TORTIE_HOST_LOCAL_DIR": str(self.reservations),
            "TORTIE_CNI_BIN_DIR": str(self.programs),
            "TORTIE_UPGRADE_WAIT": "0",
            **more,
        }

    def upgrade(self, through: str = "", **more: str) -> Answer:
        return self.host.raw(self.environment(**more), "", "-upgrade", program="calico-ipam", through=through)

    def start(self, **more: str) -> subprocess.Popen[bytes]:
        return self.host.start(self.environment(**more), "-upgrade", program="calico-ipam")

    # What has come of it

    def recorded(self) -> dict[str, str]:
        """Address → handle, of those in the node's range."""
        allocated = self.host.store.allocated()
        return {
            address: handle
            for handle, places in allocated.items()
            for cidr, ordinal in places
            if (address := _address(cidr, ordinal)).startswith(f"{self.prefix}.")
        }

    def is_upgraded(self) -> None:
        """As if nothing had disturbed it."""
        expected = {address: f"{NETWORK}.{container}" for address, container in self.containers.items()}
        recorded = self.recorded()
        assert recorded == {**expected, self.tunnel_address: self.handle_of_tunnel}
        self.host.store.check()
        handles = self.host.store.handles()
        assert {sum(handles[handle]["block"].values()) for handle in recorded.values()} == {1}
        affinities = self.affinities()
        assert set(affinities.values()) == {"confirmed"}, affinities
        assert not self.reservations.exists()
        assert self.host.is_ready() is True
        assert self.tunnel() == self.tunnel_address
        assert sorted(path.name for path in self.programs.iterdir()) == ["calico-ipam"]

    def nothing_is_lost(self) -> None:
        """Each address is in its file, or recorded for its container; and for nobody else."""
        recorded = self.recorded()
        for address, container in self.containers.items():
            handle = f"{NETWORK}.{container}"
            assert (self.reservations / address).exists() or recorded.get(address) == handle, address
            assert recorded.get(address, handle) == handle, address

    def affinities(self) -> dict[str, str]:
        found = self.host.store.under(f"{IPAM}/host/{self.name}/ipv4/block/")
        return {key: value["state"] for key, value in found.items()}

    def tunnel(self) -> str:
        if self.host.kind == "etcd":
            spec: dict[str, Any] = self.host.store.under(f"{V3}/nodes/")[self.name]["spec"]
            return str(spec.get("bgp", {}).get("ipv4IPIPTunnelAddr", ""))
        metadata = self.host.cluster.client.get(f"/api/v1/nodes/{self.name}")["metadata"]
        return str(metadata.get("annotations", {}).get("projectcalico.org/IPv4IPIPTunnelAddr", ""))


class UpgradeHost(PodHost):
    """`client` is how an upgrade finds its datastore, past proxies that see each request."""

    def __init__(
        self, binaries: Path, folder: Path, undo: ExitStack, kind: str, served: Served, etcd: EtcdServer | None
    ) -> None:
        super().__init__(binaries, folder, undo, kind, served, etcd)
        self.store.begin()
        self.store.put_all(cluster_records(POOL))
        self.cluster.add_namespace(NAMESPACE)
        self.api = undo.enter_context(KubeProxy(served.server, netns=self.net.path))
        self.config = self.api.kubeconfig(folder / "upgrade.kubeconfig", token=self._token(undo))
        self.client = {"KUBECONFIG": str(self.config), "HOME": str(folder)}
        self.requests: RequestProxy | None = None
        if etcd is not None and kind == "etcd":
            self.requests = undo.enter_context(RequestProxy(etcd.port, netns=self.net.path, port=23791))
            self.client |= {"DATASTORE_TYPE": "etcdv3", "ETCD_ENDPOINTS": self.requests.url}
        else:
            self.client |= {"CALICO_API_GROUP": GROUPS[kind]}

    def _token(self, undo: ExitStack) -> str:
        """With the rights that the shipped manifest gives an upgrade, and no others."""
        client = self.cluster.client
        self.cluster.add_account(*ACCOUNT)
        undo.callback(client.delete, f"/api/v1/namespaces/{ACCOUNT[0]}/serviceaccounts/{ACCOUNT[1]}")
        self.cluster.apply(RIGHTS)
        undo.callback(remove, client, read(RIGHTS))
        return self.cluster.token(*ACCOUNT)

    def node(self, *, large: bool = False) -> Node:
        """With a range of 250 pods, or of thousands."""
        number = next(_NUMBERS)
        prefix = "10.79" if large else f"10.{64 + number // 256}.{number % 256}"
        pod_cidr = "10.79.0.0/18" if large else f"{prefix}.0/24"
        node = Node(self, f"up-{number}", prefix, pod_cidr.replace(".0/18", ".1").replace(".0/24", ".1"))
        if self.kind == "etcd":
            self.store.put_all(node_record(node.name))
        self.give_pod_cidrs(node.name, [pod_cidr])
        return node

    def is_ready(self) -> bool | None:
        spec = self.store.under(f"{V3}/clusterinformations/")["default"]["spec"]
        ready: bool | None = spec.get("datastoreReady")
        return ready

    def seen(self) -> list[Asked] | list[Request]:
        """Requests to the datastore since the last time that something was armed."""
        return self.requests.requests if self.requests else self.api.asked

    def at_request(self, number: int, step: Callable[[], None], *, carried_out: bool) -> None:
        """Take the step when the datastore's request of that number has come, or has been carried out."""
        if self.requests:
            self.requests.arm(lambda request, replied: (request.number, replied) == (number, carried_out), step)
        else:
            action = (after if carried_out else before)(step)
            self.api.arm(lambda asked: asked.number == number, action, times=1)

    def lose_answer(self, number: int) -> None:
        """The datastore carries that request out, once; the connection ends before its answer."""
        if self.requests:
            self.at_request(number, _cut, carried_out=True)
        else:
            self.api.arm(lambda asked: asked.number == number, lose_reply, times=1)

    def forget(self) -> None:
        if self.requests:
            self.requests.listen()
        self.api.forget()


def _cut() -> None:
    raise Cut


def ended(node: Node, number: int, *, carried_out: bool, by: signal.Signals = signal.SIGKILL) -> int:
    """Begin an upgrade, and send it the signal at that request; how it has ended."""
    started: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        while not started:
            time.sleep(0.001)
        started[0].send_signal(by)
        if by == signal.SIGKILL:
            started[0].wait()

    node.host.at_request(number, kill, carried_out=carried_out)
    process = node.start()
    started.append(process)
    process.communicate(timeout=60)
    node.host.forget()
    return process.returncode


def _address(cidr: str, ordinal: int) -> str:
    head, _, last = cidr.partition("/")[0].rpartition(".")
    return f"{head}.{int(last) + ordinal}"
