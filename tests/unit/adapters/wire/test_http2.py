"""HTTP/2 without a socket: what is sent for what came, in however many pieces, and what nobody should send."""

from __future__ import annotations

import itertools

import h2.config
import h2.connection
import h2.events
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.faults import Fault
from adapters.wire.hpack import Decoder, encode
from adapters.wire.http2 import CANCEL, REFUSED_STREAM, Http2
from services.http2_peer import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HAS_PRIORITY,
    HEADERS,
    OK,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    headers,
    number,
    read_frames,
    settings,
    trailers,
)

FIELDS = ((b":method", b"POST"), (b":path", b"/s/m"))


def asked(body: bytes = b"body", *, settled: bool = True):
    """A connection on which something was asked, and what has been sent is taken."""
    http2 = Http2()
    exchange = http2.begin(FIELDS, body)
    if settled:
        http2.take()
        http2.feed(settings())
        http2.take()
    return http2, exchange


def sent(http2: Http2):
    return read_frames(http2.take())


# --- asking ----------------------------------------------------------------------------------------------------------


def test_a_connection_begins_with_preface_settings_and_a_large_window():
    http2 = Http2()
    octets = http2.take()
    assert octets.startswith(PREFACE)
    (kind, flags, stream, payload), (second, _, _, more) = read_frames(octets)
    assert (kind, flags, stream, second) == (SETTINGS, 0, 0, WINDOW_UPDATE)
    assert payload == b"\0\2\0\0\0\0" + b"\0\4" + number(1 << 30)  # no push, this window for each stream
    assert 65535 + int.from_bytes(more, "big") == 1 << 30


def test_a_request_is_a_header_and_a_body_that_ends_it():
    http2 = Http2()
    http2.take()
    http2.begin(FIELDS, b"body", [(b"token", b"t")])
    (kind, flags, stream, block), (data, ends, its, body) = sent(http2)
    assert (kind, flags, stream) == (HEADERS, END_HEADERS, 1)
    assert Decoder().decode(block) == [*FIELDS, (b"token", b"t")]
    assert (data, ends, its, body) == (DATA, END_STREAM, 1, b"body")


def test_a_header_longer_than_a_frame_goes_on_in_further_ones():
    http2 = Http2()
    http2.take()
    http2.begin([*FIELDS, (b"x", b"y" * 40_000)], b"body")
    *blocks, last = sent(http2)
    assert [(kind, flags) for kind, flags, _, _ in blocks] == [
        (HEADERS, 0),
        (CONTINUATION, 0),
        (CONTINUATION, END_HEADERS),
    ]
    assert Decoder().decode(b"".join(block for *_, block in blocks))[-1] == (b"x", b"y" * 40_000)
    assert last[0] == DATA


def test_each_further_request_has_the_next_odd_number():
    http2, exchange = asked()
    http2.feed(headers(1) + trailers(1))
    assert exchange.ended
    http2.begin(FIELDS, b"again")
    assert {stream for _, _, stream, _ in sent(http2)} == {3}


@given(
    st.binary(min_size=1, max_size=100_000),
    st.integers(0, 70_000),
    st.lists(st.tuples(st.booleans(), st.integers(1, 40_000)), max_size=12),
)
def test_never_is_more_sent_than_the_windows_hold(body, window, updates):
    http2 = Http2()
    http2.feed(settings(initial_window_size=window))
    http2.take()
    http2.begin(FIELDS, body)
    connection, stream, came, ended = 65535, window, b"", False
    for whole, more in [*updates, (True, 100_000), (False, 100_000)]:
        for kind, flags, _, payload in sent(http2):
            if kind == DATA:
                came += payload
                connection, stream = connection - len(payload), stream - len(payload)
                ended = ended or bool(flags & END_STREAM)
                assert len(payload) <= 16384
        assert min(connection, stream) >= 0
        assert ended is (came == body)
        assert ended or min(connection, stream) == 0
        connection, stream = connection + more * whole, stream + more * (not whole)
        http2.feed(frame(WINDOW_UPDATE, 0, 0 if whole else 1, number(more)))
    came += b"".join(payload for kind, _, _, payload in sent(http2) if kind == DATA)
    assert came == body


