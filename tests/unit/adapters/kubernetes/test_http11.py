"""HTTP/1.1 as octets: however an answer is cut into pieces, it is the same, or the same error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.kubernetes.transport.http11 import MOST, CutOff, Garbled, Reader, TooLarge, request_octets
from adapters.kubernetes.transport.seam import HttpAnswer


def reader(*pieces: bytes) -> Reader:
    left = iter([*pieces])
    return Reader(lambda: next(left, b""))


def test_a_request():
    headers = [("Host", "a"), ("X", "ä")]
    assert request_octets("GET", "/a?b", headers, b"") == "GET /a?b HTTP/1.1\r\nHost: a\r\nX: ä\r\n\r\n".encode()
    assert request_octets("PUT", "/", [], b"{}") == b"PUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
    assert request_octets("POST", "/", [], b"") == b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("bad", ["a\r\nX: y", "a\ny", "a\ry"])
def test_a_line_break_cannot_smuggle_a_header(bad):
    with pytest.raises(ValueError, match="line break"):
        request_octets("GET", "/", [("X", bad)], b"")
    with pytest.raises(ValueError, match="line break"):
        request_octets("GET", bad, [], b"")


LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\na:\tc \r\n\r\nhello"
CHUNKED = b"HTTP/1.1 201 Made\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhe\r\n3 ;x=y\r\nllo\r\n0\r\nT: x\r\n\r\n"
NOTHING = b"HTTP/1.1 204 \r\n\r\n"
REMARK = b"HTTP/1.1 100 Continue\r\n\r\n"


@given(st.lists(st.sampled_from([LENGTH, CHUNKED, NOTHING, REMARK + LENGTH]), max_size=5), st.data())
def test_answers_are_the_same_in_whatever_pieces_they_come(answers, data):
    stream = b"".join(answers)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)]) if start < end]
    reading = reader(*pieces)
    for answer in answers:
        found, keep = reading.answer("GET")
        assert keep
        assert found.body == (b"" if answer is NOTHING else b"hello")
        assert found.status == {LENGTH: 200, CHUNKED: 201, NOTHING: 204}.get(answer, 200)
    assert reading.unread() == b""
    with pytest.raises(CutOff):
        reading.answer("GET")


@given(st.sampled_from([LENGTH, CHUNKED, REMARK + LENGTH]), st.data())
def test_an_answer_that_is_cut_off_is_none(answer, data):
    cut = data.draw(st.integers(0, len(answer) - 1))
    with pytest.raises(CutOff):
        reader(*([answer[:cut]] if cut else [])).answer("GET")


@given(st.binary(max_size=200))
def test_anything_may_come(octets):
    reading = reader(*([octets] if octets else []))
    with pytest.raises((CutOff, Garbled)):
        _ = [reading.answer("GET") for _ in range(50)]


def test_headers_have_small_letters_and_repeated_ones_are_joined():
    answer, _ = reader(LENGTH).answer("GET")
    assert answer == HttpAnswer(200, b"hello", {"content-length": "5", "a": "b, c"})


def test_an_answer_without_a_length_ends_with_the_connection():
    answer, keep = reader(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo").answer("GET")
    assert (answer.body, keep) == (b"hello", False)


@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 200 OK\r\nConnection: Close\r\n"])
def test_a_connection_may_end_after_an_answer(head):
    assert reader(head + b"Content-Length: 0\r\n\r\n").answer("GET")[1] is False


def test_some_answers_have_no_body_whatever_they_say():
    for method, status in (("HEAD", 200), ("GET", 204), ("GET", 304), ("CONNECT", 200)):
        reading = reader(b"HTTP/1.1 %d x\r\nContent-Length: 5\r\n\r\nnext" % status)
        assert reading.answer(method)[0].body == b""
        assert reading.unread() == b"next"


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (b"HTTP/1.1 0999 OK\r\n\r\n", "does not speak HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "does not speak HTTP"),
        (b"HTTP/2 200\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n", "is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", "is no number"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "is no number"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcd", "has not the length that it says"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * (1 << 20) + b"z", "has no end"),
    ],
)
def test_what_is_no_http_is_said_so_at_once(octets, said):
    with pytest.raises(Garbled, match=said):
        reader(octets, b"more").answer("GET")


# --- answers without end ---------------------------------------------------------------------------------------------

PIECE = b"x" * (1 << 20)
CHUNK = b"%x\r\n%s\r\n" % (len(PIECE), PIECE)


class Endless:
    """Sends a head, and then the same for ever. `sent` counts its octets."""

    def __init__(self, head: bytes, piece: bytes) -> None:
        self._next, self._piece = head, piece
        self.sent = 0

    def __call__(self) -> bytes:
        octets, self._next = self._next, self._piece
        self.sent += len(octets)
        return octets


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", PIECE),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNK),
    ],
    ids=["until the end of the connection", "in chunks"],
)
def test_an_answer_without_end_is_given_up(head, piece):
    endless = Endless(head, piece)
    with pytest.raises(TooLarge, match="more than 256 MiB"):
        Reader(endless).answer("GET")
    assert endless.sent < MOST + 3 * len(piece)


@pytest.mark.parametrize(
    "length", [b"Content-Length: 268435457\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n10000001\r\n"]
)
def test_an_answer_that_says_to_be_too_large_is_not_even_read(length):
    endless = Endless(b"HTTP/1.1 200 OK\r\n" + length, PIECE)
    with pytest.raises(TooLarge):
        Reader(endless).answer("GET")
    assert endless.sent < len(PIECE)


def test_remarks_without_end_are_given_up():
    endless = Endless(REMARK, REMARK * 10)
    with pytest.raises(Garbled, match="remarks without end"):
        Reader(endless).answer("GET")
    assert endless.sent < 200 * len(REMARK)


@pytest.mark.parametrize("end", [b"", b"Transfer-Encoding: chunked\r\n\r\n0\r\n"])
def test_headers_without_end_are_given_up(end):
    """At a thousand; so many of one name would take a minute to be joined."""
    with pytest.raises(Garbled, match=r"more than 1000 (trailing )?headers"):
        reader(b"HTTP/1.1 200 OK\r\n" + end + b"a:\r\n" * 300_000 + b"\r\n").answer("GET")
