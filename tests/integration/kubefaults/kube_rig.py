"""A node of a real cluster whose way to the API server can be broken at any request, and the question what is left.

Several rigs share one cluster at once: each call is about a pod of its own, and, where a block is to be claimed, about
a node of its own. So "nothing is left" is asked of one pod's records, and `everything_agrees` once nobody calls.

Invariant: what a rig has started ends with it.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from domain.ipam.address import Cidr
from domain.ipam.block_order import name_seed, start_index
from integration.faults.rig import trace
from integration.plugin.host import Answer, Container
from integration.plugin.kernel import Namespace
from integration.plugin.kubernetes_store import POD_IPS, Served
from integration.plugin.store import cluster_records
from integration.pods.world import PodHost, Sandbox
from services.custom_resources import GROUPS
from services.kube_proxy import KubeProxy
from services.tcp_proxy import TcpProxy

T = TypeVar("T")
R = TypeVar("R")
SPACE, NETWORK = "gold", "k8s-pod-network"
POOL, BLOCK_LENGTH = "10.64.0.0/12", 26
TRY_AGAIN_LATER = 11
_NUMBERS = itertools.count(1)
_WANTED: set[int] = set()
_NAMING = threading.Lock()


class KubeRig(PodHost):
    """`proxy` is the way from this host to the API server. `node` is the name of the node that calls are made on."""

    proxy: KubeProxy  # the other suites have one that knows no requests

    def __init__(self, binaries: Path, folder: Path, undo: ExitStack, kind: str, served: Served) -> None:
        super().__init__(binaries, folder, undo, kind, served, None)
        self.way: TcpProxy = self.proxy  # which only breaks as a whole
        self.proxy = undo.enter_context(KubeProxy(served.server, netns=self.net.path))
        self.node = "node-a"
        self.more_environment: dict[str, str] = {}
        self.use(self.proxy.kubeconfig(folder / "kubeconfig", token=served.token))

    def use(self, kubeconfig: Path | str) -> None:
        self.store.settings |= {"kubernetes": {"kubeconfig": str(kubeconfig)}}

    def netconf(self, **more: Any) -> dict[str, Any]:
        return super().netconf(**{"cniVersion": "1.0.0", "name": NETWORK, "nodename": self.node, **more})

    def environment(self, verb: str, container: Container, **more: str | None) -> dict[str, str]:
        return super().environment(verb, container, **{**self.more_environment, **more})

    # What there is to begin with

    def begin(self, *, kubevirt: bool = False) -> None:
        """An empty cluster but for a pool, this node, and the namespace of the pods."""
        self.served.fresh(self.kind, *(["kubevirt"] if kubevirt else []))
        self.store.put_all(cluster_records(POOL))
        self.cluster.add_namespace(SPACE)

    def new_node(self) -> str:
        """Calls are made on a node from now on that has no block, and no notes of earlier calls."""
        self.forget_notes()
        self.node = _node_with_a_block_of_its_own()
        self.cluster.add_node(self.node, labels={"name": self.node})
        return self.node

    def forget_notes(self) -> None:
        """As a restart of the host does."""
        (self.folder / "ipam.lock").unlink(missing_ok=True)

    def pod(self, name: str = "", **more: Any) -> Sandbox:
        return super().pod(name, **{"namespace": SPACE, "node": self.node, **more})

    def timed(self, verb: str, sandbox: Sandbox, **more: Any) -> tuple[Answer, float]:
        began = time.monotonic()
        answer = self.call(verb, sandbox, **more)
        return answer, time.monotonic() - began

    # What has come of it

    def annotations(self, sandbox: Sandbox) -> dict[str, str]:
        return super().annotations(sandbox) or {}

    def address(self, sandbox: Sandbox) -> str:
        """The one address that records give the sandbox."""
        (address,) = self.holds(sandbox, NETWORK)
        return address

    def networked(self, sandbox: Sandbox, answer: Answer) -> None:
        """The answer's one address is what handle, block, pod and devices have."""
        (ip,) = answer.result()["ips"]
        address = ip["address"].partition("/")[0]
        assert self.holds(sandbox, NETWORK) == [address]
        assert self.handle(sandbox) is not None
        assert self.annotations(sandbox)[POD_IPS] == f"{address}/32"
        assert self.annotations(sandbox)["cni.projectcalico.org/containerID"] == sandbox.identity
        assert sandbox.inside.addresses("eth0") == [f"{address}/32"]
        assert self.devices() == {sandbox.host_name}

    def gone(self, sandbox: Sandbox) -> None:
        """There is no trace of it in records, of the pod, on the host and inside."""
        self.offline(sandbox)
        self.holds_nothing(sandbox)
        assert not self.annotations(sandbox).get(POD_IPS)

    def holds_nothing(self, sandbox: Container) -> None:
        assert self.handle(sandbox) is None
        assert self.holds(sandbox, NETWORK) == []

    def offline(self, sandbox: Sandbox) -> None:
        """It has no device, and nobody holds the lock."""
        assert sandbox.inside.names() == {"lo"}
        assert self.devices() == set()
        assert [route for family in (4, 6) for route in self.net.routes(family) if route.get("dev") != "lo"] == []
        assert self._lock_holders() == []

    def handle(self, sandbox: Container) -> Any:
        return self.cluster.client.find(f"/apis/{GROUPS[self.kind]}/ipamhandles/{NETWORK}.{sandbox.identity}")

    def everything_agrees(self) -> None:
        """Blocks and handles agree, and an operator's check has nothing to say. Nobody may be calling."""
        self.store.check()
        answer = self.tortie_check()
        assert answer.exit == 0, answer
        assert "Clean" in answer.stdout, answer

    def tortie_check(self) -> Answer:
        config = self.served.kubeconfig(self.folder / "admin.kubeconfig", self.way.port, administrator=True)
        environment = {"DATASTORE_TYPE": "kubernetes", "KUBECONFIG": str(config), "HOME": str(self.folder)}
        environment["CALICO_API_GROUP"] = GROUPS[self.kind]
        return self.raw(environment, "", "ipam", "check", program="tortie")


