"""The etcd datastore keeps the port's contract, on a real etcd."""

from __future__ import annotations

import pytest

from adapters.etcdv3.datastore import EtcdDatastore
from adapters.etcdv3.race_etcd3 import etcd3_opener
from adapters.etcdv3.settings import read_settings
from adapters.linux.signals import Withheld
from contracts_datastore import DatastoreContract
from services.etcd import shared_etcd


@pytest.fixture(scope="module")
def server():
    with shared_etcd() as etcd:
        yield etcd


class TestEtcdDatastore(DatastoreContract):
    @pytest.fixture
    def store(self, clock, server):
        server.clear()
        settings = read_settings(lambda name: {"ETCD_ENDPOINTS": server.url}.get(name, ""), {})
        with EtcdDatastore(settings, clock, etcd3_opener(Withheld)) as store:
            store.server = server
            yield store

    def put_text(self, store, key_text, text):
        store.server.put(key_text, text)
