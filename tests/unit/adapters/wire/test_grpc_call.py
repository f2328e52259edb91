"""Unary calls over a played connection: what is sent, and what each way of ending one means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.faults import Fault
from adapters.wire.grpc_call import INTERNAL, UNAVAILABLE, UNKNOWN, Channel, StatusFault
from adapters.wire.hpack import Decoder
from adapters.wire.waiting import drive
from services.http2_peer import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    OK,
    PING,
    RST_STREAM,
    Played,
    answer,
    enveloped,
    frame,
    headers,
    number,
    read_frames,
    refusal,
    settings,
    trailers,
)

METHOD = "/p.Service/Method"


def call(*pieces: bytes, seconds: float = 5.0, token: str = "") -> bytes:
    return drive(channel(*pieces).call(METHOD, b"question", seconds, token), float("inf"))


def channel(*pieces: bytes) -> Channel:
    return Channel(Played(settings(), *pieces), "host:1", secure=False)


def refused(*pieces: bytes) -> StatusFault:
    with pytest.raises(StatusFault) as caught:
        call(*pieces)
    return caught.value


def asked(**how) -> dict[bytes, bytes]:
    """The header of a request."""
    stream = Played(settings(), answer(1, b""))
    secure = how.pop("secure", False)
    drive(Channel(stream, "host:1", secure=secure).call(METHOD, b"question", **{"seconds": 5.0} | how), float("inf"))
    (block,) = [payload for kind, _, _, payload in read_frames(stream.sent) if kind == HEADERS]
    return dict(Decoder().decode(block))


def test_a_call_is_a_message_there_and_a_message_back():
    stream = Played(settings(), answer(1, b"answer"))
    assert drive(Channel(stream, "host:1", secure=False).call(METHOD, b"question", 5.0), float("inf")) == b"answer"
    (body,) = [payload for kind, _, _, payload in read_frames(stream.sent) if kind == DATA]
    assert body == enveloped(b"question")


def test_a_request_says_whom_it_is_for_and_how_long_there_is_time():
    assert asked(token="t") == {  # noqa: S106 - of nobody
        b":method": b"POST",
        b":scheme": b"http",
        b":path": METHOD.encode(),
        b":authority": b"host:1",
        b"content-type": b"application/grpc",
        b"user-agent": b"tortie",
        b"te": b"trailers",
        b"grpc-timeout": b"5000m",
        b"token": b"t",
    }
    assert asked(secure=True)[b":scheme"] == b"https"


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0.0001, b"1m"), (-1.0, b"1m"), (99_999.999, b"99999999m"), (100_000.0, b"100000S"), (1e12, b"99999999S")],
)
def test_times_have_at_most_eight_digits(seconds, written):
    assert asked(seconds=seconds)[b"grpc-timeout"] == written


def test_one_connection_is_good_for_one_call_after_the_other():
    both = channel(answer(1, b"a"), answer(3, b"b"), refusal(5, 5, b"no"), answer(7, b"c"))
    assert [drive(both.call(METHOD, b"q", 5.0), float("inf")) for _ in range(2)] == [b"a", b"b"]
    with pytest.raises(StatusFault, match="no"):
        drive(both.call(METHOD, b"q", 5.0), float("inf"))
    assert drive(both.call(METHOD, b"q", 5.0), float("inf")) == b"c"


def test_an_answer_that_has_begun_can_be_told_from_one_that_has_not():
    half = channel(headers(1), frame(DATA, 0, 1, enveloped(b"answer")), trailers(1))
    exchange = drive(half.begin(METHOD, b"q", 5.0), float("inf"))
    assert (exchange.fields, exchange.ended) == (list(OK), False)
    assert drive(half.finish(exchange), float("inf")) == b"answer"


def test_statuses_come_at_once_or_behind_an_answer():
    for pieces in ([refusal(1, 3, b"why")], [headers(1), frame(DATA, 0, 1, enveloped(b"a")), trailers(1, 3, b"why")]):
        fault = refused(*pieces)
        assert (fault.status, str(fault), fault.harmless) == (3, "why", False)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"caf%C3%A9 100%25", "café 100%"),
        (b"50% of %zz %4", "50% of %zz %4"),
        (b"%ff", "\ufffd"),
        (b"%", "%"),
        (b"%+1%  ", "%+1%  "),
        (b"", ""),
    ],
)
def test_messages_are_percent_encoded_utf_8(written, text):
    assert str(refused(refusal(1, 2, written))) == text


def test_no_more_of_a_servers_text_is_passed_on_than_anybody_reads():
    assert str(refused(refusal(1, 2, b"x" * 10_000))) == "x" * 2000


@given(st.text(max_size=40))
def test_every_text_survives_its_encoding(text):
    encoded = "".join(
        f"%{octet:02X}" if not 32 <= octet < 127 or octet == 37 else chr(octet) for octet in text.encode()
    )
    assert str(refused(refusal(1, 2, encoded.encode()))) == text


@pytest.mark.parametrize(
    ("http", "status"), [(b"400", 13), (b"401", 16), (b"403", 7), (b"404", 12), (b"429", 14), (b"503", 14), (b"500", 2)]
)
def test_where_no_grpc_is_spoken_the_http_status_counts(http, status):
    fault = refused(
        headers(1, [(b":status", http), (b"content-type", b"text/html")]) + frame(DATA, END_STREAM, 1, b"<")
    )
    assert (fault.status, str(fault)) == (status, f"HTTP status {http.decode()}, which no gRPC server sends")


@pytest.mark.parametrize("status", [b"", b"-1", b"x", b"9" * 20])
def test_an_answer_without_a_status_is_none(status):
    fields = [(b":status", b"200"), (b"grpc-status", status)]
    fault = refused(headers(1, fields, END_HEADERS | END_STREAM))
    assert (fault.status, str(fault)) == (UNKNOWN, "the server has sent no status")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "exactly one whole message"),
        (b"\0\0\0\0", "exactly one whole message"),
        (enveloped(b"a")[:-1], "exactly one whole message"),
        (enveloped(b"a") + enveloped(b"b"), "exactly one whole message"),
        (b"\0\xff\xff\xff\xffa", "exactly one whole message"),
        (enveloped(b"a", flag=1), "compressed"),
    ],
)
def test_a_success_has_one_message_that_can_be_read(body, text):
    fault = refused(headers(1) + frame(DATA, 0, 1, body) + trailers(1))
    assert fault.status == INTERNAL
    assert text in str(fault)


@pytest.mark.parametrize(
    ("code", "status", "harmless"), [(0, 13, False), (1, 13, False), (7, 14, True), (8, 1, False), (11, 8, False)]
)
def test_a_call_that_the_server_gives_up(code, status, harmless):
    fault = refused(headers(1) + frame(RST_STREAM, 0, 1, number(code)))
    assert (fault.status, fault.harmless) == (status, harmless)


def test_a_server_that_leaves_answers_what_it_has_begun_and_nothing_else():
    leaving = channel(frame(GOAWAY, 0, 0, number(1) + number(0) + b"max_age") + answer(1, b"a"))
    assert drive(leaving.call(METHOD, b"q", 5.0), float("inf")) == b"a"
    with pytest.raises(StatusFault, match="ends the connection: max_age") as caught:
        drive(leaving.call(METHOD, b"q", 5.0), float("inf"))
    assert (caught.value.status, caught.value.harmless) == (UNAVAILABLE, True)
    fault = refused(frame(GOAWAY, 0, 0, number(0) + number(0)))
    assert (fault.status, fault.harmless) == (UNAVAILABLE, True)


@pytest.mark.parametrize("pieces", [(), (headers(1),), (headers(1), frame(DATA, 0, 1, enveloped(b"a")))])
def test_a_connection_that_ends_too_early_is_a_fault_without_a_status(pieces):
    with pytest.raises(Fault, match="the server has closed the connection") as caught:
        call(*pieces)
    assert not isinstance(caught.value, StatusFault)


def test_what_a_leaving_server_said_is_told_when_it_has_gone():
    with pytest.raises(Fault, match="max_age"):
        call(frame(GOAWAY, 0, 0, number(1) + number(0) + b"max_age"))


def test_pings_are_answered_while_waiting():
    stream = Played(settings(), frame(PING, 0, 0, b"12345678"), answer(1, b"a"))
    drive(Channel(stream, "host:1", secure=False).call(METHOD, b"q", 5.0), float("inf"))
    assert (PING, 1, 0, b"12345678") in read_frames(stream.sent)


def test_closing_closes_the_connection():
    stream = Played()
    Channel(stream, "host:1", secure=False).close()
    assert stream.closed == 1
