"""Handles count what blocks hold, or more (spec: ipam 11)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, Handle
from domain.ipam.errors import IpamError, StillContended
from ports.datastore import BlockKey, HandleKey
from ports.errors import Conflict
from usecases.ipam.count_handle import increment, lower, settle, take_back
from worlds.one_node import NEVER

KEY = HandleKey("h")
ONE, OTHER, SIX = Cidr.parse("10.0.0.0/26"), Cidr.parse("10.0.0.64/26"), Cidr.parse("fd00::/122")


def counts(node):
    return node.counts().get("h")


def test_counting_up_creates_the_handle_without_reading_it(node):
    calls = dict(node.datastore.calls)
    increment(node.work(), "h", ONE, 2)
    assert node.datastore.calls == {**calls, "create": calls["create"] + 1}
    assert counts(node) == {"10.0.0.0/26": 2}


def test_counting_up_adds_to_what_is_there_and_keeps_what_we_do_not_know(node):
    node.put(KEY, Handle({ONE: 1}, unknown=(("x", "1"),)))
    increment(node.work(), "h", ONE, 2)
    increment(node.work(), "h", OTHER, 1)
    assert counts(node) == {"10.0.0.0/26": 3, "10.0.0.64/26": 1}
    assert node.get(KEY).unknown == (("x", "1"),)


def test_a_limit_holds_for_each_ip_version_by_itself(node):
    increment(node.work(), "h", ONE, 1, limit=2)
    increment(node.work(), "h", SIX, 2, limit=2)
    increment(node.work(), "h", OTHER, 1, limit=2)
    with pytest.raises(IpamError) as caught:
        increment(node.work(), "h", OTHER, 1, limit=2)
    assert str(caught.value) == "handle h already has 2 allocation(s), cannot allocate more (maxAlloc=2)"
    assert counts(node) == {"10.0.0.0/26": 1, "10.0.0.64/26": 1, "fd00::/122": 2}


def test_a_limit_holds_for_a_handle_that_does_not_exist_yet(node):
    with pytest.raises(IpamError, match=r"handle h already has 0 allocation\(s\), cannot allocate more \(maxAlloc=1\)"):
        increment(node.work(), "h", ONE, 2, limit=1)
    assert counts(node) is None


def block_held(node, cidr, handle, count):
    """A block of that node in which the handle has the first addresses."""
    block = node.add_block(str(cidr)).record
    node.put(BlockKey(cidr), block.take(tuple(range(count)), Attribute(handle, {})) if count else block)


def test_lowering_to_nothing_deletes_the_handle(node):
    stored = node.put(KEY, Handle({ONE: 2, OTHER: 1}))
    stored = lower(node.work(), stored, ONE, 1)
    assert counts(node) == {"10.0.0.0/26": 1, "10.0.0.64/26": 1}
    stored = lower(node.work(), stored, ONE, 0)
    assert counts(node) == {"10.0.0.64/26": 1}
    assert lower(node.work(), stored, OTHER, 0) is None
    assert node.get(KEY) is None


def test_lowering_to_as_much_as_is_counted_writes_nothing(node):
    stored = node.put(KEY, Handle({ONE: 1}))
    assert lower(node.work(), stored, ONE, 1) == stored
    assert lower(node.work(), stored, OTHER, 0) == stored
    assert lower(node.work(), None, ONE, 0) is None
    assert node.datastore.revision_of(KEY) == stored.revision


def test_lowering_over_a_handle_that_has_changed_is_refused(node):
    stored = node.put(KEY, Handle({ONE: 2}))
    increment(node.work(), "h", ONE, 1)
    with pytest.raises(Conflict):
        lower(node.work(), stored, ONE, 0)
    assert counts(node) == {"10.0.0.0/26": 3}


def test_taking_back_restores_what_was_counted_before(node):
    node.put(KEY, Handle({ONE: 1}))
    incremented = increment(node.work(), "h", ONE, 2)
    take_back(node.work(), incremented, ONE, 2, None)
    assert counts(node) == {"10.0.0.0/26": 1}


def test_what_the_block_holds_stays_counted(node):
    """The write has happened, its answer was lost, and somebody has changed the holder's attributes since."""
    block_held(node, ONE, "h", 1)
    incremented = increment(node.work(), "h", ONE, 1)
    take_back(node.work(), incremented, ONE, 1, node.datastore.get(BlockKey(ONE), NEVER))
    assert counts(node) == {"10.0.0.0/26": 1}


def test_taking_back_what_another_call_has_changed_settles_with_the_block(node):
    """A DEL has struck the handle off meanwhile, and a second ADD counts on it: that count must stay."""
    block_held(node, ONE, "h", 1)
    incremented = increment(node.work(), "h", ONE, 1)
    node.put(KEY, Handle({ONE: 1}))
    take_back(node.work(), incremented, ONE, 1, None)
    assert counts(node) == {"10.0.0.0/26": 1}


def test_settling_makes_the_handle_count_what_the_block_holds_and_rewrites_the_block(node):
    block_held(node, ONE, "h", 1)
    node.put(KEY, Handle({ONE: 3, OTHER: 1}))
    sequence = node.get(BlockKey(ONE)).sequence
    settle(node.work(), "h", ONE)
    assert counts(node) == {"10.0.0.0/26": 1, "10.0.0.64/26": 1}
    assert node.get(BlockKey(ONE)).sequence == sequence + 1
    settle(node.work(), "h", OTHER)  # that block is gone
    assert counts(node) == {"10.0.0.0/26": 1}


def test_settling_what_is_settled_or_unknown_writes_nothing(node):
    block_held(node, ONE, "h", 1)
    before = node.put(KEY, Handle({ONE: 1}))
    revision = node.datastore.revision_of(BlockKey(ONE))
    assert settle(node.work(), "h", ONE) == before
    assert settle(node.work(), "nobody", ONE) is None
    assert node.datastore.revision_of(BlockKey(ONE)) == revision


def test_settling_goes_round_while_others_write_the_block(node):
    block_held(node, ONE, "h", 1)
    node.put(KEY, Handle({ONE: 3}))
    rivals = [1, 2]

    def rival(verb, key):
        if verb == "update" and key == BlockKey(ONE) and rivals:
            node.put(BlockKey(ONE), node.get(BlockKey(ONE)).replace(sequence=rivals.pop()))

    node.datastore.before = rival
    settle(node.work(), "h", ONE)
    assert counts(node) == {"10.0.0.0/26": 1}
    assert not rivals


def test_settling_gives_up_when_it_never_gets_its_turn(node):
    block_held(node, ONE, "h", 1)
    node.put(KEY, Handle({ONE: 3}))

    def rival(verb, key):
        if verb == "update" and key == BlockKey(ONE):
            node.put(BlockKey(ONE), node.get(BlockKey(ONE)))

    node.datastore.before = rival
    with pytest.raises(StillContended):
        settle(node.work(), "h", ONE)
    assert counts(node) == {"10.0.0.0/26": 3}
