"""The transport on the `etcd3` package keeps the contract of transports."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from adapters.etcdv3.load_etcd3 import load_etcd3
from adapters.etcdv3.settings import parse_endpoints
from adapters.etcdv3.transport import Tls, TransportError
from adapters.linux.process.signals import Withheld
from contracts.etcd_transport import ANY, EtcdTransportContract
from integration.contracts.test_lean_etcd_transport import hostile
from services.etcd import Etcd
from services.http2_peer import CONTINUATION, HEADERS, frame, settings
from services.tcp_proxy import BlackHole, TcpProxy


class TestEtcd3Transport(EtcdTransportContract):
    loading = "from adapters.etcdv3.load_etcd3 import load_etcd3; opener = load_etcd3(tls, Withheld)"

    @pytest.fixture(scope="class")
    @classmethod
    def opener(cls):
        return load_etcd3(Tls(), Withheld)


class Stopped(BaseException):
    pass


@pytest.fixture
def raising_sigterm():
    """SIGTERM raises, half a second from now."""

    def stop(_number, _frame):
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    yield timer
    timer.cancel()
    signal.signal(signal.SIGTERM, before)


def test_a_signal_ends_an_attempt_to_connect(raising_sigterm):
    with BlackHole() as hole:
        began = time.monotonic()
        raising_sigterm.start()
        with pytest.raises(Stopped):
            load_etcd3(Tls(), Withheld)(parse_endpoints(hole.url), Tls(), 30.0)
        assert time.monotonic() - began < 2


def test_a_signal_ends_a_request_and_the_next_connection_works(raising_sigterm):
    opener = load_etcd3(Tls(), Withheld)
    with Etcd() as etcd, TcpProxy(etcd.port) as proxy:
        transport = opener(parse_endpoints(proxy.url), Tls(), 10.0)
        proxy.stalled.set()
        began = time.monotonic()
        raising_sigterm.start()
        with pytest.raises(Stopped):
            transport.read([ANY], 30.0)
        assert time.monotonic() - began < 2
        transport.close()
        proxy.stalled.clear()
        again = opener(parse_endpoints(proxy.url), Tls(), 10.0)
        assert again.read([ANY], 5.0) == [[]]
        again.close()


def test_headers_without_end_hold_nobody():
    """The library's own end of a connection waits until it has read them."""
    endless = frame(CONTINUATION, 0, 1, b"\x88" * 16000)
    with hostile(settings() + frame(HEADERS, 0, 1), endless=endless) as url:
        began = time.monotonic()
        with suppress(TransportError):  # a refusal is an answer, if the library gets as far as that
            load_etcd3(Tls(), Withheld)(parse_endpoints(url), Tls(), 1.0).close()
        assert time.monotonic() - began < 10
