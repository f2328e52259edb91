"""The memory datastore keeps the port's contract, and its hooks do what tests need."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from contracts.datastore import HOST_A, SOON, V4_BLOCK, DatastoreContract, TogetherContract
from domain.ipam.block import Affinity, Handle
from ports.datastore import AffinityKey, HandleKey, Handles
from ports.errors import Conflict, Unavailable
from worlds.remembering_datastore import RememberingDatastore

KEY = HandleKey("h")


@pytest.fixture
def store():
    return MemoryDatastore(MemoryClock())


class TestMemoryDatastore(DatastoreContract, TogetherContract):
    @pytest.fixture
    def store(self, clock):
        return MemoryDatastore(clock)

    def put_text(self, store, key_text, text):
        store.load({key_text: text})


class TestRememberingDatastore(TestMemoryDatastore):
    """What random schedules run on."""

    @pytest.fixture
    def store(self, clock):
        return RememberingDatastore(clock)


def test_revisions_and_uids_are_the_same_in_every_run(store):
    first = [store.create(HandleKey(name), Handle({}), SOON).revision for name in "abc"]
    assert first == ["1", "2", "3"]
    assert store._new_uid() == "00000000-0000-4000-8000-000000000001"


def test_a_rival_can_come_between_the_read_and_the_write(store):
    held = store.create(KEY, Handle({}), SOON)

    def rival(verb, key):
        if verb == "update":
            now = store.get(key, SOON)
            store.update(key, Handle({V4_BLOCK: 9}), now.revision, SOON)

    store.before = rival
    with pytest.raises(Conflict):
        store.update(KEY, Handle({V4_BLOCK: 1}), held.revision, SOON)
    assert store.get(KEY, SOON).record == Handle({V4_BLOCK: 9})


def test_an_error_before_a_write_prevents_it_and_one_after_it_only_loses_the_answer(store):
    def fail(verb, _key):
        if verb == "create":
            raise Unavailable("gone")

    store.before = fail
    with pytest.raises(Unavailable):
        store.create(KEY, Handle({}), SOON)
    assert store.records_text() == {}
    store.before, store.after = (lambda *_: None), fail
    with pytest.raises(Unavailable):
        store.create(KEY, Handle({}), SOON)
    assert list(store.records_text()) == ["/calico/ipam/v2/handle/h"]


def test_hooks_see_every_verb_once_and_calls_are_counted(store):
    seen = []
    store.before = lambda verb, need: seen.append((verb, str(need)))
    held = store.create(KEY, Handle({}), SOON)
    held = store.update(KEY, Handle({}), held.revision, SOON)
    store.fetch(KEY, Handles(), deadline=SOON)
    store.delete(KEY, held.revision, SOON)
    assert [verb for verb, _ in seen] == ["create", "update", "fetch", "fetch", "delete"]
    assert store.calls == {"create": 1, "update": 1, "fetch": 1, "delete": 1}


def test_verbs_that_a_hook_uses_are_neither_hooked_nor_counted(store):
    store.before = lambda verb, _need: store.get(KEY, SOON)
    store.create(KEY, Handle({}), SOON)
    assert store.calls == {"create": 1}


def test_contents_can_be_taken_back_to_an_earlier_point(store):
    store.create(KEY, Handle({}), SOON)
    snapshot = store.snapshot()
    store.create(HandleKey("other"), Handle({}), SOON)
    store.restore(snapshot)
    assert store.keys() == [KEY]
    assert store.create(HandleKey("again"), Handle({}), SOON).revision == "2"


def test_contents_are_seen_as_etcd_would_hold_them(store):
    store.create(AffinityKey(HOST_A, V4_BLOCK), Affinity("pending"), SOON)
    store.create(KEY, Handle({V4_BLOCK: 1}), SOON)
    store.load({"/calico/other": "x"})
    assert store.records_text() == {
        "/calico/ipam/v2/handle/h": '{"block":{"10.0.0.64/30":1},"deleted":false}',
        "/calico/ipam/v2/host/node-a/ipv4/block/10.0.0.64-30": '{"state":"pending","deleted":false}',
        "/calico/other": "x",
    }
    assert store.keys() == [KEY, AffinityKey(HOST_A, V4_BLOCK)]
    assert store.revision_of(KEY) == "2"
    assert store.revision_of(HandleKey("none")) is None
