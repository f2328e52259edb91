"""Taking addresses of one block, whoever comes between (spec: ipam 9; LIB-199)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Attribute, Owner
from domain.ipam.errors import IpamError, StillContended
from domain.moment import SECOND, rfc3339
from ports.datastore import BlockKey, HandleKey
from ports.errors import Unavailable
from usecases.ipam.take_addresses import Want, take_addresses
from usecases.ipam.work import MAX_TRIES
from worlds.one_node import NEVER, NODE, OWNER

TEXT = "10.244.0.0/30"
KEY = BlockKey(Cidr.parse(TEXT))
HANDLE = HandleKey("net1.c1")
OTHER = Owner(HOST, "node2")


def want(node, count: int = 1, *, reserved: tuple[str, ...] = (), cooldown: int = 0, affine: bool = True, **fields):
    ranges = tuple(Cidr.parse(text) for text in reserved)
    return Want(node.request(v4=count, **fields), count, ranges, cooldown, affine)


def take(node, wanted: Want):
    return take_addresses(node.work(), node.datastore.get(KEY, NEVER), wanted)


def took(node, wanted: Want) -> list[str]:
    return [str(allocation.address) for allocation in take(node, wanted)]


def rival_takes(node, count: int, handle: str = "net1.rival"):
    def move(_key):
        block = node.block(TEXT)
        node.put(KEY, block.take(block.free(())[:count], Attribute(handle, {})))

    return move


# --- undisturbed -----------------------------------------------------------------------------------------------------
def test_an_address_is_counted_before_it_is_written(node):
    before = node.add_block(TEXT).record
    seen = []
    node.datastore.before = lambda verb, key: seen.append((verb, type(key))) if verb != "fetch" else None
    (allocation,) = take(node, want(node))
    assert seen == [("create", HandleKey), ("update", BlockKey)]
    assert (str(allocation.address), allocation.sequence) == ("10.244.0.0", before.sequence)
    after = node.block(TEXT)
    assert (after.sequence, after.sequences) == (before.sequence + 1, {0: before.sequence})
    assert node.counts() == {"net1.c1": {TEXT: 1}}


def test_as_many_are_taken_as_there_are(node):
    node.add_block(TEXT, OWNER, ("other", 1))
    assert took(node, want(node, 5)) == ["10.244.0.1", "10.244.0.2", "10.244.0.3"]
    assert node.counts() == {"net1.c1": {TEXT: 3}}


def test_a_full_block_gives_nothing_and_nothing_is_written(node):
    stored = node.add_block(TEXT, OWNER, ("other", 4))
    assert took(node, want(node)) == []
    assert node.datastore.revision_of(KEY) == stored.revision
    assert node.counts() == {}


def test_reserved_addresses_are_left_alone(node):
    node.add_block(TEXT)
    assert took(node, want(node, 4, reserved=("10.244.0.0/31",))) == ["10.244.0.2", "10.244.0.3"]


def test_the_block_of_another_node_is_only_borrowed_from(node):
    """spec: ipam 19.7: the block keeps its owner, the attribute names the borrower."""
    node.add_block(TEXT, OTHER)
    assert took(node, want(node)) == []
    assert took(node, want(node, affine=False)) == ["10.244.0.0"]
    block = node.block(TEXT)
    assert block.affinity == "host:node2"
    assert block.holder(0).secondary["node"] == NODE


def test_addresses_that_have_cooled_down_are_free_again(node):
    block = node.add_block(TEXT, OWNER, ("other", 3)).record
    now = node.clock.now()
    node.put(KEY, block.take((3,), Attribute(None, {}, released_at=rfc3339(now - 60 * SECOND))))
    assert took(node, want(node, cooldown=100)) == []
    assert took(node, want(node, cooldown=30)) == ["10.244.0.3"]


def test_a_second_take_of_one_call_gives_only_what_is_new(node):
    node.add_block(TEXT)
    wanted = want(node)
    assert [took(node, wanted), took(node, wanted)] == [["10.244.0.0"], ["10.244.0.1"]]
    assert node.counts() == {"net1.c1": {TEXT: 2}}


def test_a_handles_limit_stops_the_call_before_the_block_is_written(node):
    stored = node.add_block(TEXT)
    with pytest.raises(IpamError, match="maxAlloc=1"):
        take(node, want(node, 2, max_per_handle=1))
    assert node.datastore.revision_of(KEY) == stored.revision


# --- with a rival ----------------------------------------------------------------------------------------------------
def test_a_lost_race_is_run_again_on_the_rivals_block(node):
    node.add_block(TEXT)
    with node.rival("update", BlockKey, rival_takes(node, 1)):
        assert took(node, want(node)) == ["10.244.0.1"]
    assert node.holders() == {"10.244.0.0": "net1.rival", "10.244.0.1": "net1.c1"}
    assert node.counts() == {"net1.c1": {TEXT: 1}}


def test_a_rival_that_leaves_less_leaves_the_count_right(node):
    node.add_block(TEXT)
    with node.rival("update", BlockKey, rival_takes(node, 3)):
        assert took(node, want(node, 2)) == ["10.244.0.3"]
    assert node.counts() == {"net1.c1": {TEXT: 1}}


@pytest.mark.parametrize("affinity", ["host:node2", None])
def test_a_block_that_changes_hands_gives_nothing_more(node, affinity):
    """LIB-199: no address is taken from a block that is no longer the node's own."""
    node.add_block(TEXT)
    moved = lambda _key: node.put(KEY, node.block(TEXT).replace(affinity=affinity))  # noqa: E731 - one line, one use
    with node.rival("update", BlockKey, moved):
        assert took(node, want(node)) == []
    assert (node.holders(), node.counts()) == ({}, {})


