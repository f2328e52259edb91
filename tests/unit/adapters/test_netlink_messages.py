"""Netlink's envelope: bytes to values and back, with datagrams as kernels send them and as none should."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.linux.netlink.messages import (
    NLM_F_ACK,
    NLM_F_MULTI,
    NLMSG_DONE,
    NLMSG_ERROR,
    NetlinkAnswer,
    NetlinkRequest,
    Verdict,
    all_attributes,
    answers,
    attribute,
    attributes,
    envelope,
    text_attribute,
    text_in,
    verdict,
)

KINDS = st.integers(0, 0x3FFF)
ENOENT, EOPNOTSUPP = 2, 95


@given(st.lists(st.tuples(KINDS, st.binary(max_size=40)), max_size=8))
def test_attributes_read_as_they_were_written(written):
    data = b"".join([attribute(kind, content) for kind, content in written])
    assert len(data) % 4 == 0
    assert list(all_attributes(data)) == written
    assert attributes(data) == dict(written)


def test_an_attribute_is_laid_out_as_in_the_kernels_header():
    assert attribute(3, b"lo\0") == struct.pack("=HH3sx", 7, 3, b"lo\0")
    assert text_attribute(3, "lo") == attribute(3, b"lo\0")


def test_flags_in_an_attributes_kind_are_no_part_of_it():
    assert attributes(attribute(18 | 0x8000, b"ab")) == attributes(attribute(18 | 0x4000, b"ab")) == {18: b"ab"}


@given(st.binary(max_size=80))
def test_any_bytes_are_read_as_far_as_they_are_attributes(data):
    assert sum(4 + len(content) for _, content in all_attributes(data)) <= len(data)


@pytest.mark.parametrize("length", [0, 3, 13, 0xFFFF])
def test_a_length_that_does_not_fit_ends_the_reading(length):
    data = attribute(1, b"good") + struct.pack("=HHI", length, 2, 0)
    assert list(all_attributes(data)) == [(1, b"good")]


def test_a_last_attribute_may_lack_its_padding():
    assert list(all_attributes(attribute(1, b"abcde")[:9])) == [(1, b"abcde")]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_ends_at_its_zero(text):
    ((_, data),) = all_attributes(text_attribute(3, text))
    assert text_in(data) == text_in(data + b"rest") == text


def test_a_text_with_a_zero_in_it_is_refused():
    with pytest.raises(ValueError, match="null byte"):
        text_attribute(3, "a\0b")


def test_a_request_is_laid_out_as_in_the_kernels_header():
    assert envelope(NetlinkRequest(16, NLM_F_ACK, b"12345"), 7) == struct.pack("=IHHII5s3x", 21, 16, 5, 7, 0, b"12345")


@given(
    st.lists(
        st.builds(NetlinkRequest, st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.binary(max_size=40)), max_size=5
    )
)
def test_messages_of_one_datagram_are_told_apart(requests):
    datagram = b"".join([envelope(request, number) for number, request in enumerate(requests)])
    assert list(answers(datagram)) == [
        NetlinkAnswer(request.kind, request.flags | 1, number, request.body) for number, request in enumerate(requests)
    ]


@given(st.binary(max_size=80))
def test_any_datagram_is_read_as_far_as_it_has_messages(datagram):
    assert sum(16 + len(answer.body) for answer in answers(datagram)) <= len(datagram)


@pytest.mark.parametrize("length", [0, 15, 21])
def test_a_message_longer_than_its_datagram_is_not_read(length):
    good = envelope(NetlinkRequest(16, 0, b"body"), 1)
    assert [answer.body for answer in answers(good + struct.pack("=IHHII4x", length, 16, 0, 1, 0))] == [b"body"]


def _error(errno: int, request: bytes, explanation: str = "", *, capped: bool = False) -> NetlinkAnswer:
    """As the kernel's netlink_ack() writes it."""
    quoted = request[:16] if capped or not errno else request
    flags = (0x100 if capped or not errno else 0) | (0x200 if explanation else 0)
    told = text_attribute(1, explanation) if explanation else b""
    return NetlinkAnswer(NLMSG_ERROR, flags, 7, struct.pack("=i", -errno) + quoted + told)


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("explanation", ["", "Unknown device type"])
@pytest.mark.parametrize("errno", [0, EOPNOTSUPP])
def test_a_verdict_has_its_errno_and_the_kernels_explanation(errno, explanation, capped):
    request = envelope(NetlinkRequest(16, NLM_F_ACK, text_attribute(3, "cali1")), 7)
    assert verdict(_error(errno, request, explanation, capped=capped)) == Verdict(errno, explanation)


def test_a_dump_ends_well_or_badly():
    assert verdict(NetlinkAnswer(NLMSG_DONE, NLM_F_MULTI, 7, struct.pack("=i", 0))) == Verdict(0)
    assert verdict(NetlinkAnswer(NLMSG_DONE, NLM_F_MULTI, 7, b"")) == Verdict(0)
    ended = NetlinkAnswer(
        NLMSG_DONE, NLM_F_MULTI | 0x200, 7, struct.pack("=i", -ENOENT) + text_attribute(1, "No such table")
    )
    assert verdict(ended) == Verdict(ENOENT, "No such table")


def test_an_answer_is_no_verdict():
    assert verdict(NetlinkAnswer(16, NLM_F_MULTI, 7, b"anything")) is None
