"""The transport to etcd on bare sockets keeps the contract of transports, and asks no more than it must."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from adapters.etcdv3.settings import parse_endpoints
from adapters.etcdv3.transport import (
    DEADLINE_EXCEEDED,
    INVALID_ARGUMENT,
    ONE_KEY,
    UNAVAILABLE,
    EtcdTls,
    EtcdTransportError,
    Question,
)
from adapters.etcdv3.transport_lean import open_lean
from contracts.etcd_signals import EtcdSignalsContract
from contracts.etcd_transport import ANY, EtcdTransportContract, failure
from services.http2_peer import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    PING,
    SETTINGS,
    answer,
    frame,
    headers,
    number,
    settings,
)
from services.request_proxy import RequestProxy

INTERNAL = 13


class TestLeanTransport(EtcdTransportContract, EtcdSignalsContract):
    loading = "from adapters.etcdv3.transport_lean import open_lean as opener"

    @pytest.fixture(scope="class")
    @classmethod
    def opener(cls):
        return open_lean

    @pytest.fixture
    def proxy(self, server):
        server.clear()
        with RequestProxy(server.port) as proxy:
            yield proxy

    # --- what connecting costs ---------------------------------------------------------------------------------------

    def test_what_is_asked_first_comes_with_the_connection(self, server, proxy):
        server.put("/k", "v")
        etcd = open_lean(parse_endpoints(proxy.url), EtcdTls(), 5.0, Question((ANY,)))
        assert [row[:2] for row in etcd.read((ANY,), 5)[0]] == [(b"/k", b"v")]
        assert len(proxy.requests) == 1
        server.put("/k", "w")
        assert [row[:2] for row in etcd.read((ANY,), 5)[0]] == [(b"/k", b"w")]  # only the first time
        assert len(proxy.requests) == 2
        etcd.close()

    def test_another_question_is_asked_of_its_own(self, proxy):
        etcd = open_lean(parse_endpoints(proxy.url), EtcdTls(), 5.0, ONE_KEY)
        assert etcd.read((ANY,), 5) == [[]]
        assert etcd.create(b"/k", b"v", 5).done
        assert len(etcd.read((ANY,), 5)[0]) == 1
        assert len(proxy.requests) == 4
        etcd.close()

    def test_an_answer_with_another_token_is_another_answer(self, guarded):
        etcd = open_lean(parse_endpoints(guarded.url), EtcdTls(), 5.0, Question((ANY,)))
        etcd.token = etcd.authenticate("calico", "planted-secret", 5)
        assert etcd.read((ANY,), 5) == [[]]
        etcd.close()

    def test_signing_in_may_come_first(self, guarded):
        with RequestProxy(guarded.port) as proxy:
            question = Question((ANY,), user="calico", password="planted-secret")  # noqa: S106 - of this test's etcd
            etcd = open_lean(parse_endpoints(proxy.url), EtcdTls(), 5.0, question)
            etcd.token = etcd.authenticate("calico", "planted-secret", 5)
            assert len(proxy.requests) == 1
            assert etcd.read((ANY,), 5) == [[]]
            etcd.close()

    def test_a_refusal_is_an_answer_and_comes_to_who_asks(self, guarded):
        with RequestProxy(guarded.port) as proxy:
            question = Question((ANY,), user="calico", password="wrong")  # noqa: S106 - it is
            etcd = open_lean(parse_endpoints(proxy.url), EtcdTls(), 5.0, question)
            assert failure(lambda: etcd.authenticate("calico", "wrong", 5)).status == INVALID_ARGUMENT
            assert len(proxy.requests) == 1
            etcd.close()

    def test_neither_password_nor_token_is_shown(self):
        assert "planted" not in repr(Question((), token="planted", user="u", password="planted"))  # noqa: S106 - made up

    def test_an_endpoint_that_only_begins_to_answer_is_taken_and_then_left(self, server):
        with hostile(settings() + headers(1)) as url:
            etcd = open_lean(parse_endpoints(f"{url},{server.url}"), EtcdTls(), 5.0)
            assert str(etcd.endpoint) == url
            assert failure(lambda: etcd.read(ONE_KEY.ranges, 0.3)).status == DEADLINE_EXCEEDED
            etcd.close()


# --- servers that are none -------------------------------------------------------------------------------------------


@contextmanager
def hostile(octets, *, endless: bytes = b"", stays: bool = True):
    """The URL of something that answers anybody with these octets, and perhaps more without end."""
    ended = threading.Event()

    def serve(connection):
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(octets)
            while endless and not ended.is_set():
                connection.sendall(endless)
            if stays:
                ended.wait(30)

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            ended.set()
            listening.shutdown(socket.SHUT_RDWR)


def ended_with(url: str, seconds: float = 30.0) -> EtcdTransportError:
    """How an attempt to connect and to read ended that had so much time for each."""

    def ask():
        etcd = open_lean(parse_endpoints(url), EtcdTls(), seconds)
        try:
            etcd.read(ONE_KEY.ranges, seconds)
        finally:
            etcd.close()

    began = time.monotonic()
    error = failure(ask)
    assert time.monotonic() - began < 25
    return error


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "does not speak HTTP/2"),
        (b"\0" * 100, "does not speak HTTP/2"),
        (settings() + frame(GOAWAY, 0, 0, number(0) + number(11) + b"too_many_pings"), "HTTP/2 error 11"),
        (settings() + headers(1)[:-1], "no answer to the attempt to connect"),
        (settings() + headers(1, [(b":status", b"502")], 5), "HTTP status 502"),
        (settings() + frame(HEADERS, 4, 1, b"\xff" * 30), "too large"),
    ],
)
def test_what_is_no_server_is_no_answer(octets, text):
    with hostile(octets) as url:
        error = ended_with(url, 1.0 if "no answer" in text else 30.0)
    assert error.status in (UNAVAILABLE, DEADLINE_EXCEEDED)
    assert error.harmless
    assert text in str(error)


@pytest.mark.parametrize(
    "endless",
    [
        frame(PING, 0, 0, b"12345678") * 1000,
        settings(initial_window_size=65535) * 1000,
        frame(DATA, 0, 1, b"x" * 16384),
        frame(CONTINUATION, 0, 1),
        frame(SETTINGS, 1, 0) * 1000,
        frame(0xFA, 0, 0, b"x" * 16384),
    ],
)
def test_octets_without_end_end_with_the_time(endless):
    begun = frame(HEADERS, 0, 1) if endless[3] == CONTINUATION else headers(1)
    with hostile(settings() + begun, endless=endless) as url:
        error = ended_with(url, 1.0)
    assert error.status in (UNAVAILABLE, DEADLINE_EXCEEDED)


@pytest.mark.parametrize(
    "message",
    [
        b"\xff" * 20,
        b"",
        b"\x1a\x02\x0a\xff",
        b"\x1a\x04\x0a\x02\x12\x01\x00",
        b"\x08\x01\x10\x01",
        b"\x10\x01\x1a\x00\x1a\x00",
    ],
)
def test_an_answer_that_is_no_message_of_etcds_is_told(message):
    with hostile(settings() + answer(1, message)) as url:
        error = ended_with(url)
    assert (error.status, error.harmless) == (INTERNAL, False)
    assert "not a message of etcd's" in str(error)


def test_damaged_answers_never_hang_or_crash():
    """Each octet of a true answer in turn is another one, or the last."""
    whole = settings(max_frame_size=16384) + answer(
        1, bytes.fromhex("0a0210051a0b0a09120712016b180522 0176".replace(" ", ""))
    )
    chance = random.Random(7)
    for place in range(len(whole)):
        cut = chance.random() < 0.3
        damaged = whole[:place] + (
            b"" if cut else bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :]
        )
        with hostile(damaged, stays=False) as url, suppress(EtcdTransportError):
            etcd = open_lean(parse_endpoints(url), EtcdTls(), 0.5)
            with suppress(EtcdTransportError):
                etcd.read(ONE_KEY.ranges, 0.5)
            etcd.close()
