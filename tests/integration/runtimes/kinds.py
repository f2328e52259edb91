"""The kinds of network: `calico` on each datastore, and `my-custom-cni` with host-local.

Invariant: what a plugin is told comes from files of the node, as it would on a machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from integration.plugin.kubernetes_store import ACCOUNT, MANIFEST
from integration.runtimes.containerd import BIN
from integration.runtimes.networks import Network
from integration.runtimes.nodes import GATEWAY4
from services.apiserver import ApiServer
from services.etcd import Etcd

POOLS = ("10.44.0.0/16", "fd44::/112")
KUBECONFIG = "/etc/cni/net.d/calico-kubeconfig"
DATABASE = "/var/lib/tortie/datastore.db"
_HOLD_DATABASE = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
time.sleep(600)
"""
_HOLD_LOCK = """
import fcntl, os, sys, time
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


class Calico(Network):
    settings: dict[str, Any]

    @property
    def main(self) -> dict[str, Any]:
        ipam = {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"}
        return {"type": "calico", "nodename": self.node.name, "log_level": "info", "ipam": ipam} | self.settings

    def initialise(self) -> None:
        self.tortie("init", "--node", self.node.name, *(word for pool in POOLS for word in ("--pool", pool)))

    def records(self) -> list[str]:
        checked = self.node.call(f"{BIN}/tortie", "ipam", "check", **self.environment)
        found = [] if checked.returncode == 0 else [f"ipam check: {checked.stdout}{checked.stderr}"]
        for line in self.tortie("ipam", "show").splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split("|")]
            if cells[0] == "IP Pool" and not cells[3].startswith("0 "):
                found.append(f"addresses: {line}")
        endpoints = json.loads(self.tortie("get", "workloadendpoints", "--all-namespaces", "-o", "json"))["items"]
        # A pod that waits for another try is an endpoint without addresses.
        return found + [f"endpoint {one['metadata']['name']}" for one in endpoints if one["spec"].get("ipNetworks")]


class Embedded(Calico):
    environment = {"TORTIE_SQLITE_PATH": DATABASE}
    settings = {"datastore_type": "sqlite", "sqlite_path": DATABASE}

    def prepare(self) -> None:
        self.initialise()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        with self.holding(_HOLD_DATABASE, DATABASE):
            yield


class OnEtcd(Calico):
    def prepare(self) -> None:
        self.etcd = self.undo.enter_context(Etcd(host=GATEWAY4))
        self.settings = {"datastore_type": "etcdv3", "etcd_endpoints": self.etcd.url}
        self.environment = {"DATASTORE_TYPE": "etcdv3", "ETCD_ENDPOINTS": self.etcd.url}
        self.initialise()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        self.etcd.pause()
        try:
            yield
        finally:
            self.etcd.resume()


class OnKubernetes(Calico):
    """Pods are objects of the API server as well, so the plugin finds their namespace, labels and account."""

    def prepare(self) -> None:
        self.server = self.undo.enter_context(ApiServer(address=GATEWAY4))
        cluster = self.server.cluster
        cluster.serve("v1")
        cluster.apply(MANIFEST)
        cluster.add_node(self.node.name)
        token = cluster.token(*ACCOUNT, seconds=7200)
        self.node.write(
            KUBECONFIG, self.server.kubeconfig(self.node.folder / "plugins.kubeconfig", token=token).read_text(), 0o600
        )
        admin = self.server.client_certificate("admin", "system:masters", inline=True)
        config = self.server.kubeconfig(self.node.folder / "admin.kubeconfig", user=admin)
        self.environment = {"DATASTORE_TYPE": "kubernetes", "KUBECONFIG": str(config)}
        self.settings = {
            "datastore_type": "kubernetes",
            "policy": {"type": "k8s"},
            "kubernetes": {"kubeconfig": KUBECONFIG},
        }
        self.initialise()

    def add_pod(self, name: str) -> str:
        return str(self.server.cluster.add_pod("default", name, node=self.node.name)["metadata"]["uid"])

    @contextmanager
    def stalled(self) -> Iterator[None]:
        self.server.pause()
        try:
            yield
        finally:
            self.server.resume()

    def drop_pod(self, name: str) -> None:
        self.server.client.drop(f"/api/v1/namespaces/default/pods/{name}")


class Bridge(Network):
    """`my-custom-cni` with addresses from host-local; its bridge stays when the last container goes."""

    main = {
        "type": "my-custom-cni",
        "bridge": "mycni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": "10.44.0.0/24"}], [{"subnet": "fd44::/120"}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
        },
    }

    @contextmanager
    def stalled(self) -> Iterator[None]:
        with self.holding(_HOLD_LOCK, f"/var/lib/cni/networks/{self.name}/lock"):
            yield

    def _links(self) -> set[str]:
        return super()._links() - {"mycni0"}

    def _routes(self) -> set[str]:
        return {line for line in super()._routes() if "mycni0" not in line}

    def records(self) -> list[str]:
        kept = self.node.disk(f"var/lib/cni/networks/{self.name}")
        names = [path.name for path in kept.iterdir()] if kept.exists() else []
        return [f"address {name}" for name in names if name != "lock" and not name.startswith("last_reserved_ip")]


KINDS: dict[str, type[Network]] = {"etcd": OnEtcd, "kubernetes": OnKubernetes, "embedded": Embedded, "bridge": Bridge}
