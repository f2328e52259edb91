"""Conversations of the lean netlink transport, with a script in the kernel's place."""

from __future__ import annotations

import struct
from errno import EBUSY, EINTR, EIO, ENOBUFS, ENODEV, ENOENT, EPERM
from socket import AF_UNIX, SOCK_SEQPACKET, socketpair

import pytest

from adapters.linux.netlink.bridge_lean import LeanBridgeNetlink
from adapters.linux.netlink.messages import (
    NLMSG_DONE,
    NLMSG_ERROR,
    NetlinkRequest,
    answers,
    attribute,
    envelope,
    text_attribute,
    u32,
)
from adapters.linux.netlink.seam import KernelError, PairRequest, Unanswered
from domain.ipam.address import Cidr
from domain.linux.link import Link, Route

NLM_F_MULTI, INTERRUPTED = 0x2, 0x10
ONE, OTHER = Cidr.parse("10.0.0.1/32"), Cidr.parse("10.0.0.2/32")


@pytest.fixture
def kernel():
    kernel = Script()
    yield kernel
    kernel.close()


class Script:
    """Answers that lie ready before the question is asked; a question's number is known, since they are counted."""

    def __init__(self) -> None:
        self._ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        self.netlink = LeanBridgeNetlink(theirs)

    def say(self, *messages: bytes) -> None:
        self._ours.send(b"".join(messages))

    def heard(self) -> list[int]:
        """The kinds of the requests so far."""
        self._ours.setblocking(False)
        kinds = []
        while True:
            try:
                kinds += [answer.kind for answer in answers(self._ours.recv(1 << 16))]
            except BlockingIOError:
                return kinds

    def close(self) -> None:
        self.netlink.close()
        self._ours.close()


def message(kind: int, sequence: int, body: bytes = b"", flags: int = 0) -> bytes:
    return envelope(NetlinkRequest(kind, flags, body), sequence)


def link(sequence: int, name: str, index: int = 7) -> bytes:
    return message(16, sequence, bytes(4) + u32(index) + bytes(8) + text_attribute(3, name))


def address(sequence: int, cidr: Cidr, index: int = 7, flags: int = NLM_F_MULTI) -> bytes:
    body = bytes([2, cidr.length, 0, 0]) + u32(index) + attribute(2, cidr.number.to_bytes(4))
    return message(20, sequence, body, flags)


def verdict(sequence: int, errno: int = 0) -> bytes:
    return message(NLMSG_ERROR, sequence, struct.pack("=i", -errno) + bytes(16))


def done(sequence: int, errno: int = 0, flags: int = NLM_F_MULTI) -> bytes:
    return message(NLMSG_DONE, sequence, struct.pack("=i", -errno), flags)


def test_an_answer_to_another_question_is_passed_over(kernel):
    """What a signal tore apart left its answer in the socket."""
    kernel.say(link(99, "stale"))
    kernel.say(verdict(98, EPERM), link(1, "eth0"))
    assert kernel.netlink.link("eth0") == Link(7, "eth0", "", False, 0, "")


class Short:
    """A socket whose kernel has no memory for some of what it should deliver: those receipts fail."""

    def __init__(self, netlink, *failing: int, errno: int = ENOBUFS) -> None:
        self._real, self._failing, self._errno, self._count = netlink._socket, failing, errno, 0
        self.send, self.close = self._real.send, self._real.close
        netlink._socket = self

    def recv(self, size: int) -> bytes:
        self._count += 1
        if self._count in self._failing:
            raise OSError(self._errno, "x")
        return self._real.recv(size)


def test_a_look_up_whose_answer_was_lost_is_repeated(kernel):
    Short(kernel.netlink, 1, 2)
    kernel.say(link(3, "eth0"))
    assert kernel.netlink.link("eth0").name == "eth0"
    assert kernel.heard() == [18, 18, 18]


def test_a_look_up_is_not_repeated_for_ever(kernel):
    Short(kernel.netlink, 1, 2, 3)
    with pytest.raises(Unanswered, match="no buffer space available"):
        kernel.netlink.link("eth0")


def test_a_dump_some_of_which_was_lost_is_taken_to_its_end_and_repeated(kernel):
    """The kernel begins no other while one is under way."""
    Short(kernel.netlink, 2)
    kernel.say(address(1, ONE))
    kernel.say(done(1))
    kernel.say(address(2, ONE), address(2, OTHER), done(2))
    assert kernel.netlink.addresses(7, 4) == [ONE, OTHER]
    assert len(kernel.heard()) == 2


@pytest.mark.parametrize("errno", [ENOBUFS, EIO])
def test_a_change_whose_answer_was_lost_may_have_been_made(kernel, errno):
    Short(kernel.netlink, 1, errno=errno)
    with pytest.raises(Unanswered):
        kernel.netlink.set_up(7, up=True)
    assert len(kernel.heard()) == 1


