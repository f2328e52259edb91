"""One call between its first and its last byte."""

from __future__ import annotations

import json
import os
import signal
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.linux import spare_memory
from adapters.linux.kernel import StepFailed
from adapters.linux.netlink.seam import KernelError
from descriptors import SIGNALS, replaced, stdin
from domain.cni.errors import CniError
from domain.cni.netconf import NetConf, read_netconf
from domain.cni.request import CniArgs
from domain.cni.result import BadAddress
from domain.ipam.errors import IpamError
from entrypoints.logs import CallLog
from entrypoints.skel import Plugin, budget, run
from entrypoints.stdio import MOST_STDIN
from entrypoints.version import VERSION
from ports.clock import Deadline
from ports.errors import BadConfiguration, Conflict, Expired, Refused, Unavailable
from ports.runtime import Runtime
from usecases.calls.call import Call
from usecases.calls.safeguards import Undo
from worlds.no_ports import opener_without_ports

NETCONF = {"cniVersion": "1.0.0", "name": "net1", "policy": {"k8s_auth_token": "planted-token"}}
ENVIRON = {
    "CNI_COMMAND": "ADD",
    "CNI_CONTAINERID": "e0",
    "CNI_NETNS": "/var/run/netns/g1",
    "CNI_IFNAME": "eth0",
    "CNI_PATH": "/opt/cni/bin",
}


open_runtime = opener_without_ports(Refused("no port is needed here"))


def a_plugin(
    verbs: Mapping[str, Any], read_netconf: Callable[[Any, str], NetConf] = read_netconf
) -> Plugin[NetConf, Call, Runtime]:
    return Plugin(
        about="A plugin",
        read_netconf=read_netconf,
        read_args=lambda _request: CniArgs(),
        open_runtime=open_runtime,
        make_call=Call,
        verbs=verbs,
    )


class Subject:
    """A plugin whose ADD has one effect, then does what the test wants; `undone` lists what was taken back."""

    def __init__(self, then: Callable[[Call], str]) -> None:
        self.then = then
        self.undone: list[str] = []
        self.calls: list[Call] = []

    def add(self, call: Call, _runtime: Runtime, undo: Undo) -> str:
        self.calls.append(call)
        undo.register("first", lambda _deadline: self.undone.append("first"))
        undo.register("second", self.step_back)
        return self.then(call)

    def step_back(self, _deadline: Deadline) -> None:
        self.undone.append("second")

    def run(self, netconf: str | bytes | None = None, **environ: str) -> int:
        plugin = a_plugin({"ADD": self.add, "DEL": lambda *_: ""})
        content = json.dumps(NETCONF) if netconf is None else netconf
        with stdin(content):
            return run(plugin, {**ENVIRON, **environ}, CallLog("test"))


def failing(error: BaseException) -> Callable[[Call], str]:
    def fail(_call: Call) -> str:
        raise error

    return fail


def test_an_answer_that_was_delivered_keeps_what_was_done(capfd: pytest.CaptureFixture[str]) -> None:
    subject = Subject(lambda _call: "the answer <é>")
    assert subject.run() == 0
    assert capfd.readouterr() == ("the answer <é>", "")
    assert subject.undone == []


def test_the_call_has_everything_parsed() -> None:
    subject = Subject(lambda _call: "")
    text = json.dumps({**NETCONF, "timeout_seconds": 7})
    assert subject.run(text) == 0
    (call,) = subject.calls
    assert (call.request.container_id, call.netconf.name, call.netconf_text) == ("e0", "net1", text)
    assert call.deadline == Deadline(7.0)


def test_a_call_has_sixty_seconds_unless_the_configuration_says_otherwise() -> None:
    subject = Subject(lambda _call: "")
    assert subject.run(json.dumps({**NETCONF, "timeout_seconds": -1})) == 0
    assert subject.calls[0].deadline == Deadline(60.0)


