"""Stepping into network namespaces and back, and paths that are none."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from errno import EPERM

import pytest

from adapters.linux.clock import SystemClock
from adapters.linux.dataplane import LinuxDataplane
from adapters.linux.kernel import Kernel
from adapters.linux.namespaces import (
    Inside,
    NamespaceMissing,
    NotANamespace,
    Stranded,
    open_namespace,
)
from adapters.linux.netlink.lean import LeanNetlink
from adapters.linux.netlink.seam import KernelError
from adapters.linux.node_files import is_own_namespace
from adapters.linux.sysctl import write_sysctl
from adapters.memory.log import RecordingLog
from contracts.dataplane import V4
from ports.errors import Refused
from worlds.linux_world import TRANSPORTS, LinuxWorld


@pytest.fixture
def world(tmp_path):
    with LinuxWorld(tmp_path) as world:
        yield world


@pytest.fixture
def descriptor(world):
    opened = open_namespace(world.make_namespace())
    yield opened
    os.close(opened)


def _here() -> int:
    return os.stat("/proc/thread-self/ns/net").st_ino


def test_we_are_inside_and_back_again(descriptor):
    before = _here()
    with Inside(descriptor):
        assert _here() == os.fstat(descriptor).st_ino
    assert _here() == before


def test_we_are_back_after_a_failure_too(descriptor):
    before = _here()
    with pytest.raises(ZeroDivisionError), Inside(descriptor):
        _ = 1 / 0
    assert _here() == before


def test_a_signal_that_comes_while_inside_is_heard_outside(descriptor):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(_here()))
    try:
        with Inside(descriptor):
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)  # test runners have other threads
            assert heard == []
        assert heard == [_here()]
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_failure_to_come_back_is_not_hidden(descriptor):
    """In a thread of its own, which stays where it is and ends."""
    raised = []

    def strand():
        step = Inside(descriptor)
        try:
            with step:
                null = os.open("/dev/null", os.O_RDONLY)
                os.dup2(null, step._here, inheritable=False)
                os.close(null)
        except Stranded as error:
            raised.append(error)

    thread = threading.Thread(target=strand)
    thread.start()
    thread.join()
    assert len(raised) == 1


def test_something_else_cannot_be_stepped_into():
    null = os.open("/dev/null", os.O_RDONLY)
    before = _here()
    try:
        with pytest.raises(KernelError, match="error switching to ns: invalid argument"), Inside(null):
            pass
    finally:
        os.close(null)
    assert _here() == before


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_descriptors_are_closed_on_exec(world, transport):
    before = {fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}  # not the listing's
    with Kernel(world.make_namespace(), TRANSPORTS[transport]) as kernel:
        kernel.netlink("host")
        kernel.netlink("container")
        opened = [
            fd for fd in os.listdir("/proc/self/fd") if fd not in before and os.path.exists(f"/proc/self/fd/{fd}")
        ]
        assert len(opened) >= 3
        assert all(fcntl.fcntl(int(fd), fcntl.F_GETFD) & fcntl.FD_CLOEXEC for fd in opened)


def test_a_symbolic_link_to_a_namespace_is_one(world, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(world.make_namespace())
    os.close(open_namespace(str(link)))


def test_our_own_namespace_has_many_paths(world):
    assert is_own_namespace(f"/proc/{os.getpid()}/ns/net")
    assert not is_own_namespace(world.make_namespace())
    assert not is_own_namespace("a\0b")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/proc/self/ns/mnt", '"/proc/self/ns/mnt" is not a network namespace: invalid argument'),
        ("/proc/self/status", '"/proc/self/status" is not a network namespace: invalid argument'),
        ("/sys", 'unknown FS magic on "/sys": 62656572'),
        ("/dev/null", 'unknown FS magic on "/dev/null": '),
        ("/proc/self/status/below", 'failed to Statfs "/proc/self/status/below": not a directory'),
    ],
)
def test_other_paths_are_refused(world, path, text):
    with pytest.raises(KernelError) as refused:
        open_namespace(path)
    assert str(refused.value).startswith(text)


def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotANamespace, match="unknown FS magic"):
        open_namespace(str(tmp_path / "pipe"))


def test_a_path_that_goes_nowhere_is_missing(tmp_path):
    (tmp_path / "dangling").symlink_to("/nowhere")
    with pytest.raises(NamespaceMissing, match="no such file or directory"):
        open_namespace(str(tmp_path / "dangling"))


def test_a_path_that_cannot_be_entered_ends_a_disconnect(world):
    with pytest.raises(Refused, match=r'^failed to enter netns: failed to Statfs "/proc/self/status/below": not a dir'):
        world.dataplane.disconnect("/proc/self/status/below", "eth0", world.soon())


class Unwilling(LeanNetlink):
    def delete_link(self, index: int) -> None:
        raise KernelError(EPERM)


def test_a_device_that_may_not_be_deleted_ends_a_disconnect(world):
    netns, name = world.make_namespace(), world.new_name()
    world.connect(world.attachment(netns, name, V4))
    dataplane = LinuxDataplane(SystemClock(), RecordingLog(), lambda: Unwilling)
    with pytest.raises(Refused) as refused:
        dataplane.disconnect(netns, "eth0", world.soon())
    text = "failed to clean up workload's pod interface inside netns: operation not permitted"
    assert str(refused.value) == text
    world.dataplane.disconnect(netns, "eth0", world.soon())


def test_settings_that_do_not_exist_are_not_made():
    with pytest.raises(
        KernelError, match=r"^open /proc/sys/net/ipv4/conf/nosuch/proxy_arp: no such file or directory$"
    ):
        write_sysctl("net/ipv4/conf/nosuch/proxy_arp", "1")
    assert not os.path.exists("/proc/sys/net/ipv4/conf/nosuch")


def test_settings_that_the_kernel_refuses_say_so(world):
    with pytest.raises(KernelError, match=r"^write /proc/sys/net/ipv6/conf/lo/addr_gen_mode: invalid argument$"):
        write_sysctl("net/ipv6/conf/lo/addr_gen_mode", "77")