def _node_with_a_block_of_its_own() -> str:
    """The name of a node that claims first a block that no other of this process does, so that its calls do not differ
    by chance.
    """
    pool = Cidr.parse(POOL)
    with _NAMING:
        while True:
            name = f"node-{next(_NUMBERS)}"
            wanted = start_index(pool, BLOCK_LENGTH, name_seed(name))
            if wanted not in _WANTED:
                _WANTED.add(wanted)
                return name


class KubeRigs:
    """Some rigs that share the work of a test, and one cluster."""

    def __init__(self, rigs: Sequence[KubeRig]) -> None:
        self.all = rigs

    @property
    def one(self) -> KubeRig:
        return self.all[0]

    def spare(self, undo: ExitStack) -> KubeRig:
        """One more in the same cluster, until `undo`."""
        one = self.one
        folder = one.folder / f"spare{next(_NUMBERS)}"
        folder.mkdir()
        return KubeRig(one.bin, folder, undo, one.kind, one.served)

    def each(self, items: Sequence[T], work: Callable[[KubeRig, T], R]) -> list[R]:
        """The work on each item, each by a rig; AssertionError names all items that failed."""
        free: SimpleQueue[KubeRig] = SimpleQueue()
        for rig in self.all:
            free.put(rig)

        def run(item: T) -> R:
            rig = free.get()
            try:
                return work(rig, item)
            finally:
                rig.proxy.forget()
                rig.more_environment = {}
                for name in rig.devices():  # of an attempt that has failed
                    rig.net.ip("link", "del", name)
                free.put(rig)

        with ThreadPoolExecutor(len(self.all)) as pool:
            futures = [pool.submit(run, item) for item in items]
        failures = [f"{item}: {trace(error)}" for item, future in zip(items, futures) if (error := future.exception())]
        assert not failures, f"{len(failures)} of {len(items)}\n" + "\n".join(failures)
        return [future.result() for future in futures]


def bare_sandbox(rig: KubeRig, pod: str) -> Sandbox:
    """One of a pod that the API server does not have."""
    number = next(_NUMBERS)
    return Sandbox(f"{number:08x}" + "b" * 56, Namespace("bare", rig.undo), pod, SPACE)


def text_of(answer: Answer) -> str:
    """An error's message and details."""
    error = json.loads(answer.stdout)
    return f"{error['msg']}\n{error.get('details', '')}"
