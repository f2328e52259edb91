"""What every transport to etcd promises about a termination signal that comes while it waits.

Derive a class named `Test…` and give it a fixture `opener`, which is an `adapters.etcdv3.transport.Open`.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from adapters.etcdv3.settings import parse_endpoints
from adapters.etcdv3.transport import EtcdTls
from contracts.etcd_transport import ANY
from services.etcd import Etcd
from services.tcp_proxy import BlackHole, TcpProxy


class Stopped(BaseException):
    pass


class EtcdSignalsContract:
    @pytest.fixture
    def raising_sigterm(self):
        """SIGTERM raises, half a second from when it is started."""

        def stop(_number, _frame):
            raise Stopped

        before = signal.signal(signal.SIGTERM, stop)
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
        yield timer
        timer.cancel()
        signal.signal(signal.SIGTERM, before)

    def test_a_signal_ends_an_attempt_to_connect(self, opener, raising_sigterm):
        with BlackHole() as hole:
            began = time.monotonic()
            with pytest.raises(Stopped):  # noqa: PT012 - the signal may come at once
                raising_sigterm.start()
                opener(parse_endpoints(hole.url), EtcdTls(), 60.0)
            assert time.monotonic() - began < 30

    def test_a_signal_ends_a_request_and_the_next_connection_works(self, opener, raising_sigterm):
        with Etcd() as etcd, TcpProxy(etcd.port) as proxy:
            transport = opener(parse_endpoints(proxy.url), EtcdTls(), 10.0)
            proxy.stalled.set()
            began = time.monotonic()
            with pytest.raises(Stopped):  # noqa: PT012 - the signal may come at once
                raising_sigterm.start()
                transport.read([ANY], 60.0)
            assert time.monotonic() - began < 30
            transport.close()
            proxy.stalled.clear()
            again = opener(parse_endpoints(proxy.url), EtcdTls(), 10.0)
            assert again.read([ANY], 5.0) == [[]]
            again.close()
