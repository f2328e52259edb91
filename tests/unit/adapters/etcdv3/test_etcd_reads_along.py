"""What a call of the etcd datastore expects to ask for comes along with what it asks."""

from __future__ import annotations

import pytest

from adapters.etcdv3.datastore import AHEAD, EtcdDatastore
from adapters.etcdv3.transport import PERMISSION_DENIED, EtcdTransportError
from adapters.memory.clock import MemoryClock
from domain.ipam.block import Handle
from ports.clock import Deadline
from ports.datastore import Change, HandleKey, Handles
from ports.errors import Unauthorized
from services.fake_etcd import SETTINGS, FakeEtcd, FakeTransport

SOON = Deadline(1000.0)
A, B, C = HandleKey("a"), HandleKey("b"), HandleKey("c")


class Guarded(FakeTransport):
    """Who asks for a handle whose name begins with b is refused."""

    def read(self, ranges, seconds):
        if any(first.endswith(b"/b") for first, _ in ranges):
            raise EtcdTransportError(PERMISSION_DENIED, "permission denied")
        return super().read(ranges, seconds)


@pytest.fixture
def clock():
    return MemoryClock()


@pytest.fixture
def etcd():
    return FakeEtcd()


@pytest.fixture
def store(clock, etcd):
    store = EtcdDatastore(SETTINGS, clock, etcd.open)
    for key in (A, B, C):
        store.create(key, Handle({}), SOON)
    return store


def asked(etcd, action) -> int:
    before = etcd.asked
    action()
    return etcd.asked - before


def test_what_is_expected_needs_no_request_of_its_own(store, etcd):
    store.expect(B, Handles())
    assert asked(etcd, lambda: store.get(A, SOON)) == 1
    answers = []
    assert asked(etcd, lambda: answers.extend(store.fetch(Handles(), B, deadline=SOON))) == 0
    listed, b = answers
    assert ([one.key for one in listed], b.key, b.record) == ([A, B, C], B, Handle({}))


def test_it_is_the_answer_to_one_question(store, etcd):
    store.expect(B)
    store.get(A, SOON)
    store.get(B, SOON)
    assert asked(etcd, lambda: store.get(B, SOON)) == 1
    assert asked(etcd, lambda: store.get(B, SOON)) == 1  # nor is it expected for ever


def test_of_several_only_what_is_lacking_is_asked_for(store, etcd):
    store.expect(B)
    store.get(A, SOON)
    ranges = []
    etcd.lie = lambda request, _response: ranges.extend(one.request_range.key for one in request.success)
    assert [one.key for one in store.fetch(C, B, C, deadline=SOON)] == [C, B, C]
    assert set(ranges) == {b"/calico/ipam/v2/handle/c"}


def test_it_is_old_after_a_second(store, etcd, clock):
    store.expect(B)
    store.get(A, SOON)
    clock.advance(AHEAD + 0.1)
    assert asked(etcd, lambda: store.get(B, SOON)) == 1


@pytest.mark.parametrize("write", ["create", "update", "delete", "write"])
def test_it_is_old_after_a_write_of_the_same_call(store, write):
    a = store.get(A, SOON)
    store.expect(HandleKey("new"), B)
    c = store.get(C, SOON)
    {
        "create": lambda: store.create(HandleKey("new"), Handle({}), SOON),
        "update": lambda: store.update(A, Handle({}), a.revision, SOON),
        "delete": lambda: store.delete(C, c.revision, SOON),
        "write": lambda: store.write((Change(HandleKey("new"), Handle({}), None),), SOON),
    }[write]()
    found = store.get(HandleKey("new"), SOON)
    assert (found is not None) == (write in {"create", "write"})


def test_what_may_not_be_read_fails_nobody_but_who_asks_for_it(store, etcd, clock):
    guarded = EtcdDatastore(SETTINGS, clock, lambda endpoints, *_more: Guarded(etcd, endpoints[0]))
    guarded.expect(B)
    assert guarded.get(A, SOON).key == A
    with pytest.raises(Unauthorized):
        guarded.get(B, SOON)
