"""The etcd datastore keeps the port's contract, on a real etcd, over both transports."""

from __future__ import annotations

import base64

import pytest

from adapters.etcdv3.datastore import EtcdDatastore
from adapters.etcdv3.load_etcd3 import load_etcd3
from adapters.etcdv3.settings import read_settings
from adapters.etcdv3.transport_lean import open_lean
from adapters.linux.process.signals import Withheld
from contracts.datastore import SOON, DatastoreContract
from domain.ipam.block import Handle
from ports.datastore import HandleKey
from ports.errors import Conflict, Missing
from services.etcd import shared_etcd


@pytest.fixture(scope="module")
def server():
    with shared_etcd() as etcd:
        yield etcd


def library(tls):
    return load_etcd3(tls, Withheld)


def lean(_tls):
    return open_lean


class TestEtcdDatastore(DatastoreContract):
    @pytest.fixture(params=[library, lean])
    def store(self, request, clock, server):
        server.clear()
        settings = read_settings(lambda name: {"ETCD_ENDPOINTS": server.url}.get(name, ""), {})
        with EtcdDatastore(settings, clock, request.param(settings.tls)) as store:
            store.server = server
            yield store

    def put_text(self, store, key_text, text):
        store.server.put(key_text, text)

    @pytest.mark.parametrize("revision", ["0", "-1", "9" * 19, "9" * 30, "²", ""])
    def test_a_revision_that_no_key_can_have_never_fits(self, store, revision):
        """0 would mean "if there is no such key" to etcd."""
        with pytest.raises(Missing):
            store.update(HandleKey("h"), Handle({}), revision, SOON)
        assert store.get(HandleKey("h"), SOON) is None
        store.create(HandleKey("h"), Handle({}), SOON)
        with pytest.raises(Conflict):
            store.update(HandleKey("h"), Handle({}), revision, SOON)
        with pytest.raises(Conflict):
            store.delete(HandleKey("h"), revision, SOON)

    def test_a_revision_is_etcds_own(self, store):
        created = store.create(HandleKey("h"), Handle({}), SOON)
        key = base64.b64encode(b"/calico/ipam/v2/handle/h").decode()
        (row,) = store.server.ask("kv/range", {"key": key})["kvs"]
        assert row["mod_revision"] == created.revision