def test_the_connections_window_counts_beside_the_requests():
    http2 = Http2()
    http2.feed(settings(initial_window_size=1_000_000))
    http2.take()
    http2.begin(FIELDS, b"x" * 70_000)
    assert sum(len(payload) for kind, _, _, payload in sent(http2) if kind == DATA) == 65535
    http2.feed(frame(WINDOW_UPDATE, 0, 0, number(10)))
    assert [len(payload) for kind, _, _, payload in sent(http2) if kind == DATA] == [10]


def test_a_smaller_initial_window_counts_for_a_request_on_its_way():
    """It may get negative; nothing is sent until it is positive again (RFC 9113, 6.9.2)."""
    http2 = Http2()
    http2.begin(FIELDS, b"x" * 70_000)
    assert sum(len(payload) for kind, _, _, payload in sent(http2) if kind == DATA) == 65535
    http2.feed(settings(initial_window_size=0) + frame(WINDOW_UPDATE, 0, 0, number(10_000)))
    http2.feed(frame(WINDOW_UPDATE, 0, 1, number(65_535)))
    assert [kind for kind, *_ in sent(http2)] == [SETTINGS]
    http2.feed(frame(WINDOW_UPDATE, 0, 1, number(1)))
    assert [(kind, len(payload)) for kind, _, _, payload in sent(http2)] == [(DATA, 1)]


def test_frames_are_as_long_as_the_server_likes_them():
    http2 = Http2()
    http2.feed(settings(max_frame_size=40_000))
    http2.take()
    http2.begin(FIELDS, b"x" * 60_000)
    assert [len(payload) for kind, _, _, payload in sent(http2) if kind == DATA] == [40_000, 20_000]


# --- answers ---------------------------------------------------------------------------------------------------------


def whole_answer() -> bytes:
    interim = headers(1, [(b":status", b"103")])
    padded = frame(DATA, PADDED, 1, b"\3de" + b"\0" * 3)
    return (
        settings(max_concurrent_streams=100)
        + frame(PING, 0, 0, b"12345678")
        + interim
        + frame(HEADERS, HAS_PRIORITY, 1, b"\0\0\0\0\1" + encode(OK)[:3])
        + frame(CONTINUATION, END_HEADERS, 1, encode(OK)[3:])
        + frame(PRIORITY, 0, 1, b"\0\0\0\0\1")
        + frame(0x4F, 255, 9, b"of a kind that nobody knows")
        + frame(DATA, 0, 1, b"abc")
        + frame(SETTINGS, ACK, 0)
        + padded
        + trailers(1)
    )


@given(st.lists(st.integers(0, 400), max_size=20))
def test_an_answer_is_the_same_in_however_many_pieces(cuts):
    octets, http2 = whole_answer(), Http2()
    exchange = http2.begin(FIELDS, b"body")
    http2.take()
    places = [0, *sorted(cut for cut in cuts if cut < len(octets)), len(octets)]
    for start, end in itertools.pairwise(places):
        http2.feed(octets[start:end])
    assert (exchange.fields, bytes(exchange.body), exchange.ended) == (list(OK), b"abcde", True)
    assert exchange.trailers == [(b"grpc-status", b"0")]
    assert sorted((kind, flags, payload) for kind, flags, _, payload in sent(http2)) == [
        (SETTINGS, ACK, b""),
        (PING, ACK, b"12345678"),
    ]


def test_an_answer_without_a_body_has_its_trailers_first():
    http2, exchange = asked()
    http2.feed(headers(1, [*OK, (b"grpc-status", b"5")], END_HEADERS | END_STREAM))
    assert exchange.ended
    assert exchange.trailers == exchange.fields == [*OK, (b"grpc-status", b"5")]


