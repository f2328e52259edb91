"""A rehearsal answers as the datastore would, and writes nothing."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from adapters.memory.rehearsal import Rehearsal
from domain.cluster import Node
from domain.resource import Metadata
from ports.datastore import NodeKey, Nodes
from ports.errors import AlreadyExists, Conflict, Missing

A, B = NodeKey("a"), NodeKey("b")


@pytest.fixture
def world():
    clock = MemoryClock()
    store = MemoryDatastore(clock)
    stored = store.create(A, Node(Metadata("a")), clock.deadline(60))
    before = store.records_text()
    yield Rehearsal(store), stored, clock.deadline(60)
    assert store.records_text() == before


def test_what_was_written_is_read_again(world):
    rehearsal, stored, deadline = world
    rehearsal.create(B, Node(Metadata("b")), deadline)
    changed = rehearsal.update(A, Node(Metadata("a"), spec='{"x":1}'), stored.revision, deadline)
    assert rehearsal.get(B, deadline).record == Node(Metadata("b"))
    assert [one.record for one in rehearsal.list(Nodes(), deadline)] == [changed.record]
    rehearsal.delete(A, changed.revision, deadline)
    assert rehearsal.get(A, deadline) is None
    assert rehearsal.list(Nodes(), deadline) == ()
    assert rehearsal.unreadable(deadline) == ()


def test_a_write_that_would_fail_fails(world):
    rehearsal, stored, deadline = world
    with pytest.raises(AlreadyExists):
        rehearsal.create(A, Node(Metadata("a")), deadline)
    with pytest.raises(Missing):
        rehearsal.update(B, Node(Metadata("b")), "1", deadline)
    with pytest.raises(Conflict):
        rehearsal.update(A, stored.record, "no such revision", deadline)
    rehearsal.delete(A, None, deadline)
    with pytest.raises(Missing):
        rehearsal.delete(A, None, deadline)


def test_several_records_are_not_rehearsed_together(world):
    """Who can do with one after the other asks first."""
    rehearsal, _, deadline = world
    assert not rehearsal.writes_together
    with pytest.raises(NotImplementedError):
        rehearsal.write((), deadline)
