"""The smaller ports in memory keep the same contracts as the real ones, and can be told what a test needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.cluster import MemoryCluster
from adapters.memory.ipam_plugin import ScriptedIpamPlugin
from adapters.memory.lock import MemoryLock
from adapters.memory.log import RecordingLog
from adapters.memory.node import MemoryNode
from adapters.memory.readiness import MemoryReadiness
from contracts.clock import ClockContract
from contracts.cluster import AbsentClusterContract, ClusterContract
from contracts.ipam_plugin import RESULT, IpamPluginContract, PluginWorld
from contracts.lock import NotedLockContract
from contracts.log import LogContract
from contracts.node import NodeContract
from contracts.readiness import ReadinessContract
from domain.cni.result import Result
from ports.errors import Expired, Refused, Unavailable


@pytest.fixture
def clock() -> MemoryClock:
    return MemoryClock()


@pytest.fixture
def log() -> RecordingLog:
    return RecordingLog()


class TestMemoryClock(ClockContract):
    def test_time_stands_still_until_it_is_advanced(self, clock: MemoryClock) -> None:
        before = clock.monotonic()
        assert clock.monotonic() == before
        clock.advance(3)
        clock.sleep(0.5)
        assert clock.monotonic() == before + 3.5
        assert clock.slept == [0.5]


class TestRecordingLog(LogContract):
    @pytest.fixture
    def lines(self, log: RecordingLog) -> Callable[[], list[str]]:
        return log.shown

    def test_lines_can_be_asked_for_by_level(self, log: RecordingLog) -> None:
        log.info("one", a=1)
        log.error("two")
        assert log.shown("error") == ["two"]
        assert log.shown() == ["one a=1", "two"]


class TestMemoryLock(NotedLockContract):
    @pytest.fixture
    def lock(self, clock: MemoryClock, log: RecordingLog) -> MemoryLock:
        lock = MemoryLock(clock, log)
        lock.left = ""
        return lock

    def test_one_that_can_have_no_notes_has_none(self, lock: MemoryLock) -> None:
        lock.left = None
        lock.leave("notes")
        assert lock.notes() is None

    @pytest.fixture
    def rival(self, lock: MemoryLock) -> MemoryLock:
        return lock

    def test_it_can_be_held_by_others_for_a_while(self, clock: MemoryClock, lock: MemoryLock) -> None:
        lock.hold_elsewhere(2)
        with lock.held(clock.deadline(20)) as really:
            assert really
            assert lock.held_now
        assert not lock.held_now
        assert clock.monotonic() == 2

    def test_what_another_process_keeps_cannot_be_had(self, clock: MemoryClock, lock: MemoryLock) -> None:
        lock.kept_elsewhere.add("/var/run/netns/a")
        assert lock.keep("/var/run/netns/a", clock.deadline(3)) is False
        assert clock.monotonic() == 3
        assert lock.keep("/var/run/netns/b", clock.deadline(3)) is True
        assert lock.kept == ["/var/run/netns/b"]

    def test_it_can_be_held_by_others_for_ever(self, clock: MemoryClock, lock: MemoryLock, log: RecordingLog) -> None:
        lock.hold_elsewhere()
        with lock.held(clock.deadline(20)) as really:
            assert not really
        assert clock.monotonic() == 20
        assert log.shown("warning")
        lock.free_elsewhere()
        with lock.held(clock.deadline(20)):
            pass
        assert lock.given == [False, True]


class TestMemoryNode(NodeContract):
    @pytest.fixture
    def node(self) -> MemoryNode:
        return MemoryNode("node-a")

    @pytest.fixture
    def place(self) -> str:
        return "/place"

    def test_a_broken_path_can_be_neither_read_nor_changed(self, node: MemoryNode) -> None:
        node.broken.add("/b")
        assert node.exists("/b")
        with pytest.raises(Refused, match="open /b: permission denied"):
            node.read("/b")
        for change in (lambda: node.write("/b", ""), lambda: node.remove("/b")):
            with pytest.raises(Unavailable, match="/b: permission denied"):
                change()


class MemoryFiles:
    def __init__(self, readiness: MemoryReadiness) -> None:
        self.create = readiness.make_ready

    def path(self, name: str) -> str:
        return f"/status/{name}"


class TestMemoryReadiness(ReadinessContract):
    @pytest.fixture
    def readiness(self, clock: MemoryClock) -> MemoryReadiness:
        return MemoryReadiness(clock)

    @pytest.fixture
    def files(self, readiness: MemoryReadiness) -> MemoryFiles:
        return MemoryFiles(readiness)

    @pytest.fixture
    def answering(self, readiness: MemoryReadiness) -> Callable[[int], str]:
        def url(status: int) -> str:
            text = f"http://127.0.0.1:9099/{status}"
            if status < 400:
                readiness.make_ready(text)
            return text

        return url

    def test_a_gate_is_probed_every_five_seconds(self, clock: MemoryClock, readiness: MemoryReadiness) -> None:
        readiness.make_ready("http://h/", after=11)
        readiness.gate("http://h/", clock.deadline(30))
        assert clock.monotonic() == 15
        assert readiness.probes == ["http://h/"] * 4

    def test_a_late_file_is_seen_soon_after_it_came(self, clock: MemoryClock, readiness: MemoryReadiness) -> None:
        """WAIT-002."""
        readiness.make_ready("/f", after=1)
        assert readiness.file_appears("/f", clock.deadline(3))
        assert 1 <= clock.monotonic() <= 1.1


class TestMemoryCluster(ClusterContract, AbsentClusterContract):
    @pytest.fixture
    def cluster(self) -> MemoryCluster:
        return MemoryCluster({"web": {"team": "blue"}})

    @pytest.fixture
    def absent(self) -> MemoryCluster:
        return MemoryCluster()


class ScriptedWorld(PluginWorld):
    path = ("/opt/cni/bin",)

    def __init__(self, clock: MemoryClock) -> None:
        self.clock = clock
        self.plugin: ScriptedIpamPlugin = ScriptedIpamPlugin(clock)

    def answers(self, type: str, result: Result) -> None:
        self.plugin.answers(type, result)

    def fails(self, type: str, verb: str, code: int, message: str, details: str) -> None:
        self.plugin.fails(type, verb, Refused(message, code, details))

    def takes(self, type: str, seconds: float) -> None:
        self.plugin.takes(type, seconds)

    def calls(self) -> list[tuple[str, str]]:
        return [(ran.verb, ran.call.netconf_text) for ran in self.plugin.calls]

    def holds(self, container_id: str) -> bool:
        return bool(self.plugin.added.get(container_id))


class TestScriptedIpamPlugin(IpamPluginContract):
    @pytest.fixture
    def world(self, clock: MemoryClock) -> ScriptedWorld:
        return ScriptedWorld(clock)

    def test_withdraw_takes_back_one_add_and_no_more(self, world: ScriptedWorld) -> None:
        """G15, as our own plugin does it."""
        other = Result()
        world.plugin.answers("calico-ipam", RESULT, other)
        call, soon = world.call("calico-ipam"), world.clock.deadline(10)
        first = world.plugin.add(call, soon)
        second = world.plugin.add(call, soon)
        world.plugin.withdraw(call, second, soon)
        assert world.plugin.added == {"c1": [first]}
        assert world.plugin.withdrawn == [other]

    def test_an_error_can_be_taken_away_again(self, world: ScriptedWorld) -> None:
        world.fails("x", "DEL", 1, "no", "")
        world.plugin.fails("x", "DEL", None)
        world.plugin.delete(world.call("x"), world.clock.deadline(1))

    def test_a_call_that_takes_less_than_its_deadline_passes_time_only(self, world: ScriptedWorld) -> None:
        world.takes("x", 2)
        world.plugin.delete(world.call("x"), world.clock.deadline(3))
        assert world.clock.monotonic() == 2
        with pytest.raises(Expired):
            world.plugin.delete(world.call("x"), world.clock.deadline(1))
