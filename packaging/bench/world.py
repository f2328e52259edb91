"""What the candidates are measured on: datastores with one node and one pool, and namespaces to network.

    sqlite       a file
    etcd         a server of our own
    kubernetes   the tests' API server, asked with the token that the manifests give the plugins

All data are in memory where the machine has a file system there, so that no disk is measured.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from process import Call

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT), str(ROOT / "tests")]

NODE, POOL, GROUP = "bench", "10.64.0.0/10", "v1"
LIBRARY = {"TORTIE_TRANSPORT": "library"}
_MEMORY = Path("/dev/shm")  # noqa: S108 - only a random folder in it is used
_CLONE_NEWNET = 0x40000000
_NETCONF = {
    "cniVersion": "1.0.0",
    "name": "bench",
    "type": "calico",
    "nodename": NODE,
    "nodename_file_optional": True,
    "log_level": "error",
    "ipam": {"type": "calico-ipam"},
}


class Subject(NamedTuple):
    """An implementation: the folder of its `calico` and `calico-ipam`. It takes part in every so many rounds."""

    name: str
    folder: Path
    env: dict[str, str] = {}
    every: int = 1

    def version(self) -> Call:
        return Call([str(self.folder / "calico")], self.env | {"CNI_COMMAND": "VERSION"})


class Sandbox(NamedTuple):
    """`number` is also that of its pod, where the datastore has pods."""

    netns: str
    number: int


class Store:
    """A datastore of one kind."""

    def __init__(self, name: str, settings: dict[str, Any], lock: Path) -> None:
        self.name = name
        self._netconf = {**_NETCONF, **settings, "ipam_lock_file": str(lock)}

    def call(self, subject: Subject, verb: str, sandbox: Sandbox, program: str = "calico", turn: int = 0) -> Call:
        """`turn` tells containers of one sandbox apart."""
        container = f"{sandbox.number:05d}x{turn:05d}{subject.name[0]}"
        env = subject.env | {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": container,
            "CNI_NETNS": sandbox.netns,
            "CNI_IFNAME": "eth0",
            "CNI_PATH": str(subject.folder),
        }
        if self.name == "kubernetes":
            env["CNI_ARGS"] = (
                f"IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME=p{sandbox.number};"
                f"K8S_POD_INFRA_CONTAINER_ID={container}"
            )
        return Call([str(subject.folder / program)], env, json.dumps(self._netconf).encode())


def enter_network() -> None:
    """Go, with all servers and candidates, into a network namespace that holds nothing else."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        raise SystemExit(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A temporary folder. `TMPDIR` leads to it, too: servers keep their data there."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tortie-bench-", dir=place) as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


@contextmanager
def sandboxes(count: int) -> Iterator[list[Sandbox]]:
    names = [f"tortie-bench-{os.getpid()}-{number}" for number in range(count)]
    try:
        _in_batch(f"netns add {name}" for name in names)
        yield [Sandbox(f"/var/run/netns/{name}", number) for number, name in enumerate(names)]
    finally:
        _in_batch((f"netns del {name}" for name in names), "-force")


def _in_batch(lines: Iterator[str], *options: str) -> None:
    subprocess.run(["ip", *options, "-batch", "-"], input="\n".join(lines), text=True, check=not options, stderr=-3)


def initialise(tortie: Path, env: dict[str, str]) -> None:
    words = [str(tortie / "tortie"), "init", "--pool", POOL, "--node", NODE]
    subprocess.run(words, env=env, check=True, capture_output=True)


def sqlite_store(folder: Path, tortie: Path, name: str = "datastore") -> Store:
    database = str(folder / f"{name}.db")
    initialise(tortie, {"TORTIE_SQLITE_PATH": database})
    return Store("sqlite", {"datastore_type": "sqlite", "sqlite_path": database}, folder / "lock")


def etcd_store(folder: Path, tortie: Path, undo: ExitStack) -> tuple[Store, Any]:
    """And the server, for records of other origin."""
    from services.etcd import Etcd  # type: ignore[import-not-found]  # in tests, which are not checked with this

    server = undo.enter_context(Etcd(within=folder))
    initialise(tortie, {"DATASTORE_TYPE": "etcdv3", "ETCD_ENDPOINTS": server.url})
    return Store("etcd", {"datastore_type": "etcdv3", "etcd_endpoints": server.url}, folder / "lock"), server


def kubernetes_store(folder: Path, pods: int, undo: ExitStack) -> tuple[Store, Any]:
    """With so many pods on the node; and the server."""
    from services.apiserver import ApiServer  # type: ignore[import-not-found]  # as above

    server = undo.enter_context(ApiServer())
    cluster = server.cluster
    cluster.serve(GROUP)
    cluster.apply(ROOT / "manifests" / "rbac.yaml")
    cluster.add_namespace("bench")
    cluster.add_node(NODE)
    for number in range(pods):
        cluster.add_pod("bench", f"p{number}", node=NODE)
    pool = {"cidr": POOL, "blockSize": 26, "nodeSelector": "all()", "allowedUses": ["Workload", "Tunnel"]}
    pool |= {"assignmentMode": "Automatic", "ipipMode": "Never", "vxlanMode": "Never", "natOutgoing": True}
    cluster.add(GROUP, "ippools", "default-ipv4-ippool", pool)
    cluster.add(GROUP, "clusterinformations", "default", {"datastoreReady": True, "clusterGUID": "0" * 32})
    token = cluster.token("kube-system", "calico-cni-plugin")
    kubeconfig = server.kubeconfig(folder / "kubeconfig", token=token)
    settings = {"datastore_type": "kubernetes", "kubernetes": {"kubeconfig": str(kubeconfig)}}
    return Store("kubernetes", settings | {"policy": {"type": "k8s"}}, folder / "lock"), server


def find_servers() -> list[str]:
    """Which datastores there can be; what is missing is installed or built, outside of our namespace."""
    from services.apiserver import find_programs
    from services.etcd import find_etcd

    found = ["sqlite"]
    for name, find in (("etcd", find_etcd), ("kubernetes", find_programs)):
        try:
            find()
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            print(f"  no {name}: {error}")
        else:
            found.append(name)
    return found


def bare_interpreter() -> Call | None:
    """The bundle's, or the one that runs this, doing nothing."""
    python = shutil.which(os.path.realpath(sys.executable))
    return Call([python, "-ISB", "-c", ""], {}) if python else None