def test_what_reading_the_configuration_warns_of_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    def read(_document: object, verb: str) -> NetConf:
        return NetConf(warnings=(f"{verb} minds little",))

    plugin = a_plugin({"DEL": lambda *_: ""}, read)
    with stdin(json.dumps(NETCONF)):
        assert run(plugin, {**ENVIRON, "CNI_COMMAND": "DEL"}, CallLog("test")) == 0
    out, logged = capfd.readouterr()
    assert out == ""
    assert "DEL minds little" in logged


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (CniError(7, "m", "d"), {"code": 7, "msg": "m", "details": "d"}),
        (Refused("no", 42, "why"), {"code": 42, "msg": "no", "details": "why"}),
        (IpamError("full", code=998, details="x"), {"code": 998, "msg": "full", "details": "x"}),
        (IpamError("full"), {"code": 999, "msg": "full"}),
        (Unavailable("/db: locked"), {"code": 11, "msg": "/db: locked"}),
        (Expired("the lock"), {"code": 11, "msg": "deadline exceeded while waiting for the lock"}),
        (BadConfiguration("bad field"), {"code": 7, "msg": "bad field"}),
        (Conflict("k"), {"code": 999, "msg": "update conflict: k"}),
        (BadAddress("invalid IP address: x", "Route.routes.gw"), {"code": 999, "msg": "invalid IP address: x"}),
        (KernelError(1), {"code": 999, "msg": "operation not permitted"}),
        (StepFailed(), {"code": 999, "msg": "StepFailed"}),
        (KeyError("x"), {"code": 999, "msg": "Calico CNI panicked during ADD: KeyError: 'x'"}),
        (MemoryError(), {"code": 999, "msg": "Calico CNI ran out of memory during ADD"}),
        (
            OSError(24, "Too many open files", "/x"),
            {
                "code": 999,
                "msg": "Calico CNI may not open as many files as it needs during ADD: "
                "[Errno 24] Too many open files: '/x'",
            },
        ),
        (ImportError("no part"), {"code": 999, "msg": "Calico CNI cannot go on during ADD: no part"}),
        (OSError(12, "x"), {"code": 999, "msg": "Calico CNI ran out of memory during ADD"}),
        (RecursionError("deep"), {"code": 999, "msg": "Calico CNI panicked during ADD: RecursionError: deep"}),
    ],
)
def test_every_error_becomes_one_cni_error_and_takes_everything_back(
    error: Exception, answer: dict[str, object], capfd: pytest.CaptureFixture[str]
) -> None:
    subject = Subject(failing(error))
    assert subject.run() == 1
    assert subject.undone == ["second", "first"]
    out, logged = capfd.readouterr()
    assert json.loads(out) == answer
    assert out == json.dumps(answer, indent=4)
    assert "Final result of CNI ADD was an error." in logged


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise MemoryError


def test_an_error_that_there_is_no_memory_to_describe(capfd: pytest.CaptureFixture[str]) -> None:
    subject = Subject(failing(Unspeakable()))
    assert subject.run() == 1
    assert subject.undone == ["second", "first"]
    assert json.loads(capfd.readouterr().out) == {"code": 999, "msg": "Calico CNI ran out of memory during ADD"}


@pytest.mark.parametrize("error", [MemoryError(), Refused("no")])
def test_undoing_has_the_memory_that_was_set_aside_for_it(error: Exception) -> None:
    reserved: list[int] = []

    class Hungry(Subject):
        def add(self, call: Call, _runtime: Runtime, undo: Undo) -> str:
            reserved.append(len(spare_memory.kept))
            undo.register("an effect", lambda _deadline: reserved.append(len(spare_memory.kept)))
            return self.then(call)

    assert Hungry(failing(error)).run() == 1
    assert reserved == [1, 0]


def test_the_trace_of_a_bug_goes_to_the_log_only(capfd: pytest.CaptureFixture[str]) -> None:
    """K03."""
    Subject(failing(ZeroDivisionError("oops"))).run()
    out, logged = capfd.readouterr()
    assert "test_skel.py" not in out
    (line,) = [line for line in logged.splitlines() if "Panic during ADD" in line]
    assert "test_skel.py" in line
    assert " fail" in line


