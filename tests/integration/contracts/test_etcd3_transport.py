"""The transport on the `etcd3` package keeps the contract of transports."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from adapters.etcdv3.load_etcd3 import load_etcd3
from adapters.etcdv3.settings import parse_endpoints
from adapters.etcdv3.transport import EtcdTls, EtcdTransportError
from adapters.linux.process.signals import Withheld
from contracts.etcd_signals import EtcdSignalsContract
from contracts.etcd_transport import EtcdTransportContract
from integration.contracts.test_lean_etcd_transport import hostile
from services.http2_peer import CONTINUATION, HEADERS, frame, settings


class TestEtcd3Transport(EtcdTransportContract, EtcdSignalsContract):
    loading = "from adapters.etcdv3.load_etcd3 import load_etcd3; opener = load_etcd3(tls, Withheld)"

    @pytest.fixture(scope="class")
    @classmethod
    def opener(cls):
        return load_etcd3(EtcdTls(), Withheld)


def test_headers_without_end_hold_nobody():
    """The library's own end of a connection waits until it has read them."""
    endless = frame(CONTINUATION, 0, 1, b"\x88" * 16000)
    with hostile(settings() + frame(HEADERS, 0, 1), endless=endless) as url:
        began = time.monotonic()
        with suppress(EtcdTransportError):  # a refusal is an answer, if the library gets as far as that
            load_etcd3(EtcdTls(), Withheld)(parse_endpoints(url), EtcdTls(), 1.0).close()
        assert time.monotonic() - began < 10