def test_the_server_hears_of_what_was_received():
    http2, exchange = asked()
    http2.feed(headers(1))
    for _ in range(2):
        for _ in range(64):
            assert sent(http2) == []
            http2.feed(frame(DATA, 0, 1, b"x" * 16384))
        assert sent(http2) == [(WINDOW_UPDATE, 0, 0, number(1 << 20)), (WINDOW_UPDATE, 0, 1, number(1 << 20))]
    assert len(exchange.body) == 2 << 20


def test_a_request_that_is_answered_too_early_is_not_sent_to_its_end():
    http2, exchange = asked(b"x" * 100_000)
    http2.feed(trailers(1, 8))
    assert exchange.ended
    assert sent(http2) == [(RST_STREAM, 0, 1, number(CANCEL))]
    http2.feed(frame(WINDOW_UPDATE, 0, 0, number(100_000)))
    assert sent(http2) == []


@pytest.mark.parametrize(("code", "untouched"), [(2, False), (REFUSED_STREAM, True)])
def test_a_request_may_be_given_up_by_the_server(code, untouched):
    http2, exchange = asked()
    http2.feed(frame(RST_STREAM, 0, 1, number(code)))
    assert (exchange.ended, exchange.code, exchange.untouched) == (True, code, untouched)


def test_what_comes_for_an_exchange_that_has_ended_changes_nothing():
    http2, exchange = asked()
    http2.feed(headers(1) + trailers(1))
    late = frame(RST_STREAM, 0, 1, number(0)) + frame(DATA, 0, 1, b"late") + trailers(1, 9)
    http2.feed(late + frame(DATA, 0, 7, b"of nobody") + headers(7) + frame(RST_STREAM, 0, 7, number(1)))
    assert (exchange.code, bytes(exchange.body), exchange.trailers) == (None, b"", [(b"grpc-status", b"0")])


def test_what_comes_for_another_exchange_is_not_this_ones():
    http2, exchange = asked()
    http2.feed(headers(3) + frame(DATA, 0, 3, b"x") + trailers(3, 9) + frame(RST_STREAM, 0, 3, number(1)))
    assert (exchange.fields, bytes(exchange.body), exchange.ended) == (None, b"", False)


@pytest.mark.parametrize(("last", "ended"), [(0, True), (1, False)])
def test_a_server_that_leaves_says_what_it_still_looks_at(last, ended):
    http2, exchange = asked()
    http2.feed(frame(GOAWAY, 0, 0, number(last) + number(0) + b"max_age"))
    assert http2.leaving == "the server ends the connection: max_age"
    assert (exchange.ended, exchange.untouched) == (ended, ended)
    if not ended:
        http2.feed(headers(1) + trailers(1))
        assert exchange.ended
        assert not exchange.untouched


def test_no_more_of_a_leaving_servers_words_is_kept_than_anybody_reads():
    http2, _ = asked()
    http2.feed(frame(GOAWAY, 0, 0, number(1) + number(0) + b"x" * 10_000))
    assert len(http2.leaving) < 600


def test_a_leaving_servers_words_are_shown_only_if_they_are_words():
    http2, _ = asked()
    http2.feed(frame(GOAWAY, 0, 0, number(1) + number(0) + b"\x1b[2J"))
    assert http2.leaving == "the server ends the connection"


# --- what nobody should send -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "octets",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",  # an alert of TLS
        b"SSH-2.0-OpenSSH\r\n",
        frame(PING, 0, 0, b"12345678"),
        frame(SETTINGS, ACK, 0),
    ],
)
def test_another_protocol_is_recognised(octets):
    with pytest.raises(Fault, match="does not speak HTTP/2"):
        asked(settled=False)[0].feed(octets)


