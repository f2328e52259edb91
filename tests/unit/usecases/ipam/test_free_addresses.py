"""Giving addresses back (spec: ipam 12, 13; LIB-228 to LIB-238)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, Handle
from domain.ipam.pools import AllocationConfig
from domain.ipam.request import Allocation
from ports.datastore import AllocationConfigKey, BlockKey, HandleKey, IPPoolKey, NodeKey
from ports.errors import Unavailable
from usecases.ipam.free_addresses import free_allocation, free_handle
from worlds.one_node import NODE, OWNER

ONE, TWO, SIX = "10.244.0.0/30", "10.244.0.4/30", "fd00:10:244::/126"
H = "net1.c1"
KEY = HandleKey(H)


def hold(node, *blocks: tuple[str, int], handle: str = H, counted: dict[str, int] | None = None) -> None:
    """The handle holds that many addresses in those blocks, and counts so unless told otherwise."""
    for text, count in blocks:
        node.add_block(text, OWNER, *([(handle, count)] if count else []))
    counts = dict(blocks) if counted is None else counted
    node.put(HandleKey(handle), Handle({Cidr.parse(text): count for text, count in counts.items()}))


def free(node, handle: str = H) -> bool:
    return free_handle(node.work(), handle)


# --- by handle -------------------------------------------------------------------------------------------------------
def test_a_handle_that_does_not_exist_holds_nothing(node):
    """LIB-234."""
    assert not free(node)


def test_all_addresses_of_a_handle_are_freed_and_the_handle_deleted(node):
    hold(node, (ONE, 2), (TWO, 1), (SIX, 1))
    assert free(node)
    assert (node.holders(), node.counts()) == ({}, {})
    assert len(node.blocks()) == 3  # the node keeps its blocks
    assert not free(node)


def test_addresses_of_others_stay(node):
    hold(node, (ONE, 1))
    block = node.block(ONE)
    node.put(BlockKey(block.cidr), block.take((3,), Attribute("net1.c2", {})))
    node.put(HandleKey("net1.c2"), Handle({block.cidr: 1}))
    assert free(node)
    assert node.holders() == {"10.244.0.3": "net1.c2"}
    assert node.counts() == {"net1.c2": {ONE: 1}}


def test_the_block_is_written_before_the_handle(node):
    """A death in between leaves a handle that counts too much, never too little."""
    hold(node, (ONE, 1))
    seen = []
    node.datastore.before = lambda verb, key: seen.append((verb, type(key))) if verb != "fetch" else None
    free(node)
    assert seen == [("update", BlockKey), ("delete", HandleKey)]


def test_with_a_cooldown_the_address_stays_taken_but_the_handle_goes(node):
    node.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=30))
    hold(node, (ONE, 1))
    assert free(node)
    assert node.holders() == {"10.244.0.0": None}
    assert node.counts() == {}


def test_an_empty_block_that_no_node_owns_goes_with_its_last_address(node):
    node.add_block(ONE, None, (H, 1), ("net1.c2", 1))
    for handle in (H, "net1.c2"):
        node.put(HandleKey(handle), Handle({Cidr.parse(ONE): 1}))
    free(node)
    assert node.blocks() == [ONE]
    free(node, "net1.c2")
    assert node.blocks() == []


# --- handles that count too much -------------------------------------------------------------------------------------
def test_a_handle_without_blocks_is_deleted(node):
    """L04: a handle that a death left empty."""
    hold(node)
    assert free(node)
    assert node.counts() == {}


def test_a_handle_that_was_empty_and_is_no_longer_stays(node):
    hold(node)
    with node.rival("delete", HandleKey, lambda _key: node.put(KEY, Handle({Cidr.parse(ONE): 1}))):
        free(node)
    assert node.counts() == {H: {ONE: 1}}


def test_a_handle_that_was_empty_and_has_gone_is_gone(node):
    hold(node)
    with node.rival("delete", HandleKey, node.remove):
        assert free(node)
    assert node.counts() == {}


def test_a_handle_that_names_a_block_that_is_gone_is_deleted(node):
    hold(node, counted={ONE: 1})
    assert free(node)
    assert node.counts() == {}


def test_a_handle_that_counts_more_than_it_holds_is_deleted_and_the_block_rewritten(node):
    """So that a call still in flight for this handle loses its race and counts again."""
    hold(node, (ONE, 0), counted={ONE: 1})
    before = node.block(ONE)
    assert free(node)
    assert node.counts() == {}
    assert node.block(ONE) == before.replace(sequence=before.sequence + 1)


# --- with a rival ----------------------------------------------------------------------------------------------------
def test_a_block_that_changes_meanwhile_is_read_again(node):
    hold(node, (ONE, 1))
    with node.rival("update", BlockKey, node.touch):
        assert free(node)
    assert (node.holders(), node.counts()) == ({}, {})


@pytest.mark.parametrize("verb", ["delete", "update"])
def test_a_handle_that_changes_meanwhile_is_counted_down_by_what_was_freed(node, verb):
    """A rival adds an address for the same handle in a third block; with two blocks the first strike is an update."""
    hold(node, (ONE, 1), *([(TWO, 1)] if verb == "update" else []))

    def more(_key):
        node.put(KEY, Handle({**node.get(KEY).blocks, Cidr.parse(SIX): 1}))

    with node.rival(verb, HandleKey, more):
        assert free(node)
    assert node.holders() == {}
    assert node.counts() == {H: {SIX: 1}}


def test_a_handle_that_another_del_has_deleted_is_fine(node):
    hold(node, (ONE, 1), (TWO, 1))
    with node.rival("update", HandleKey, node.remove):
        assert free(node)
    assert (node.holders(), node.counts()) == ({}, {})


def test_a_block_that_another_del_has_struck_off_already_is_passed_over(node):
    """The rival frees the second block and counts it down while we are at the first."""
    hold(node, (ONE, 1), (TWO, 1))

    def rival(_key):
        block = node.block(TWO)
        node.put(BlockKey(block.cidr), block.release((0,), node.clock.now(), 0))
        node.put(KEY, Handle({Cidr.parse(ONE): 1}))

    with node.rival("update", HandleKey, rival):
        assert free(node)
    assert (node.holders(), node.counts()) == ({}, {})


def test_an_unreachable_datastore_leaves_what_is_left_to_the_next_try(node):
    hold(node, (ONE, 1), (TWO, 1))
    node.fail("update", HandleKey)
    with pytest.raises(Unavailable):
        free(node)
    assert node.counts() == {H: {ONE: 1, TWO: 1}}
    node.heal()
    assert free(node)
    assert (node.holders(), node.counts()) == ({}, {})


# --- one address -----------------------------------------------------------------------------------------------------
def allocation(node, at: int = 0, **changes) -> Allocation:
    block = node.block(ONE)
    return Allocation(block.cidr, at, block.sequences[at]).replace(**changes)


def test_exactly_one_address_is_freed_and_counted_down(node):
    """G15: undoing a repeated ADD leaves the running container's address alone."""
    hold(node, (ONE, 3))
    free_allocation(node.work(), H, allocation(node, 1))
    assert node.holders() == {"10.244.0.0": H, "10.244.0.2": H}
    assert node.counts() == {H: {ONE: 2}}


