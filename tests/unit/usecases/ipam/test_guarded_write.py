"""The one read–decide–write loop, against rivals that really change the record between our read and our write."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import Handle
from domain.ipam.errors import StillContended
from ports.datastore import HandleKey
from ports.errors import Unavailable
from usecases.ipam.work import DELETE, LEAVE, MAX_TRIES, guarded_write
from worlds.one_node import NEVER

KEY = HandleKey("h")
BLOCK = Cidr.parse("10.0.0.0/26")


def one_more(found: Handle | None) -> Handle:
    return Handle({BLOCK: (found.blocks[BLOCK] if found else 0) + 1})


def count(node) -> int | None:
    handle = node.get(KEY)
    return handle and handle.blocks[BLOCK]


def test_a_missing_record_is_created_a_present_one_updated(node):
    assert guarded_write(node.work(), KEY, one_more).record == Handle({BLOCK: 1})
    assert guarded_write(node.work(), KEY, one_more).record == Handle({BLOCK: 2})
    assert count(node) == 2


def test_a_decision_to_leave_writes_nothing(node):
    stored = node.put(KEY, Handle({BLOCK: 1}))
    calls = dict(node.datastore.calls)
    assert guarded_write(node.work(), KEY, lambda _found: LEAVE) == stored
    assert node.datastore.calls == {**calls, "fetch": calls["fetch"] + 1}
    node.remove(KEY)
    assert guarded_write(node.work(), KEY, lambda _found: LEAVE) is None


def test_a_record_can_be_deleted_also_when_it_is_gone(node):
    node.put(KEY, Handle({BLOCK: 1}))
    for _ in range(2):
        assert guarded_write(node.work(), KEY, lambda _found: DELETE) is None
        assert node.get(KEY) is None


def test_a_record_just_read_is_not_read_again(node):
    stored = node.put(KEY, Handle({BLOCK: 1}))
    calls = node.datastore.calls["fetch"]
    guarded_write(node.work(), KEY, one_more, stored)
    assert node.datastore.calls["fetch"] == calls
    assert count(node) == 2


def test_a_lost_race_is_decided_again_on_what_the_rival_wrote(node):
    stored = node.put(KEY, Handle({BLOCK: 1}))
    with node.rival("update", HandleKey, lambda _key: node.put(KEY, Handle({BLOCK: 10}))):
        guarded_write(node.work(), KEY, one_more, stored)
    assert count(node) == 11


def test_a_record_that_appears_while_it_is_created_is_updated_instead(node):
    with node.rival("create", HandleKey, lambda _key: node.datastore.create(KEY, Handle({BLOCK: 10}), NEVER)):
        guarded_write(node.work(), KEY, one_more)
    assert count(node) == 11


def test_a_record_that_vanishes_while_it_is_updated_is_created_instead(node):
    node.put(KEY, Handle({BLOCK: 5}))
    with node.rival("update", HandleKey, node.remove):
        guarded_write(node.work(), KEY, one_more)
    assert count(node) == 1


def test_whoever_loses_every_round_gives_up_and_names_the_record(node):
    node.put(KEY, Handle({BLOCK: 0}))
    with (
        node.rival("update", HandleKey, node.touch, times=MAX_TRIES),
        pytest.raises(StillContended, match="excessive concurrent IPAM requests") as caught,
    ):
        guarded_write(node.work(), KEY, one_more)
    assert caught.value.details == "last contended record: IPAMHandleKey(id=h)"
    assert count(node) == 0


def test_an_unreachable_datastore_is_no_race(node):
    node.fail("update", HandleKey)
    node.put(KEY, Handle({BLOCK: 1}))
    with pytest.raises(Unavailable):
        guarded_write(node.work(), KEY, one_more)