def test_a_block_that_vanishes_gives_nothing(node):
    node.add_block(TEXT)
    with node.rival("update", BlockKey, node.remove):
        assert took(node, want(node)) == []
    assert node.counts() == {}


def test_whoever_loses_every_race_gives_up_without_a_trace(node):
    node.add_block(TEXT)
    with node.rival("update", BlockKey, node.touch, times=MAX_TRIES), pytest.raises(StillContended):
        take(node, want(node))
    assert (node.holders(), node.counts()) == ({}, {})


# --- with a datastore that fails -------------------------------------------------------------------------------------
def test_a_write_that_failed_is_counted_back(node):
    node.add_block(TEXT)
    node.fail("update", BlockKey)
    with pytest.raises(Unavailable):
        take(node, want(node))
    assert (node.holders(), node.counts()) == ({}, {})


def test_a_write_whose_answer_was_lost_is_recognised_as_our_own(node):
    node.add_block(TEXT)
    node.fail("update", BlockKey, after=True)
    assert took(node, want(node, 2)) == ["10.244.0.0", "10.244.0.1"]
    assert node.counts() == {"net1.c1": {TEXT: 2}}


def test_a_like_named_holder_of_another_call_is_not_taken_for_ours(node):
    """The same container added twice at once: only the timestamps differ."""
    node.add_block(TEXT)
    other = node.request()

    def twin(_key):
        block = node.block(TEXT)
        node.put(KEY, block.take((0,), other.attribute))
        raise Unavailable("gone")

    with node.rival("update", BlockKey, twin), pytest.raises(Unavailable):
        take(node, want(node))
    assert node.holders() == {"10.244.0.0": "net1.c1"}
    assert node.counts() == {"net1.c1": {TEXT: 1}}  # what the block shows


def test_what_a_del_has_freed_before_we_look_again_is_counted_back(node):
    node.add_block(TEXT)

    def freed(verb, key):
        if verb == "update" and key == KEY:
            node.put(KEY, node.block(TEXT).release((0,), node.clock.now(), 0))
            raise Unavailable("gone")

    node.datastore.after = freed
    assert took(node, want(node, 2)) == ["10.244.0.1"]
    assert node.counts() == {"net1.c1": {TEXT: 1}}


def test_a_handle_that_cannot_be_written_stops_the_call(node):
    stored = node.add_block(TEXT)
    node.fail("create", HandleKey)
    with pytest.raises(Unavailable):
        take(node, want(node))
    assert node.datastore.revision_of(KEY) == stored.revision
