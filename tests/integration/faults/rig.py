"""A host with an etcd of its own that can be broken at any moment of a call, and the question whether anything is lost.

Invariant: what a rig has started ends with it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from adapters.memory.log import RecordingLog
from domain.ipam.inventory import INFO
from integration.plugin.host import Answer, Container, Host
from integration.plugin.store import EtcdRecords, cluster_records
from ports.clock import Deadline
from services.etcd import Etcd
from services.request_proxy import RequestProxy
from usecases.check_ipam import check_ipam
from usecases.ipam.work import Work

T = TypeVar("T")
R = TypeVar("R")
NETWORK, POOL = "net1", "10.20.0.0/24"
FAR_FUTURE = 4_000_000_000 * 10**9  # nanoseconds
TRY_AGAIN_LATER = 11
HALF_CLAIMED = ("affinity-without-block", "affinity-unfinished")


class Rig:
    """`reset` before each use."""

    def __init__(self, binaries: Path, folder: Path, undo: ExitStack, *options: str) -> None:
        self.host = Host(binaries, folder, undo)
        self.etcd = undo.enter_context(Etcd(*options))
        undo.callback(self.recover)  # before the server is ended, so that nobody starts it again
        self.proxy = undo.enter_context(RequestProxy(self.etcd.port, netns=self.host.net.path, port=23790))
        self.store = EtcdRecords(self.etcd, self.proxy.port)
        self.host.store = self.store
        self._restart: threading.Thread | None = None

    def reset(self) -> None:
        """A datastore with one IPv4 pool of four blocks, no devices; the proxy only counts."""
        for name in self.host.devices():
            self.host.net.ip("link", "del", name)
        self.proxy.listen()
        self.store.create(cluster_records(POOL))

    def crash(self) -> None:
        """Kill the server; it comes back at once, in a thread of its own."""
        self.etcd.kill()
        self._restart = threading.Thread(target=self.etcd.start)
        self._restart.start()

    def recover(self) -> None:
        """Wait for a server that is on its way back, and break nothing more."""
        self.proxy.listen()
        restart, self._restart = self._restart, None
        if restart is not None:
            restart.join()

    def compact(self) -> None:
        """Forget every revision but the newest."""
        revision = self.etcd.ask("kv/range", {"key": "AA=="})["header"]["revision"]
        self.etcd.ask("kv/compaction", {"revision": revision, "physical": True})

    def alarm(self, *, active: bool) -> None:
        """That there is no space."""
        action = "ACTIVATE" if active else "DEACTIVATE"
        member = self.etcd.ask("kv/range", {"key": "AA=="})["header"]["member_id"]
        self.etcd.ask("maintenance/alarm", {"action": action, "memberID": member, "alarm": "NOSPACE"})

    def handle(self, container: Container) -> str:
        return f"{NETWORK}.{container.identity}"

    def address(self, container: Container) -> str:
        """The one address that records give the container."""
        places = self.store.allocated().get(self.handle(container), [])
        assert len(places) == 1, (container.identity, places)
        (cidr, ordinal), *_ = places
        network, _, _ = cidr.partition("/")
        head, _, last = network.rpartition(".")
        return f"{head}.{int(last) + ordinal}"

    def networked(self, container: Container, answer: Answer) -> None:
        """The answer's one address is what records and devices have, and nobody else has anything."""
        (ip,) = answer.result()["ips"]
        address = ip["address"].partition("/")[0]
        assert self.address(container) == address
        assert set(self.store.allocated()) == {self.handle(container)}
        (endpoint,) = self.store.endpoints().values()
        assert endpoint["spec"]["ipNetworks"] == [f"{address}/32"]
        assert container.inside.addresses("eth0") == [f"{address}/32"]
        self.clean()

    def gone(self, container: Container, *, claiming: bool = False) -> None:
        """There is no trace of it but what a node keeps: blocks, claims, the profile."""
        assert self.host.left() == {}
        assert container.inside.names() == {"lo"}
        self.clean(claiming=claiming)

    def clean(self, *, claiming: bool = False) -> None:
        """Blocks and handles agree, and an operator's check has nothing to say.

        With `claiming` a claim may be half made: the node's next ADD goes on with it.
        """
        self.store.check()
        found = troubles(self.store.texts())
        assert [one for one in found if not (claiming and one.startswith(HALF_CLAIMED))] == []

    def operator_checks(self) -> None:
        """`tortie ipam check` over this very etcd."""
        environment = {"DATASTORE_TYPE": "etcdv3", "ETCD_ENDPOINTS": self.proxy.url}
        answer = self.host.raw(environment, "", "ipam", "check", program="tortie")
        assert answer.exit == 0, answer
        assert "Clean" in answer.stdout, answer


def troubles(texts: dict[str, str]) -> list[str]:
    """What `ipam check` finds in these records once no call that left something can be at work any more."""
    clock = MemoryClock(FAR_FUTURE)
    datastore = MemoryDatastore(clock)
    datastore.load(texts)
    report = check_ipam(Work(datastore, clock, RecordingLog(), Deadline(float("inf"))))
    return [f"{one.kind} {one.subject}: {one.reason}" for one in report.findings if one.level != INFO]


def trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


class Rigs:
    """Some rigs that share the work of a test."""

    def __init__(self, rigs: Sequence[Rig]) -> None:
        self._rigs = rigs

    @property
    def one(self) -> Rig:
        return self._rigs[0]

    def each(self, items: Sequence[T], work: Callable[[Rig, T], R]) -> list[R]:
        """The work on each item, each on a rig that is reset; AssertionError names all items that failed."""
        free: SimpleQueue[Rig] = SimpleQueue()
        for rig in self._rigs:
            free.put(rig)

        def run(item: T) -> R | str:
            rig = free.get()
            try:
                rig.reset()
                return work(rig, item)
            finally:
                rig.recover()
                free.put(rig)

        with ThreadPoolExecutor(len(self._rigs)) as pool:
            futures = [pool.submit(run, item) for item in items]
        failures = [f"{item}: {trace(error)}" for item, future in zip(items, futures) if (error := future.exception())]
        assert not failures, "\n".join(failures)
        return [future.result() for future in futures]
