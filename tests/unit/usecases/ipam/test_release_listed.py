"""Releasing addresses by name: what it costs, and what is left when something fails (spec: ipam 12.2)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Address, Cidr
from domain.ipam.block import Attribute, Handle
from domain.ipam.release import Release
from ports.datastore import BlockKey, HandleKey, Handles
from ports.errors import Unavailable
from usecases.ipam.release_listed import release_listed
from worlds.one_node import OWNER, OneNode

ONE, TWO = "10.244.0.0/30", "10.244.0.4/30"
H = "net1.c1"


@pytest.fixture
def node():
    node = OneNode()
    node.add_pool("pool0", "10.244.0.0/24", block_size=30)
    for text in (ONE, TWO):
        node.add_block(text, OWNER, (H, 3))
    node.put(HandleKey(H), Handle({Cidr.parse(ONE): 3, Cidr.parse(TWO): 3}))
    return node


def release(node, *texts):
    return release_listed(node.work(), [Release(Address.parse(text)) for text in texts])


def released(outcome) -> list[str]:
    return [str(one.address) for one in outcome.released]


@pytest.mark.parametrize(
    ("listed", "read"),
    [(["10.244.0.0", "10.244.0.4"], HandleKey(H)), (["10.244.0.0", "10.244.0.1", "10.244.0.4"], Handles())],
)
def test_handles_of_few_addresses_are_read_one_by_one_and_those_of_more_in_one_go(node, listed, read):
    """What is known of a handle after one block serves for the next."""
    seen = []
    node.datastore.before = lambda verb, key: seen.append(key) if verb == "fetch" else None
    assert released(release(node, *listed)) == listed
    assert [key for key in seen if isinstance(key, (HandleKey, Handles))] == [read]
    assert node.counts_match()


def test_the_block_is_written_before_the_handle(node):
    seen = []
    node.datastore.before = lambda verb, key: seen.append(type(key)) if verb != "fetch" else None
    release(node, "10.244.0.0", "10.244.0.1", "10.244.0.4")
    assert seen == [BlockKey, HandleKey, BlockKey, HandleKey]


def test_an_allocation_without_a_handle_counts_nowhere(node):
    block = node.block(ONE)
    node.put(BlockKey(block.cidr), block.take((3,), Attribute(None, {"type": "tunnel"})))
    assert released(release(node, "10.244.0.3")) == ["10.244.0.3"]
    assert node.counts() == {H: {ONE: 3, TWO: 3}}


def test_a_block_that_cannot_be_written_is_reported_and_the_others_go_on(node):
    def fail(verb, key):
        if (verb, key) == ("update", BlockKey(Cidr.parse(ONE))):
            raise Unavailable("away")

    node.datastore.before = fail
    outcome = release(node, "10.244.0.0", "10.244.0.4")
    assert (released(outcome), str(outcome.error)) == (["10.244.0.4"], "away")
    assert node.counts_match()


def test_addresses_whose_handle_cannot_be_counted_down_are_free_and_the_failure_is_reported(node):
    """The handle then counts too much, which its next DEL corrects."""
    node.fail("update", HandleKey)
    outcome = release(node, "10.244.0.0", "10.244.0.4")
    assert released(outcome) == ["10.244.0.0", "10.244.0.4"]
    assert isinstance(outcome.error, Unavailable)
    assert node.counts() == {H: {ONE: 3, TWO: 3}}


def test_a_block_that_changes_meanwhile_is_judged_anew(node):
    def freed(key):
        block = node.get(key)
        node.put(key, block.release((0,), node.clock.now(), 0))

    with node.rival("update", BlockKey, freed):
        outcome = release(node, "10.244.0.0", "10.244.0.1")
    assert released(outcome) == ["10.244.0.1"]
    assert [str(address) for address in outcome.unallocated] == ["10.244.0.0"]


def test_nothing_is_asked_of_the_blocks_while_pools_say_where_addresses_live(node):
    seen = []
    node.datastore.before = lambda verb, key: seen.append(type(key).__name__)
    release(node, "10.244.0.0")
    assert "Blocks" not in seen
    release(node, "192.0.2.1", "192.0.2.2")
    assert seen.count("Blocks") == 1


def test_an_empty_list_is_nothing_to_do(node):
    outcome = release(node)
    assert (outcome.unallocated, outcome.released, outcome.error) == ((), (), None)
