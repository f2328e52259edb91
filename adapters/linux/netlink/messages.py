"""Netlink's envelope as bytes: messages, attributes in attributes, and the kernel's verdicts.

Everything is in the machine's byte order and padded to four bytes, so that a view of the buffer as 16- and 32-bit
numbers reads lengths and kinds without loading `struct`.

Invariant: pure. What a datagram says of its own lengths is checked against what has been received; what does not fit
is not read.
"""

from __future__ import annotations

from errno import EPROTO
from sys import byteorder

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NLM_F_REQUEST, NLM_F_MULTI, NLM_F_ACK, NLM_F_DUMP_INTR = 0x1, 0x2, 0x4, 0x10
NLM_F_EXCL, NLM_F_CREATE, NLM_F_APPEND = 0x200, 0x400, 0x800
CREATE_ONLY = NLM_F_CREATE | NLM_F_EXCL
NLM_F_DUMP = 0x100 | 0x200  # NLM_F_ROOT | NLM_F_MATCH
NLMSG_ERROR, NLMSG_DONE = 2, 3  # types of answers
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200  # flags of these two
NLMSGERR_ATTR_MSG = 1
NLA_F_NESTED = 0x8000  # some requests are only understood with it
NLA_TYPE_MASK = 0x3FFF  # without that and NLA_F_NET_BYTEORDER
NLMSG_HDRLEN, NLA_HDRLEN, _ERRNO = 16, 4, 4  # bytes: nlmsghdr, nlattr, the errno in an nlmsgerr
_ERROR_NUMBERS = range(4096)  # MAX_ERRNO


class NetlinkRequest(Value):
    """What is asked: a message without its number. `flags` are those beside NLM_F_REQUEST."""

    kind: int
    flags: int
    body: bytes


class NetlinkAnswer(Value):
    """An nlmsghdr from the kernel and what follows it. `sequence` is the number of the request that it answers."""

    kind: int
    flags: int
    sequence: int
    body: bytes


class Verdict(Value):
    """How a request ended, an nlmsgerr: errno, 0 for success; the kernel's explanation in English, where it has one."""

    errno: int
    explanation: str = ""


def u16(number: int) -> bytes:
    return number.to_bytes(2, byteorder)


def u32(number: int) -> bytes:
    return number.to_bytes(4, byteorder)


def number_in(data: bytes) -> int:
    """Unsigned, of any size."""
    return int.from_bytes(data, byteorder)


def signed_in(data: bytes) -> int:
    return int.from_bytes(data, byteorder, signed=True)


def attribute(kind: int, data: bytes) -> bytes:
    return u16(NLA_HDRLEN + len(data)) + u16(kind) + data + bytes(-len(data) & 3)


def text_attribute(kind: int, text: str) -> bytes:
    """ValueError for a text that no name can be: one with a zero byte in it."""
    if "\0" in text:
        raise ValueError("embedded null byte")
    return attribute(kind, text.encode("utf-8", "surrogateescape") + b"\0")


def text_in(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def attributes(data: bytes) -> dict[int, bytes]:
    """Kind → content. Of several of one kind the last one."""
    return dict(all_attributes(data))


def all_attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(kind, content) in order."""
    shorts = memoryview(data[: len(data) & ~3]).cast("H")
    at, end = 0, len(data) & ~3
    while at < end:
        length = shorts[at >> 1]
        if length < NLA_HDRLEN or at + length > len(data):
            return
        yield shorts[(at >> 1) + 1] & NLA_TYPE_MASK, data[at + NLA_HDRLEN : at + length]
        at += (length + 3) & ~3


def envelope(request: NetlinkRequest, sequence: int) -> bytes:
    """The message as it is sent, an nlmsghdr before it, padded so that another can follow in the same datagram."""
    length = NLMSG_HDRLEN + len(request.body)
    flags = u16(request.flags | NLM_F_REQUEST)
    return u32(length) + u16(request.kind) + flags + u32(sequence) + bytes(4) + request.body + bytes(-length & 3)


def answers(datagram: bytes) -> Iterator[NetlinkAnswer]:
    """The messages of one datagram, in order."""
    at, end = 0, len(datagram)
    while at + NLMSG_HDRLEN <= end:
        length = number_in(datagram[at : at + 4])
        if length < NLMSG_HDRLEN or at + length > end:
            return
        shorts = memoryview(datagram[at : at + NLMSG_HDRLEN]).cast("H")
        sequence = number_in(datagram[at + 8 : at + 12])
        yield NetlinkAnswer(shorts[2], shorts[3], sequence, datagram[at + NLMSG_HDRLEN : at + length])
        at += (length + 3) & ~3


def verdict(answer: NetlinkAnswer) -> Verdict | None:
    """None for an answer that is no end. The error number is negative on the wire.

    A dump that ends well may carry no number at all. An error quotes the request, its header at least, before it
    explains itself.
    """
    if answer.kind not in (NLMSG_ERROR, NLMSG_DONE):
        return None
    errno = -signed_in(answer.body[:_ERRNO]) if len(answer.body) >= _ERRNO else 0
    if errno not in _ERROR_NUMBERS:
        errno = EPROTO
    explanation = b""
    if answer.flags & NLM_F_ACK_TLVS:
        explanation = attributes(answer.body[_explanation_at(answer) :]).get(NLMSGERR_ATTR_MSG, b"")
    return Verdict(errno, text_in(explanation))


def _explanation_at(answer: NetlinkAnswer) -> int:
    if answer.kind == NLMSG_DONE:
        return _ERRNO
    quoted = NLMSG_HDRLEN
    if not answer.flags & NLM_F_CAPPED:
        quoted = number_in(answer.body[_ERRNO : _ERRNO + 4])
    return _ERRNO + ((quoted + 3) & ~3)