@pytest.mark.parametrize("number", SIGNALS)
def test_a_termination_signal_takes_everything_back(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    def be_killed(_call: Call) -> str:
        os.kill(os.getpid(), number)
        return "not reached"

    subject = Subject(be_killed)
    assert subject.run() == 1
    assert subject.undone == ["second", "first"]
    name = signal.Signals(number).name
    assert json.loads(capfd.readouterr().out) == {"code": 11, "msg": f"interrupted by {name} during ADD"}


class TerminatedWhenRead(dict[str, str]):
    """An environment in whose first look-up a signal arrives: before the call has begun anything."""

    def __getitem__(self, name: str) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return super().__getitem__(name)


def test_a_signal_before_the_call_has_begun_is_answered_too(capfd: pytest.CaptureFixture[str]) -> None:
    plugin = a_plugin({})
    assert run(plugin, TerminatedWhenRead(ENVIRON), CallLog("test")) == 1
    assert json.loads(capfd.readouterr().out) == {"code": 11, "msg": "interrupted by SIGTERM during ADD"}


def be_terminated(_call: Call) -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    return "not reached"


class Collected:
    pass


def lose_a_signal() -> None:
    """What a callback of a weak reference raises is dropped by the interpreter."""
    thing = Collected()
    kept = weakref.ref(thing, lambda _gone: os.kill(os.getpid(), signal.SIGTERM))
    del thing
    assert kept() is None


def lose_a_signal_and_answer(_call: Call) -> str:
    lose_a_signal()
    return "the answer"


def lose_a_signal_and_fail(_call: Call) -> str:
    lose_a_signal()
    raise Refused("no")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # that it is dropped is the point
@pytest.mark.parametrize("then", [lose_a_signal_and_answer, lose_a_signal_and_fail])
def test_a_signal_whose_exception_was_lost_ends_the_call_all_the_same(
    then: Callable[[Call], str], capfd: pytest.CaptureFixture[str]
) -> None:
    subject = Subject(then)
    assert subject.run() == 1
    assert subject.undone == ["second", "first"]
    assert json.loads(capfd.readouterr().out) == {"code": 11, "msg": "interrupted by SIGTERM during ADD"}
    assert Subject(lambda _call: "").run() == 0  # it counts for one call


@pytest.mark.parametrize(
    ("then", "why"), [(failing(Refused("no")), "no"), (be_terminated, "interrupted by SIGTERM during ADD")]
)
def test_undoing_is_not_torn_apart_by_further_signals(
    then: Callable[[Call], str], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    subject = Subject(then)

    def killed_while_undoing(_deadline: Deadline) -> None:
        for number in SIGNALS:
            os.kill(os.getpid(), number)
        subject.undone.append("second")

    subject.step_back = killed_while_undoing
    assert subject.run() == 1
    assert subject.undone == ["second", "first"]
    assert json.loads(capfd.readouterr().out)["msg"] == why


def test_a_step_that_cannot_be_undone_does_not_stop_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    subject = Subject(failing(Refused("no")))

    def broken(_deadline: Deadline) -> None:
        raise ValueError("a bug in undoing")

    subject.step_back = broken
    assert subject.run() == 1
    assert subject.undone == ["first"]
    out, logged = capfd.readouterr()
    assert json.loads(out)["msg"] == "no"
    assert "a bug in undoing" in logged


def full_device() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def pipe_without_reader() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def not_writable() -> int:
    return os.open("/dev/null", os.O_RDONLY)  # what fills descriptor 1 when the parent closed it


@pytest.mark.parametrize("stdout", [full_device, pipe_without_reader, not_writable])
def test_an_answer_that_nobody_gets_takes_everything_back(stdout: Callable[[], int]) -> None:
    subject = Subject(lambda _call: "the answer")
    with replaced(1, stdout()):
        assert subject.run() == 1
    assert subject.undone == ["second", "first"]


def test_a_long_answer_is_written_whole(capfd: pytest.CaptureFixture[str]) -> None:
    assert Subject(lambda _call: "x" * 3_000_000).run() == 0
    assert capfd.readouterr().out == "x" * 3_000_000


def test_a_successful_delete_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert Subject(lambda _call: "").run(CNI_COMMAND="DEL") == 0
    assert capfd.readouterr() == ("", "")


def test_without_a_verb_the_plugin_says_what_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    assert Subject(lambda _call: "").run(CNI_COMMAND="") == 0
    versions = "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0"
    assert capfd.readouterr() == ("", f"A plugin {VERSION}\n{versions}\n")


def test_version_does_not_read_stdin(capfd: pytest.CaptureFixture[str]) -> None:
    assert Subject(lambda _call: "").run("not JSON", CNI_COMMAND="VERSION") == 0
    assert json.loads(capfd.readouterr().out)["cniVersion"] == "1.1.0"


BIG = {**NETCONF, "padding": "x" * 10_000_000}


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("", 6, "error unmarshall network config: unexpected end of JSON input"),
        ('{"name": "ne', 6, "error unmarshall network config: unexpected end of JSON input"),
        ("[" * 2_000_000, 6, "error unmarshall network config: exceeded max depth"),
        (
            json.dumps(BIG),
            6,
            f"error unmarshall network config: network config is larger than {MOST_STDIN} bytes",
        ),
        (b'{"name": "\xff"}', 7, "invalid characters found in network name"),
        ("<html>", 6, "error unmarshall network config: invalid character '<' looking for beginning of value"),
    ],
)
def test_bad_input_gives_one_error(text: str | bytes, code: int, why: str, capfd: pytest.CaptureFixture[str]) -> None:
    """K03, and the issue's list of bad input."""
    subject = Subject(lambda _call: "")
    assert subject.run(text) == 1
    answer = json.loads(capfd.readouterr().out)
    assert (answer["code"], answer["msg"]) == (code, why)
    assert subject.calls == []


def test_an_unreadable_stdin_is_code_5(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plugin = a_plugin({})
    with replaced(0, os.open(tmp_path, os.O_RDONLY)):
        assert run(plugin, ENVIRON, CallLog("test")) == 1
    expected = {"code": 5, "msg": "error reading from stdin: read /dev/stdin: is a directory"}
    assert json.loads(capfd.readouterr().out) == expected


@pytest.mark.parametrize("error", [Refused("no"), KeyError("x"), CniError(999, "x")])
def test_what_was_on_stdin_is_never_shown(error: Exception, capfd: pytest.CaptureFixture[str]) -> None:
    Subject(failing(error)).run(json.dumps({**NETCONF, "log_level": "debug"}))
    Subject(failing(error)).run(json.dumps(NETCONF)[:-1])
    Subject(failing(error)).run(json.dumps({**NETCONF, "mtu": "1500"}))
    out, logged = capfd.readouterr()
    assert "planted-token" not in out + logged


@pytest.mark.parametrize(
    ("seconds", "taken"), [(0, 60.0), (-5, 60.0), (1, 1.0), (86_400, 86_400.0), (2**63 - 1, 86_400.0)]
)
def test_a_call_may_take_as_long_as_it_is_told_but_no_timer_is_asked_too_much(seconds: int, taken: float) -> None:
    assert budget(NetConf(timeout_seconds=seconds)) == taken
