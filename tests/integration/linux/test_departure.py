"""A disconnection that goes on while the call does something else: what is told, what is waited for, what is left.

The kernel's own delay is short and of no certain length, so here netlink answers when a test says so.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from errno import EPERM

import pytest

from adapters.linux.dataplane import LinuxDataplane
from adapters.linux.netlink.lean import LeanNetlink
from adapters.linux.netlink.seam import KernelError, Unanswered
from contracts.dataplane import HOST, V4, V6
from ports.errors import Expired, Refused
from worlds.linux_world import LinuxWorld

LONG = 20.0  # seconds that no test takes


@pytest.fixture
def world(tmp_path):
    with LinuxWorld(tmp_path) as world:
        yield world


class Slow(LeanNetlink):
    """Deletes at once, unless it is to be `reluctant`; answers once it is `allowed`, or by raising `error`."""

    kind: type[Slow]  # of this test; what is noted stands there
    allowed: threading.Event
    answered: threading.Event
    error: BaseException | None = None
    reluctant = False
    thread = 0
    blocked: frozenset = frozenset()

    def delete_link(self, index: int) -> None:
        kind = self.kind
        kind.thread = threading.get_ident()
        kind.blocked = frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        if not self.reluctant:
            super().delete_link(index)
        kind.allowed.wait(LONG)
        if self.error:
            raise self.error

    def close(self) -> None:
        super().close()
        if threading.get_ident() == self.kind.thread:
            self.answered.set()


@pytest.fixture
def slow():
    """A class of its own for each test, as a dataplane makes its own netlink."""

    class OfThisTest(Slow):
        allowed, answered = threading.Event(), threading.Event()

    OfThisTest.kind = OfThisTest
    yield OfThisTest
    OfThisTest.allowed.set()
    if OfThisTest.thread:
        assert OfThisTest.answered.wait(LONG)


@pytest.fixture
def dataplane(world, slow):
    return LinuxDataplane(world.clock, world.log, lambda: slow)


@pytest.fixture
def connected(world):
    """Namespace and host name of a connected container."""
    netns, host = world.make_namespace(), world.new_name()
    world.connect(world.attachment(netns, host, V4, V6))
    return netns, host


def test_the_call_goes_on_when_the_device_is_gone_and_the_kernel_has_not_answered(world, dataplane, slow, connected):
    netns, host = connected
    wait_for_rest = dataplane.begin_disconnect(netns, "eth0", world.soon())
    assert world.see(netns, "eth0").link is None
    assert world.see(HOST, host).link is None
    assert not [route for route in world.show(HOST, "route") if route["dst"] == str(V4.address)]
    assert not slow.answered.is_set()
    slow.allowed.set()
    wait_for_rest(world.soon())
    assert slow.answered.is_set()
    assert world.log.shown("warning") == []


def test_waiting_for_the_kernel_ends_at_the_deadline_with_a_line_in_the_log(world, dataplane, slow, connected):
    netns, _ = connected
    wait_for_rest = dataplane.begin_disconnect(netns, "eth0", world.soon())
    wait_for_rest(world.clock.deadline(0.01))
    assert not slow.answered.is_set()
    (line,) = world.log.shown("warning")
    assert "The kernel has not finished with a removed device" in line


def test_a_refusal_is_told_before_the_call_goes_on(world, dataplane, slow, connected):
    netns, _ = connected
    slow.reluctant, slow.error = True, KernelError(EPERM)
    slow.allowed.set()
    with pytest.raises(Refused) as refused:
        dataplane.begin_disconnect(netns, "eth0", world.soon())
    text = "failed to clean up workload's pod interface inside netns: operation not permitted"
    assert str(refused.value) == text
    assert world.see(netns, "eth0").link is not None


def test_an_answer_that_is_lost_while_the_device_is_there_is_a_failure(world, dataplane, slow, connected):
    netns, _ = connected
    slow.reluctant, slow.error = True, Unanswered(12)
    slow.allowed.set()
    with pytest.raises(Refused, match="cannot allocate memory"):
        dataplane.begin_disconnect(netns, "eth0", world.soon())


def test_a_thread_that_dies_of_something_else_is_no_success(world, dataplane, slow, connected):
    netns, _ = connected
    slow.reluctant, slow.error = True, SystemExit()  # which a thread ends with in silence
    slow.allowed.set()
    with pytest.raises(Refused, match="cannot allocate memory"):
        dataplane.begin_disconnect(netns, "eth0", world.soon())


def test_a_device_that_does_not_go_is_waited_for_until_the_deadline(world, dataplane, slow, connected):
    netns, _ = connected
    slow.reluctant = True
    with pytest.raises(Expired, match='the kernel to remove device "eth0"'):
        dataplane.begin_disconnect(netns, "eth0", world.clock.deadline(0.2))
    assert world.see(netns, "eth0").link is not None


def test_without_another_thread_the_answer_is_waited_for(world, dataplane, slow, connected):
    netns, host = connected
    slow.allowed.set()
    before = _thread.stack_size(1 << 46)  # more than there are addresses for
    try:
        wait_for_rest = dataplane.begin_disconnect(netns, "eth0", world.soon())
    finally:
        _thread.stack_size(before)
    assert slow.thread == threading.get_ident()
    assert slow.answered.is_set()
    assert world.see(HOST, host).link is None
    wait_for_rest(world.soon())


def test_signals_that_end_a_call_are_the_main_threads(world, dataplane, slow, connected):
    slow.allowed.set()
    dataplane.begin_disconnect(connected[0], "eth0", world.soon())(world.soon())
    assert slow.thread != threading.get_ident()
    assert slow.blocked >= {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    assert not {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} & signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_device_of_the_host_with_the_index_of_the_other_end_is_not_waited_for(world, dataplane, slow):
    """The other end lives in a third namespace, which counts its devices itself. Then only the answer tells."""
    netns, third, name = world.make_namespace(), world.make_namespace(), world.new_name()
    world.make_link(HOST, name)
    (same,) = world.show(HOST, "link", "show", "dev", name)
    pair = ["link", "add", "far0", "index", str(same["ifindex"]), "type", "veth", "peer", "name", "eth0"]
    world.ip(third, *pair, "netns", os.path.basename(netns))
    assert world.see(netns, "eth0").link.peer_index == same["ifindex"]
    slow.allowed.set()
    dataplane.begin_disconnect(netns, "eth0", world.soon())(world.soon())
    assert slow.answered.is_set()
    assert world.see(netns, "eth0").link is None
    assert world.see(HOST, name).link is not None
    assert world.show(third, "link", "show", "type", "veth") == []


@pytest.mark.parametrize("lagging", ["host", "container"])
def test_each_end_has_to_be_gone(world, slow, connected, lagging):
    """Today's kernels take both away in one step; nobody promises that."""
    netns, _ = connected
    host_namespace = os.stat("/proc/self/ns/net").st_ino

    class Lagging(slow):
        looks = 3

        def __init__(self) -> None:
            super().__init__()
            side = "host" if os.stat("/proc/thread-self/ns/net").st_ino == host_namespace else "container"
            self._lags = side == lagging

        def link_by_index(self, index):
            if self._lags and Lagging.looks > 0:
                Lagging.looks -= 1
                return self.link("lo")
            return super().link_by_index(index)

    dataplane = LinuxDataplane(world.clock, world.log, lambda: Lagging)
    wait_for_rest = dataplane.begin_disconnect(netns, "eth0", world.soon())
    assert Lagging.looks == 0
    slow.allowed.set()
    wait_for_rest(world.soon())


def test_who_cannot_look_waits_for_the_answer(world, slow, connected):
    netns, _ = connected

    class Blind(slow):
        def link_by_index(self, index):
            Blind.allowed.set()
            raise KernelError(EPERM)

    LinuxDataplane(world.clock, world.log, lambda: Blind).begin_disconnect(netns, "eth0", world.soon())
    assert Blind.answered.is_set()
    assert world.see(netns, "eth0").link is None


def test_a_call_that_is_killed_meanwhile_leaves_no_device_and_no_process(world, connected):
    """The kernel reports its end when the last thread is out of it, and not before."""
    netns, host = connected
    dataplane = LinuxDataplane(world.clock, world.log)
    child = os.fork()
    if child == 0:
        try:
            dataplane.begin_disconnect(netns, "eth0", world.soon())
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    assert world.see(netns, "eth0").link is None
    assert world.see(HOST, host).link is None
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
