"""What a gRPC dataplane makes of a service's answers, over a transport that is a list of answers."""

from __future__ import annotations

import pytest

from adapters.grpc import cni_dataplane_pb2 as wire
from adapters.grpc.dataplane import CALL_BUDGET, GrpcDataplane
from adapters.grpc.transport import CallFailed, GrpcTransport, Target, parse_target, without_passthrough
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from domain.ipam.address import Cidr
from domain.workload.attachment import Attachment
from ports.dataplane import Connected
from ports.errors import Expired, Refused, Unavailable

ADD, DEL = "/cni.CniDataplane/Add", "/cni.CniDataplane/Del"
SOCKET = "unix:///run/dataplane.sock"
OPTIONS = {"type": "grpc", "socket": SOCKET}
ATTACHMENT = Attachment("/run/netns/n", "eth0", "cali1", (Cidr.parse("10.0.0.9/26"),), (Cidr.parse("0.0.0.0/0"),))
CONNECTED = wire.AddReply(successful=True, host_interface_name="tap7", container_mac="00-11-22-AA-BB-CC")
DONE = wire.DelReply(successful=True)
CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, EXISTS, UNAVAILABLE = 1, 2, 4, 6, 14


class Interrupted(BaseException):
    pass


class Script(GrpcTransport):
    """Each answer is a message, bytes or an error; a number lets that many seconds pass first."""

    def __init__(self, clock: MemoryClock) -> None:
        self._clock = clock
        self.answers: list[object] = []
        self.calls: list[tuple[str, bytes, float]] = []

    def call(self, method: str, request: bytes, seconds: float) -> bytes:
        self.calls.append((method, request, seconds))
        answer = self.answers.pop(0)
        if isinstance(answer, float):
            self._clock.advance(answer)
            answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, bytes) else answer.SerializeToString()

    @property
    def methods(self) -> list[str]:
        return [method for method, _, _ in self.calls]


class World:
    def __init__(self) -> None:
        self.clock = MemoryClock()
        self.log = RecordingLog()
        self.service = Script(self.clock)
        self.dataplane = GrpcDataplane(OPTIONS, self.service, self.clock, self.log)

    def connect(self, *answers: object, seconds: float = 60.0) -> Connected:
        self.service.answers += answers
        return self.dataplane.connect(ATTACHMENT, self.clock.deadline(seconds))

    def disconnect(self, *answers: object, netns: str = "/run/netns/n", seconds: float = 60.0) -> None:
        self.service.answers += answers
        self.dataplane.disconnect(netns, "eth0", self.clock.deadline(seconds))


@pytest.fixture
def world():
    return World()


def test_what_the_service_answers_is_used(world):
    """CNI-017: its name of the host's end and its MAC; masks are not forced to /32."""
    assert world.connect(CONNECTED) == Connected("tap7", "00:11:22:aa:bb:cc", (Cidr.parse("10.0.0.9/26"),))
    assert world.service.methods == [ADD]
    assert wire.AddRequest.FromString(world.service.calls[0][1]).dataplane_options == OPTIONS


def test_a_service_need_not_name_a_mac(world):
    assert world.connect(wire.AddReply(successful=True, host_interface_name="memif1")).mac == ""


def test_disconnecting_is_told_to_the_service(world):
    """CNI-019"""
    world.disconnect(DONE)
    assert world.service.methods == [DEL]
    world.disconnect(DONE, netns="")  # the original asks it even so
    assert world.service.methods == [DEL, DEL]


def test_a_service_that_has_answered_has_nothing_left_to_do(world):
    world.service.answers.append(DONE)
    wait_for_rest = world.dataplane.begin_disconnect("/run/netns/n", "eth0", world.clock.deadline(60.0))
    assert world.service.methods == [DEL]
    wait_for_rest(world.clock.deadline(60.0))
    assert world.service.methods == [DEL]


@pytest.mark.parametrize("verb", ["connect", "disconnect"])
def test_each_call_has_five_seconds_or_less_if_the_plugin_has_less(world, verb):
    for seconds, expected in ((60.0, CALL_BUDGET), (3.0, 3.0)):
        getattr(world, verb)(CONNECTED, seconds=seconds)
        assert world.service.calls[-1][2] == expected == min(5.0, seconds)


@pytest.mark.parametrize("verb", ["connect", "disconnect"])
def test_a_call_whose_time_is_over_is_not_made(world, verb):
    with pytest.raises(Expired) as expired:
        getattr(world, verb)(seconds=0.0)
    assert str(expired.value) == f"deadline exceeded while waiting for gRPC dataplane {SOCKET}"
    assert world.service.calls == []


@pytest.mark.parametrize(("verb", "reply"), [("connect", wire.AddReply), ("disconnect", wire.DelReply)])
def test_a_service_that_refuses_is_quoted_and_not_asked_again(world, verb, reply):
    """CNI-018, CNI-020"""
    for text in ("no room", ""):
        with pytest.raises(Refused) as refused:
            getattr(world, verb)(reply(successful=False, error_message=text))
        assert str(refused.value) == f"grpc dataplane error: {text}"
        assert refused.value.code == 999
    assert len(world.service.calls) == 2


@pytest.mark.parametrize("verb", ["connect", "disconnect"])
@pytest.mark.parametrize(
    ("code", "name"), [(CANCELLED, "Canceled"), (UNKNOWN, "Unknown"), (EXISTS, "AlreadyExists"), (99, "Code(99)")]
)
def test_any_other_status_reaches_the_user_as_go_spells_it(world, verb, code, name):
    """The device that a service says it has already is not taken away."""
    with pytest.raises(Refused) as refused:
        getattr(world, verb)(CallFailed(code, "there is one"))
    assert str(refused.value) == f"rpc error: code = {name} desc = there is one"
    assert len(world.service.calls) == 1