def test_the_last_address_takes_the_handle_with_it(node):
    hold(node, (ONE, 1))
    free_allocation(node.work(), H, allocation(node))
    assert (node.holders(), node.counts()) == ({}, {})


@pytest.mark.parametrize(
    ("handle", "changes"),
    [
        pytest.param("net1.c2", {}, id="LIB-232 another holder"),
        pytest.param(H, {"sequence": 5}, id="LIB-233 another sequence number"),
        pytest.param(H, {"ordinal": 3}, id="LIB-231 a free address"),
        pytest.param(H, {"block": Cidr.parse(TWO)}, id="a block that is gone"),
    ],
)
def test_an_address_that_is_not_exactly_ours_is_left_alone(node, handle, changes):
    hold(node, (ONE, 1))
    before = node.datastore.records_text()
    free_allocation(node.work(), handle, allocation(node, **changes))
    assert node.datastore.records_text() == before


@pytest.mark.parametrize("move", ["touch", "remove"])
def test_a_handle_that_changes_while_one_address_is_freed_counts_what_is_left(node, move):
    hold(node, (ONE, 3))
    with node.rival("update", HandleKey, getattr(node, move)):
        free_allocation(node.work(), H, allocation(node, 1))
    assert node.counts() == ({H: {ONE: 2}} if move == "touch" else {})


def test_a_single_address_cools_down_too(node):
    node.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=30))
    hold(node, (ONE, 1))
    free_allocation(node.work(), H, allocation(node))
    assert node.holders() == {"10.244.0.0": None}


# --- empty blocks of pools that do not want the node any more --------------------------------------------------------
def deselect(node, selector: str = "has(gone)") -> None:
    node.add_pool("pool0", "10.244.0.0/24", node_selector=selector)


def test_an_empty_block_of_a_pool_that_deselected_its_node_is_given_up(node):
    hold(node, (ONE, 1))
    deselect(node)
    assert free(node)
    assert (node.blocks(), node.affinities()) == ([], {})


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(lambda node: deselect(node, "all()"), id="the pool selects the node"),
        pytest.param(lambda node: deselect(node, "["), id="the selector cannot be read"),
        pytest.param(lambda node: node.remove(IPPoolKey("pool0")), id="no pool"),
        pytest.param(lambda node: (deselect(node), node.remove(NodeKey(NODE))), id="no node"),
        pytest.param(
            lambda node: (
                deselect(node),
                node.put(
                    BlockKey(Cidr.parse(ONE)),
                    node.block(ONE).take((3,), Attribute("net1.c2", {})),
                ),
            ),
            id="not empty",
        ),
    ],
)
def test_otherwise_the_node_keeps_its_block(node, arrange):
    hold(node, (ONE, 1))
    arrange(node)
    assert free(node)
    assert node.blocks() == [ONE]


def test_a_block_from_which_nothing_was_freed_is_not_given_up(node):
    hold(node, (ONE, 0), counted={ONE: 1})
    deselect(node)
    assert free(node)
    assert (node.blocks(), node.counts()) == ([ONE], {})


def test_a_failure_to_give_up_a_block_costs_nobody_an_address(node):
    hold(node, (ONE, 1))
    deselect(node)
    node.fail("fetch", NodeKey)
    assert free(node)
    assert (node.holders(), node.counts()) == ({}, {})
    assert [line for line in node.log.shown("warning") if "Could not give up an empty block" in line]