def test_questions_are_numbered(kernel):
    kernel.say(link(1, "one", 7))
    kernel.say(link(2, "two", 8))
    assert kernel.netlink.link("one").index == 7
    assert kernel.netlink.link_by_index(8).name == "two"
    assert kernel.heard() == [18, 18]


def test_a_refusal_is_an_error_and_a_missing_device_an_answer(kernel):
    for sequence, errno in enumerate([EPERM, ENODEV, ENODEV, EBUSY, ENODEV], 1):
        kernel.say(verdict(sequence, errno))
    with pytest.raises(KernelError, match="operation not permitted"):
        kernel.netlink.link("eth0")
    assert kernel.netlink.link("eth0") is None
    kernel.netlink.delete_link(7)
    with pytest.raises(KernelError, match="device or resource busy"):
        kernel.netlink.delete_link(7)
    with pytest.raises(KernelError, match="no such device"):
        kernel.netlink.set_up(7, up=True)


def test_a_question_without_its_one_answer_is_an_error(kernel):
    kernel.say(verdict(1))
    kernel.say(link(2, "eth0") + link(2, "eth1"), verdict(2))
    kernel.say(message(16, 3, flags=NLM_F_MULTI), message(16, 3, flags=NLM_F_MULTI), done(3))
    with pytest.raises(KernelError, match="0 answers to a question"):
        kernel.netlink.link("eth0")
    assert kernel.netlink.link("eth0").name == "eth0"
    with pytest.raises(KernelError, match="2 answers to a question"):
        kernel.netlink.namespace_id(5)


@pytest.mark.parametrize("number", [1, -4096, -(2**31)])
def test_a_verdict_with_no_error_number_is_an_error_all_the_same(kernel, number):
    kernel.say(verdict(1, -number))
    with pytest.raises(KernelError, match="protocol error"):
        kernel.netlink.set_up(7, up=True)


@pytest.mark.parametrize("size", range(12))
def test_messages_shorter_than_their_header_are_passed_over(kernel, size):
    body = bytes([2, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0])[:size]
    for sequence in (1, 2, 3):
        kernel.say(message(20, sequence, body, flags=NLM_F_MULTI), done(sequence))
    assert kernel.netlink.addresses(7, 4) == []
    assert kernel.netlink.routes(4) == []


def test_a_dump_goes_on_over_datagrams_until_its_end(kernel):
    kernel.say(address(1, ONE), address(1, Cidr.parse("10.9.9.9/8"), index=8))
    kernel.say(address(1, OTHER))
    kernel.say(done(1))
    assert kernel.netlink.addresses(7, 4) == [ONE, OTHER]


@pytest.mark.parametrize("torn", ["in an answer", "at the end"])
def test_a_dump_that_was_torn_is_asked_for_again(kernel, torn):
    flags = NLM_F_MULTI | INTERRUPTED
    kernel.say(address(1, OTHER, flags=flags if torn == "in an answer" else NLM_F_MULTI))
    kernel.say(done(1, flags=flags if torn == "at the end" else NLM_F_MULTI))
    kernel.say(address(2, ONE), done(2))
    assert kernel.netlink.addresses(7, 4) == [ONE]


def test_a_dump_that_is_torn_every_time_is_given_up(kernel):
    for sequence in (1, 2, 3):
        kernel.say(done(sequence, flags=NLM_F_MULTI | INTERRUPTED))
    with pytest.raises(KernelError) as given_up:
        kernel.netlink.routes(4)
    assert given_up.value.errno == EINTR
    assert kernel.heard() == [26, 26, 26]


@pytest.mark.parametrize("end", [verdict, done])
@pytest.mark.parametrize("errno", [ENODEV, ENOENT])
def test_what_does_not_exist_has_nothing_to_list(kernel, end, errno):
    """Kernels that look for the one device or table that was asked about."""
    kernel.say(end(1, errno))
    assert kernel.netlink.addresses(7, 4) == []


def test_a_dump_that_is_refused_is_an_error(kernel):
    kernel.say(done(1, EPERM))
    with pytest.raises(KernelError, match="operation not permitted"):
        kernel.netlink.routes(6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda netlink: netlink.link("eth\0"),
        lambda netlink: netlink.set_mac(7, "02:00"),
        lambda netlink: netlink.create_pair(PairRequest("veth", "cali1", "\ud800", 9)),
        lambda netlink: netlink.append_route(Route(7, ONE, scope=300)),
        lambda netlink: netlink.append_route(Route(7, ONE, mtu=1 << 32)),
        lambda netlink: netlink.create_bridge("br0", -1, filters_vlans=False),
    ],
)
def test_what_cannot_be_written_is_an_invalid_argument_and_never_sent(kernel, ask):
    with pytest.raises(KernelError, match="invalid argument"):
        ask(kernel.netlink)
    assert kernel.heard() == []


def test_a_socket_that_fails_is_an_error_of_the_kernel(kernel):
    kernel.close()
    with pytest.raises(KernelError, match="bad file descriptor"):
        kernel.netlink.set_up(7, up=True)
