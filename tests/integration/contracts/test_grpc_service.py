"""The gRPC dataplane against real services: each way to name one, and each way in which one can let us down.

All of it over both transports.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from adapters.grpc.dataplane import GrpcDataplane
from adapters.grpc.transport import DEADLINE_EXCEEDED, UNAVAILABLE, CallFailed, GrpcTransport
from adapters.grpc.transport_grpcio import GrpcioTransport
from adapters.grpc.transport_lean import LeanGrpcTransport
from adapters.linux.clock import SystemClock
from adapters.linux.process.signals import Withheld
from adapters.memory.log import RecordingLog
from domain.ipam.address import Cidr
from domain.workload.attachment import Attachment
from ports.dataplane import Connected
from ports.errors import Expired, Refused, Unavailable
from services.dataplane_service import MAC, ROOT, DataplaneService

V4, V6 = Cidr.parse("10.0.0.9/26"), Cidr.parse("fd00::9/122")
ATTACHMENT = Attachment("/run/netns/n", "eth0", "cali1", (V4, V6), (Cidr.parse("0.0.0.0/0"),), mtu=1450)
ADD = "/cni.CniDataplane/Add"


class Terminated(BaseException):
    pass


@pytest.fixture
def terminable():
    """As in a plugin: the first signal raises, later ones change nothing."""

    def terminate(*_: object) -> None:
        signal.signal(signal.SIGTERM, lambda *_: None)
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return f"unix://{tmp_path}/dataplane.sock"


@pytest.fixture
def service(path: str):
    with DataplaneService(path) as service:
        yield service


class OverGrpcio:
    """`transport` makes one; `loading` is code that makes one of a `target`."""

    loading = (
        "from adapters.grpc.transport_grpcio import GrpcioTransport\n"
        "from adapters.linux.process.signals import Withheld\n"
        "transport = GrpcioTransport(target, Withheld)"
    )

    @staticmethod
    def transport(target: str) -> GrpcTransport:
        return GrpcioTransport(target, Withheld)


class OverSockets:
    loading = "from adapters.grpc.transport_lean import LeanGrpcTransport\ntransport = LeanGrpcTransport(target)"

    @staticmethod
    def transport(target: str) -> GrpcTransport:
        return LeanGrpcTransport(target)


Way = type[OverGrpcio] | type[OverSockets]


@pytest.fixture(params=[OverGrpcio, OverSockets])
def way(request: pytest.FixtureRequest) -> Way:
    return request.param


def dataplane(way: Way, target: str) -> GrpcDataplane:
    options = {"type": "grpc", "socket": target, "extra": "option"}
    return GrpcDataplane(options, way.transport(target), SystemClock(), RecordingLog())


def connect(way: Way, target: str, seconds: float = 20.0) -> Connected:
    return dataplane(way, target).connect(ATTACHMENT, SystemClock().deadline(seconds))


@contextmanager
def signals_during_the_call(service: DataplaneService, *delays: float):
    """SIGTERM to this process after each delay, from another process, once the service has been asked for something."""
    script = "read _; " + "; ".join(f"sleep {delay}; kill -TERM {os.getpid()}" for delay in delays)
    sender = subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.PIPE)

    def watch() -> None:
        ends = time.monotonic() + 30
        while not service.calls() and time.monotonic() < ends:
            time.sleep(0.01)
        sender.communicate(b"\n")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        watcher.join()


@pytest.mark.parametrize("listen", ["unix", "127.0.0.1:0", "[::1]:0"])
@pytest.mark.parametrize("scheme", ["", "passthrough:///"])
def test_a_service_is_reached_by_path_or_by_address(way: Way, path: str, listen: str, scheme: str) -> None:
    """CNI-017"""
    with DataplaneService(path if listen == "unix" else listen) as service:
        assert connect(way, scheme + service.target) == Connected("cali1", MAC, (V4, V6))
        dataplane(way, scheme + service.target).disconnect("/run/netns/n", "eth0", SystemClock().deadline(20))
        assert service.methods() == ["Add", "Del"]


def test_a_host_name_is_resolved(way: Way) -> None:
    with DataplaneService("127.0.0.1:0") as service:
        connect(way, service.target.replace("127.0.0.1", "localhost"))


def test_no_proxy_is_asked_for_a_service_of_this_host(way: Way, path: str) -> None:
    with DataplaneService("127.0.0.1:0") as service:
        proxies = dict.fromkeys(("http_proxy", "https_proxy", "grpc_proxy"), "http://127.0.0.1:1")
        in_a_process_of_its_own(way, service.target, "", **proxies)


def test_a_field_that_a_library_of_ours_does_not_know_does_no_harm(way: Way, service: DataplaneService) -> None:
    answer = way.transport(service.target).call(ADD, b"\xfa\x3e\x01x", 5.0)
    assert answer.startswith(b"\x08\x01")


def test_a_refusal_and_a_status_are_told_from_each_other(way: Way, service: DataplaneService) -> None:
    """CNI-020"""
    service.answer(Add="fail:no room")
    with pytest.raises(Refused, match=r"^grpc dataplane error: no room$"):
        connect(way, service.target)
    service.answer(Add="status:FAILED_PRECONDITION:not yet")
    with pytest.raises(Refused, match=r"^rpc error: code = FailedPrecondition desc = not yet$"):
        connect(way, service.target)
    assert service.methods() == ["Add", "Add"]


def test_a_method_that_a_service_lacks(way: Way, service: DataplaneService) -> None:
    with pytest.raises(CallFailed, match="code = Unimplemented"):
        way.transport(service.target).call("/cni.CniDataplane/Check", b"", 5.0)


@pytest.mark.parametrize("target", ["unix", "127.0.0.1:1", "no-such-host.invalid:1", "no target at all"])
def test_a_service_that_is_not_there_is_told_at_once(way: Way, path: str, target: str) -> None:
    """CNI-016"""
    target = path if target == "unix" else target
    started = time.monotonic()
    with pytest.raises(Unavailable) as unavailable:
        connect(way, target)
    assert str(unavailable.value).startswith("rpc error: code = Unavailable desc = ")
    assert str(unavailable.value).endswith(f" (gRPC dataplane {target})")
    assert time.monotonic() - started < 15  # of the twenty seconds that there are
    assert not Path(path.removeprefix("unix://")).exists()


def test_a_service_that_hangs_is_left_when_the_time_is_over_and_the_add_taken_back(
    way: Way, service: DataplaneService
) -> None:
    service.answer(Add="hang")
    started = time.monotonic()
    with pytest.raises(Expired, match=f"waiting for gRPC dataplane {service.target}"):
        connect(way, service.target, seconds=2)  # enough to reach it
    assert 1.9 < time.monotonic() - started < 15
    assert service.methods() == ["Add", "Del"]


def test_a_service_that_accepts_and_says_nothing(way: Way, path: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    with listener:
        listener.bind(path.removeprefix("unix://"))
        listener.listen()
        started = time.monotonic()
        with pytest.raises(CallFailed) as failed:
            way.transport(path).call(ADD, b"", 0.5)
        assert failed.value.code in (DEADLINE_EXCEEDED, UNAVAILABLE)
        assert time.monotonic() - started < 15


def test_a_service_that_dies_in_the_middle_of_a_call(way: Way, service: DataplaneService) -> None:
    service.answer(Add="die")
    with pytest.raises(Unavailable, match="code = Unavailable"):
        connect(way, service.target)


def test_a_signal_ends_the_wait_and_takes_the_add_back(way: Way, service: DataplaneService, terminable: None) -> None:
    """L07; the second signal does not disturb the taking back."""
    service.answer(Add="hang")
    started = time.monotonic()
    with signals_during_the_call(service, 0.1, 0.05, 0.05), pytest.raises(Terminated):
        connect(way, service.target, seconds=60)
    assert time.monotonic() - started < 45
    assert service.methods() == ["Add", "Del"]


def test_signals_that_change_nothing_any_more_do_not_end_a_call(
    way: Way, service: DataplaneService, terminable: None
) -> None:
    """Undo must not be torn apart."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    service.answer(Del="hang")
    with signals_during_the_call(service, 0.1, 0.1), pytest.raises(Expired):
        dataplane(way, service.target).disconnect("/run/netns/n", "eth0", SystemClock().deadline(2))
    assert service.methods() == ["Del"]


