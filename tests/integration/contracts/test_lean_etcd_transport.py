"""The transport to etcd on bare sockets keeps the contract of transports."""

from __future__ import annotations

import pytest

from adapters.etcdv3.transport_lean import open_lean
from contracts_etcd_transport import EtcdTransportContract


class TestLeanTransport(EtcdTransportContract):
    loading = "from adapters.etcdv3.transport_lean import open_lean as opener"

    @pytest.fixture(scope="class")
    @classmethod
    def opener(cls):
        return open_lean
