"""Handles count what blocks hold, or more (spec: ipam 11)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.errors import IpamError
from domain.ipam.handle import Handle
from domain.usecases.steps.count_handle import decrement, increment
from one_node import OneNode
from ports.datastore import HandleKey

KEY = HandleKey("h")
ONE, OTHER, SIX = Cidr.parse("10.0.0.0/26"), Cidr.parse("10.0.0.64/26"), Cidr.parse("fd00::/122")


@pytest.fixture
def node():
    return OneNode()


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


def test_counting_down_to_nothing_deletes_the_handle(node):
    node.put(KEY, Handle({ONE: 2, OTHER: 1}))
    decrement(node.work(), "h", ONE, 1)
    assert counts(node) == {"10.0.0.0/26": 1, "10.0.0.64/26": 1}
    decrement(node.work(), "h", ONE, 1)
    assert counts(node) == {"10.0.0.64/26": 1}
    decrement(node.work(), "h", OTHER, 1)
    assert node.get(KEY) is None


def test_a_count_never_goes_below_nothing(node):
    node.put(KEY, Handle({ONE: 1, OTHER: 1}))
    decrement(node.work(), "h", ONE, 5)
    assert counts(node) == {"10.0.0.64/26": 1}


def test_counting_down_what_is_not_counted_changes_nothing(node):
    decrement(node.work(), "h", ONE, 1)
    assert counts(node) is None
    stored = node.put(KEY, Handle({ONE: 1}))
    decrement(node.work(), "h", OTHER, 1)
    assert node.datastore.revision_of(KEY) == stored.revision


def test_counting_down_starts_from_what_the_caller_has_read(node):
    stored = node.put(KEY, Handle({ONE: 2}))
    calls = node.datastore.calls["fetch"]
    decrement(node.work(), "h", ONE, 1, stored)
    assert node.datastore.calls["fetch"] == calls