def test_the_librarys_threads_take_no_signal_from_us(service: DataplaneService) -> None:
    """A signal to the process is for the main thread, whatever threads there are.

    Once in some hundred processes the library starts one more of its own accord, after the call; if it were ours to
    withhold signals from them and we did not, all processes would show it.
    """
    report = """
import os, re
for task in set(os.listdir('/proc/self/task')) - {str(os.getpid())}:
    try:
        print(re.search(r'SigBlk:\\s*(\\w+)', open(f'/proc/self/task/{task}/status').read())[1])
    except OSError:
        pass
"""
    processes = [in_a_process_of_its_own(OverGrpcio, service.target, report).split() for _ in range(10)]
    assert any(processes)  # threads that are idle may have ended before we look
    open_to_it = [masks for masks in processes if not all(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks)]
    assert len(open_to_it) <= len(processes) // 2, processes


def test_a_call_leaves_no_connection(way: Way, service: DataplaneService) -> None:
    """G14"""

    def sockets() -> int:
        found = 0
        for entry in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # the listing's own, or closed by a thread of the library
                found += os.readlink(entry).startswith("socket:")
        return found

    connect(way, service.target)
    before = sockets()
    for _ in range(10):
        connect(way, service.target)
    gc.collect()
    started = time.monotonic()
    while sockets() > before and time.monotonic() - started < 30:
        time.sleep(0.02)
    assert sockets() <= before


def test_programs_started_afterwards_inherit_nothing(way: Way, service: DataplaneService) -> None:
    """A delegated IPAM plugin may run after a call: undo does that."""
    report = "import os; print([n for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.exists('/dev/fd/' + n)"
    report += " and os.get_inheritable(int(n))])"
    assert in_a_process_of_its_own(way, service.target, report) == "[]\n"


def in_a_process_of_its_own(way: Way, target: str, then: str, **environment: str) -> str:
    """What it prints after a call that succeeds."""
    script = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}]\ntarget = {target!r}\n"
        f"{way.loading}\ntransport.call({ADD!r}, b'', 5.0)\n{then}"
    )
    words = [sys.executable, "-c", script]
    return subprocess.run(words, env=environment, check=True, timeout=60, capture_output=True, text=True).stdout