@pytest.mark.parametrize(
    ("octets", "fault"),
    [
        (frame(DATA, 0, 1, b"x" * 16385), "a frame that is too large"),
        (frame(DATA, 0, 1, b"x"), "a body before its header"),
        (frame(SETTINGS, 0, 0, b"1234567"), "settings of the wrong size"),
        (frame(PING, 0, 0, b"1234567"), "a ping of the wrong size"),
        (settings(initial_window_size=2**31), "a window that is too large"),
        (frame(WINDOW_UPDATE, 0, 0, number(2**31 - 1)), "a window that is too large"),
        (frame(WINDOW_UPDATE, 0, 1, number(2**31 - 1)), "a window that is too large"),
        (frame(PUSH_PROMISE, 0, 1, number(2)), "a push that was declined"),
        (frame(HEADERS, 0, 1, b"\x88") + frame(DATA, 0, 1, b"x"), "not whole"),
        (frame(HEADERS, 0, 1, b"\x88") + frame(CONTINUATION, 0, 3, b"\x88"), "not whole"),
        (frame(CONTINUATION, 0, 1, b"\x88"), "not whole"),
        (frame(HEADERS, 0, 1) + frame(CONTINUATION, 0, 1, b"\x88" * 16384) * 17, "a header that is too large"),
        (frame(HEADERS, END_HEADERS, 1, b"\x80"), "of no table"),
        (headers(1) + frame(DATA, PADDED, 1, b"\5abcd"), "more padding than octets"),
        (headers(1) + frame(DATA, PADDED, 1), "more padding than octets"),
    ],
)
def test_what_nobody_should_send_ends_the_connection(octets, fault):
    with pytest.raises(Fault, match=fault):
        asked()[0].feed(octets)


frames = st.builds(
    frame,
    st.integers(0, 11),
    st.integers(0, 255),
    st.integers(0, 5),
    st.one_of(st.binary(max_size=60), st.just(encode(OK))),
)


@given(st.lists(st.one_of(frames, st.binary(max_size=40)), max_size=20))
def test_whatever_comes_reading_goes_on_or_ends_with_a_fault(pieces):
    http2, exchange = asked()
    try:
        for piece in pieces:
            http2.feed(piece)
            read_frames(http2.take())
    except Fault:
        return
    assert len(exchange.body) <= sum(map(len, pieces))


# --- beside the library ----------------------------------------------------------------------------------------------

REQUEST = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/s/m"), (b":authority", b"h"))
bodies = st.builds(lambda seed, size: (seed * size)[:size], st.binary(min_size=1, max_size=9), st.integers(1, 200_000))


class LibraryServer:
    """Hears a whole request, then answers with a body in pieces of at most `size`."""

    def __init__(self, body: bytes, size: int) -> None:
        self._connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self._connection.initiate_connection()
        self._left, self._size = body, size
        self._answering = False
        self.heard = b""

    def converse(self, octets: bytes) -> bytes:
        for event in self._connection.receive_data(octets):
            if isinstance(event, h2.events.DataReceived):
                self.heard += event.data
                self._connection.acknowledge_received_data(event.flow_controlled_length, 1)
            elif isinstance(event, h2.events.StreamEnded):
                self._connection.send_headers(1, [(":status", "200")])
                self._answering = True
        if self._answering:
            self._answer()
        return self._connection.data_to_send()

    def _answer(self) -> None:
        while room := min(self._size, self._connection.local_flow_control_window(1), len(self._left)):
            self._connection.send_data(1, self._left[:room])
            self._left = self._left[room:]
        if not self._left:
            self._answering = False
            self._connection.send_headers(1, [("grpc-status", "0")], end_stream=True)


@given(bodies, bodies, st.integers(1000, 16384))
def test_a_server_of_the_library_hears_what_is_asked_and_is_understood(asked_for, told, size):
    """Bodies are larger than a window, so both sides have to make room."""
    ours, server = Http2(), LibraryServer(told, size)
    exchange = ours.begin(REQUEST, asked_for)
    for _ in range(1000):
        ours.feed(server.converse(ours.take()))
        if exchange.ended:
            break
    assert server.heard == asked_for
    assert exchange.fields == [(b":status", b"200")]
    assert bytes(exchange.body) == told
    assert exchange.trailers == [(b"grpc-status", b"0")]
