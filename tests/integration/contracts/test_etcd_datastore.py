"""The etcd datastore keeps the port's contract, on a real etcd, over both transports."""

from __future__ import annotations

import base64
from contextlib import contextmanager

import pytest

from adapters.etcdv3.datastore import EtcdDatastore
from adapters.etcdv3.load_etcd3 import load_etcd3
from adapters.etcdv3.settings import read_settings
from adapters.etcdv3.transport_lean import open_lean
from adapters.linux.clock import SystemClock
from adapters.linux.process.signals import Withheld
from adapters.records.codec import key_text
from adapters.records.text_store import Span
from contracts.datastore import SOON, DatastoreContract, TogetherContract
from domain.ipam.block import Handle
from ports.datastore import HandleKey, Handles
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


class InPages(EtcdDatastore):
    """As an operator's command has it, but for the size of its pages."""

    page = 2


@contextmanager
def opened(server, clock, transport, kind=EtcdDatastore, **more):
    server.clear()
    settings = read_settings(lambda name: {"ETCD_ENDPOINTS": server.url}.get(name, ""), {})
    with kind(settings, clock, transport(settings.tls), **more) as store:
        store.server = server
        yield store


@pytest.mark.parametrize("transport", [library, lean])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7])
def test_what_is_read_in_pages_is_all_there_was_at_one_instant(server, transport, count):
    """Whatever is written while it is read."""
    clock = SystemClock()
    with opened(server, clock, transport, InPages, hasty=True) as store, opened(server, clock, transport) as rival:
        keys = [HandleKey(f"h{number}") for number in range(count)]
        for key in keys:
            rival.create(key, Handle({}), SOON)
        first, others = store.read([Span("/calico/ipam/v2/handle/", is_prefix=True)] * 2, SOON)
        found = [next(first, None)]
        rival.create(HandleKey("h"), Handle({}), SOON)
        if keys:
            rival.delete(keys[-1], None, SOON)
        found += list(first)
        assert [row[0] for row in found if row] == [key_text(key) for key in keys]
        assert [row for row in found if row] == list(others)
        assert [one.key for one in store.list(Handles(), SOON)] == [HandleKey("h"), *keys[:-1]]


class TestEtcdDatastore(DatastoreContract, TogetherContract):
    @pytest.fixture(params=[(library, False), (lean, False), (lean, True)], ids=["library", "lean", "in pages"])
    def store(self, request, clock, server):
        transport, pages = request.param
        with opened(server, clock, transport, InPages, hasty=pages) as store:
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