def test_an_answer_that_is_none_is_an_internal_error(world):
    for ask in (world.connect, world.disconnect):
        with pytest.raises(Refused, match=r"^rpc error: code = Internal desc = .*"):
            ask(b"\xff\xff\xff")


@pytest.mark.parametrize("status", [(DEADLINE_EXCEEDED, "DeadlineExceeded"), (UNAVAILABLE, "Unavailable")])
def test_a_service_that_cannot_be_reached_is_named(world, status):
    """CNI-016"""
    code, name = status
    for ask in (
        lambda: world.connect(CallFailed(code, "gone"), DONE),
        lambda: world.disconnect(CallFailed(code, "gone")),
    ):
        with pytest.raises(Unavailable) as unavailable:
            ask()
        assert str(unavailable.value) == f"rpc error: code = {name} desc = gone (gRPC dataplane {SOCKET})"


def test_a_call_that_takes_all_of_the_plugins_time_is_expired(world):
    with pytest.raises(Expired, match=f"waiting for gRPC dataplane {SOCKET}"):
        world.connect(2.0, CallFailed(DEADLINE_EXCEEDED, "Deadline Exceeded"), DONE, seconds=2.0)


@pytest.mark.parametrize(
    "ended", [CallFailed(DEADLINE_EXCEEDED, "late"), CallFailed(UNAVAILABLE, "reset"), Interrupted()]
)
def test_an_add_that_ended_nobody_knows_how_is_taken_back(world, ended):
    """Its addresses are about to be given to others. Also when the plugin's own time is over."""
    with pytest.raises((Unavailable, Interrupted)):
        world.connect(3.0, ended, DONE, seconds=3.0)
    assert world.service.methods == [ADD, DEL]
    assert world.service.calls[1][2] == CALL_BUDGET
    request = wire.DelRequest.FromString(world.service.calls[1][1])
    assert (request.netns, request.interface_name) == ("/run/netns/n", "eth0")


@pytest.mark.parametrize("second", [CallFailed(UNAVAILABLE, "gone"), wire.DelReply(error_message="no")])
def test_a_taking_back_that_fails_is_logged_and_the_first_failure_answered(world, second):
    with pytest.raises(Unavailable, match="late"):
        world.connect(CallFailed(DEADLINE_EXCEEDED, "late"), second)
    assert len(world.log.shown("error")) == 1


def test_a_mac_that_is_none_is_refused_and_the_device_taken_back(world):
    with pytest.raises(Refused, match=r"^address 00:11: invalid MAC address$"):
        world.connect(wire.AddReply(successful=True, host_interface_name="tap7", container_mac="00:11"), DONE)
    assert world.service.methods == [ADD, DEL]


def test_what_cannot_be_sent_is_refused_before_anything_is_asked(world):
    bad = ATTACHMENT.replace(netns="/run/\udcff")
    for ask in (
        lambda: world.dataplane.connect(bad, world.clock.deadline(60)),
        lambda: world.dataplane.disconnect(bad.netns, "eth0", world.clock.deadline(60)),
    ):
        with pytest.raises(Refused, match=r"^cannot ask the grpc dataplane: "):
            ask()
    assert world.service.calls == []


def test_nothing_is_looked_at(world):
    """The namespace may be one that this machine's kernel does not know."""
    soon = world.clock.deadline(60)
    world.dataplane.examine("/no/such/path", "eth0", soon, "cali1")
    assert world.dataplane.look("/no/such/path", "eth0", soon) is None
    assert world.service.calls == []


@pytest.mark.parametrize(
    ("written", "native"),
    [
        ("unix:///run/s.sock", "unix:///run/s.sock"),
        ("unix:s.sock", "unix:s.sock"),
        ("127.0.0.1:9000", "127.0.0.1:9000"),
        ("dns:///host:9000", "dns:///host:9000"),
        ("passthrough:///host:9000", "host:9000"),
        ("passthrough://authority/host:9000", "host:9000"),
        ("passthrough:host:9000", "host:9000"),
    ],
)
def test_targets_are_spelled_as_for_the_original(written, native):
    assert without_passthrough(written) == native


@pytest.mark.parametrize(
    ("written", "target", "authority"),
    [
        ("unix:///run/s.sock", Target(path="/run/s.sock"), "localhost"),
        ("unix:s.sock", Target(path="s.sock"), "localhost"),
        ("unix-abstract:name", Target(path="\0name"), "localhost"),
        ("127.0.0.1:9000", Target(host="127.0.0.1", port=9000), "127.0.0.1:9000"),
        ("[::1]:9000", Target(host="::1", port=9000), "[::1]:9000"),
        ("::1", Target(host="::1", port=443), "[::1]:443"),
        ("host", Target(host="host", port=443), "host:443"),
        ("dns:///host:9000", Target(host="host", port=9000), "host:9000"),
        ("passthrough:///host:9000", Target(host="host", port=9000), "host:9000"),
        ("no target at all", Target(host="no target at all", port=443), "no target at all:443"),
        (f"h:{'1' * 5000}", Target(host=f"h:{'1' * 5000}", port=443), f"[h:{'1' * 5000}]:443"),
    ],
)
def test_targets_are_read_as_by_the_original(written, target, authority):
    assert parse_target(written) == target
    assert target.authority == authority
