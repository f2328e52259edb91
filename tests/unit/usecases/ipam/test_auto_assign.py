"""Automatic assignment: own blocks, new blocks, borrowed addresses (spec: ipam 7–9, 19.7; LIB-204, LIB-205; K03)."""

from __future__ import annotations

import pytest

from adapters.records.codec import key_text
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Attribute, Owner
from domain.ipam.errors import BlockLimitReached, IpamError, StillContended
from domain.ipam.pools import AllocationConfig, IPReservation
from domain.moment import rfc3339
from domain.resource import Metadata
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    IPPoolKey,
    IPReservationKey,
    NodeKey,
)
from ports.errors import Damaged, Missing, Unavailable
from usecases.ipam.auto_assign import auto_assign
from usecases.ipam.free_addresses import free_handle
from usecases.ipam.work import MAX_TRIES
from worlds.one_node import NEVER, NODE, OWNER

OTHER = Owner(HOST, "node2")
ORDER = ["10.244.0.128/26", "10.244.0.192/26", "10.244.0.0/26", "10.244.0.64/26"]  # node1's, in 10.244.0.0/24


def families(node, handle: str = "net1.c1", v4: int = 1, v6: int = 0, **fields):
    request = node.request(handle, v4, v6, **fields)
    return node.undoing(lambda undo: auto_assign(node.work(), request, undo))


def assigned(node, handle: str = "net1.c1", v4: int = 1, **fields) -> list[str]:
    (family,) = families(node, handle, v4, **fields)
    assert family.shortfall == ""
    return [str(allocation.address) for allocation in family.allocations]


def shortfall(node, v4: int = 1, **fields) -> str:
    (family,) = families(node, v4=v4, **fields)
    return family.shortfall


def configure(node, **fields) -> None:
    node.put(AllocationConfigKey(), AllocationConfig(**fields))


def reserve(node, *texts: str) -> None:
    node.put(IPReservationKey("r"), IPReservation(Metadata("r"), texts))


def fill(node, *texts: str, owner: Owner = OTHER, free: int = 0) -> None:
    for text in texts:
        node.add_block(text, owner, ("net1.full", Cidr.parse(text).size - free))


# --- own blocks and new ones -----------------------------------------------------------------------------------------


def test_the_first_address_comes_from_the_first_block_in_the_nodes_order(node):
    """spec: ipam 19.2, 19.3."""
    assert assigned(node) == ["10.244.0.128"]
    assert node.affinities() == {ORDER[0]: "confirmed"}
    assert node.counts() == {"net1.c1": {ORDER[0]: 1}}


def test_the_next_address_comes_from_the_same_block(node):
    """LIB-200: one block for a node, however many containers."""
    assert [assigned(node, f"net1.c{number}") for number in range(3)] == [
        ["10.244.0.128"],
        ["10.244.0.129"],
        ["10.244.0.130"],
    ]
    assert node.blocks() == [ORDER[0]]


def test_both_families_are_served_ipv4_first(node):
    four, six = families(node, v4=1, v6=2)
    assert (four.version, six.version) == (4, 6)
    assert [str(allocation.in_block) for allocation in four.allocations] == ["10.244.0.128/26"]
    assert [str(allocation.in_block) for allocation in six.allocations] == [
        "fd00:10:244::80/122",
        "fd00:10:244::81/122",
    ]


def test_only_what_is_asked_for_is_looked_up_and_answered(node):
    assert families(node, v4=0, v6=0) == ()
    (six,) = families(node, v4=0, v6=1)
    assert six.version == 6


def test_many_addresses_span_blocks_and_all_are_different(node):
    found = assigned(node, v4=100)
    assert len(set(found)) == 100
    assert node.counts() == {"net1.c1": {ORDER[0]: 64, ORDER[1]: 36}}
    assert node.affinities() == {ORDER[0]: "confirmed", ORDER[1]: "confirmed"}


def test_a_node_that_is_not_registered_gets_nothing(node):
    node.remove(NodeKey(NODE))
    with pytest.raises(Missing) as caught:
        families(node)
    assert str(caught.value) == f"resource does not exist: Node({NODE}) with error: Node not found"


def test_reserved_addresses_are_never_given(node):
    reserve(node, "10.244.0.128/30", " 10.244.0.133 ", "nonsense")
    assert assigned(node, v4=2) == ["10.244.0.132", "10.244.0.134"]


def test_a_wholly_reserved_block_is_neither_used_nor_claimed(node):
    node.add_block(ORDER[0])
    reserve(node, "10.244.0.128/25")
    assert assigned(node) == ["10.244.0.0"]


def test_another_call_that_leaves_the_block_full_sends_us_to_the_next(node):
    node.add_block(ORDER[0], OWNER, ("x", 63))
    with node.rival("update", BlockKey, lambda _key: fill(node, ORDER[0], owner=OWNER)):
        assert assigned(node) == ["10.244.0.192"]


def test_a_block_that_is_damaged_while_it_is_written_is_left_out(node):
    """And the handle does not go on counting what it was to give."""
    node.add_block(ORDER[0], OWNER)
    with node.rival("update", BlockKey, lambda key: node.datastore.load({key_text(key): "nonsense"})):
        assert assigned(node) == ["10.244.0.192"]
    assert node.counts() == {"net1.c1": {ORDER[1]: 1}}
    assert "Leaving out a block that cannot be read" in " ".join(node.log.shown("error"))


def test_whether_an_address_was_taken_in_a_block_that_is_damaged_since_is_unknown(node):
    node.add_block(ORDER[0], OWNER)

    def lose(verb, key):
        if verb == "update" and isinstance(key, BlockKey):
            node.datastore.load({key_text(key): "nonsense"})
            raise Unavailable("connection reset")

    node.datastore.before = lose
    with pytest.raises(Damaged):
        families(node)
    assert node.counts() == {"net1.c1": {ORDER[0]: 1}}


def test_an_affinity_that_leads_to_somebody_elses_block_is_dropped_and_passed_over(node):
    """LIB-204."""
    node.add_block(ORDER[0], OWNER)
    node.add_block(ORDER[0], OTHER)
    assert assigned(node) == ["10.244.0.192"]
    assert node.affinities() == {ORDER[1]: "confirmed"}


def test_a_claim_that_died_half_way_is_finished(node):
    node.add_block(ORDER[2], OWNER, state="pending")
    assert assigned(node) == ["10.244.0.0"]
    assert node.affinities() == {ORDER[2]: "confirmed"}


def test_a_block_of_ours_without_an_affinity_is_claimed_before_a_new_one(node):
    node.add_block(ORDER[0], OWNER, ("x", 3), state="")
    assert assigned(node) == ["10.244.0.131"]
    assert node.affinities() == {ORDER[0]: "confirmed"}


def test_a_block_that_another_node_claims_first_is_left_to_it(node):
    with node.rival("create", BlockKey, lambda key: node.add_block(str(key.cidr), OTHER)):
        assert assigned(node) == ["10.244.0.192"]
    assert node.affinities() == {ORDER[1]: "confirmed"}


def test_a_claim_that_never_succeeds_is_given_up(node):
    with node.rival("update", AffinityKey, node.remove, times=MAX_TRIES), pytest.raises(StillContended):
        families(node)
    assert (node.holders(), node.counts()) == ({}, {})


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "request_limit", "limit"),
    [(0, 0, 20), (2, 0, 2), (0, 1, 1), (2, 1, 1), (1, 2, 1)],
)
def test_a_node_owns_no_more_blocks_than_it_may(node, config, request_limit, limit):
    """spec: ipam 8: the smaller of both limits, else 20."""
    node.add_pool("pool0", "10.244.0.0/24", block_size=30)
    configure(node, max_blocks_per_host=config, strict_affinity=True)
    with pytest.raises(BlockLimitReached) as caught:
        families(node, v4=4 * limit + 1, max_blocks=request_limit)
    assert caught.value.limit == limit
    assert str(caught.value) == "cannot allocate new block due to per host block limit"
    assert len(node.affinities()) == limit
    assert (node.holders(), node.counts()) == ({}, {})


def test_blocks_that_are_owned_already_count_but_not_those_in_other_pools(node):
    node.add_pool("other", "10.99.0.0/24", node_selector="all()")
    configure(node, max_blocks_per_host=1)
    fill(node, "10.99.0.0/26", owner=OWNER)
    only = (Cidr.parse("10.244.0.0/24"),)
    assert assigned(node, v4=1, pools={4: only}) == ["10.244.0.128"]
    with pytest.raises(BlockLimitReached):
        families(node, v4=64, pools={4: only})


def test_no_block_is_claimed_where_that_is_switched_off(node):
    configure(node, auto_allocate_blocks=False, strict_affinity=False)
    with pytest.raises(IpamError, match="failed to find or claim a block"):
        families(node)
    node.add_block(ORDER[3])
    assert assigned(node) == ["10.244.0.64"]


# --- borrowing -------------------------------------------------------------------------------------------------------


def test_the_last_free_addresses_are_borrowed_from_another_nodes_block(node):
    """spec: ipam 19.7."""
    fill(node, *ORDER[:3])
    fill(node, ORDER[3], free=10)
    assert assigned(node) == ["10.244.0.118"]
    assert node.block(ORDER[3]).affinity == "host:node2"
    assert node.affinities() == {}


def test_borrowing_stops_when_the_call_has_what_it_asked_for(node):
    fill(node, *ORDER, free=2)
    assert len(assigned(node, v4=3)) == 3
    assert node.counts() == {"net1.c1": {ORDER[0]: 2, ORDER[1]: 1}}


def test_a_full_pool_is_named(node):
    """spec: ipam 19.7."""
    fill(node, *ORDER)
    text = "Assigned 0 out of 1 requested IPv4 addresses; No IPs available in pools: [10.244.0.0/24]"
    assert shortfall(node) == text
    node.add_pool("pool9", "10.245.0.0/26")
    fill(node, "10.245.0.0/26", free=1)
    assert shortfall(node, v4=2) == (
        "Assigned 1 out of 2 requested IPv4 addresses; No IPs available in pools: [10.244.0.0/24 10.245.0.0/26]"
    )


def test_with_strict_affinity_nothing_is_borrowed(node):
    """spec: ipam 19.7."""
    configure(node, strict_affinity=True)
    fill(node, *ORDER, free=1)
    assert shortfall(node) == (
        "Assigned 0 out of 1 requested IPv4 addresses; No more free affine blocks and strict affinity enabled"
    )


def test_an_empty_block_of_another_node_is_taken_over_a_minute_after_its_claim(node):
    """LIB-205."""
    node.add_pool("pool0", "10.244.0.0/26")
    configure(node, strict_affinity=True)
    stored = node.add_block("10.244.0.0/26", OTHER, ("net1.other", 1))
    assert shortfall(node) != ""
    now = rfc3339(node.clock.now())
    node.put(stored.key, node.block("10.244.0.0/26").release((0,), node.clock.now(), 0).replace(claimed_at=now))
    assert shortfall(node) != ""
    node.clock.advance(61)
    assert assigned(node) == ["10.244.0.0"]  # the block is a new one
    assert node.affinities() == {"10.244.0.0/26": "confirmed"}
    assert node.affinities(OTHER) == {}


# --- pools -----------------------------------------------------------------------------------------------------------


def give_up_case(node, text: str = "10.99.0.0/26", held: int = 0, **pool) -> None:
    if pool:
        node.add_pool("old", "10.99.0.0/24", **pool)
    node.add_block(text, OWNER, *([("net1.old", held)] if held else []))


def test_an_empty_block_of_a_pool_that_deselected_the_node_is_given_up(node):
    give_up_case(node, node_selector="has(gone)")
    assert assigned(node) == ["10.244.0.128"]
    assert node.blocks() == [ORDER[0]]
    assert node.affinities() == {ORDER[0]: "confirmed"}


@pytest.mark.parametrize(
    ("options", "request_fields"),
    [
        pytest.param({"node_selector": "has(gone)", "held": 1}, {}, id="not empty"),
        pytest.param({"node_selector": "all()", "allowed_uses": ("Tunnel",)}, {}, id="selected, for another use"),
        pytest.param({"node_selector": "all()", "assignment_mode": "Manual"}, {}, id="the node is still wanted"),
        pytest.param({"node_selector": "has(gone)", "disabled": True}, {}, id="disabled"),
        pytest.param({}, {}, id="no pool"),
        pytest.param({"node_selector": "["}, {"pools": {4: (Cidr.parse("10.244.0.0/24"),)}}, id="unreadable selector"),
    ],
)
def test_other_blocks_outside_the_chosen_pools_are_left_alone(node, options, request_fields):
    give_up_case(node, **options)
    assert assigned(node, **request_fields) == ["10.244.0.128"]
    assert "10.99.0.0/26" in node.blocks()


def test_a_call_that_cannot_be_served_at_all_says_why(node):
    node.add_pool("pool0", "10.244.0.0/24", node_selector="has(gone)")
    with pytest.raises(IpamError, match="no configured Calico pools for node node1"):
        families(node)


def test_the_nodes_labels_decide(node):
    node.add_node(NODE, zone="a")
    node.add_pool("pool0", "10.244.0.0/24", node_selector="zone == 'b'")
    node.add_pool("pool9", "10.245.0.0/24", node_selector="zone == 'a'")
    assert assigned(node)[0].startswith("10.245.0.")


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_limit_that_is_reached_says_what_there_is_so_far_and_which_setting_it_was(node):
    """LIB-184, F05."""
    node.add_pool("pool0", "10.244.0.0/24", block_size=30)
    configure(node, max_blocks_per_host=1, strict_affinity=True)
    with pytest.raises(BlockLimitReached) as caught:
        families(node, v4=5)
    assert caught.value.details == ("the node owns 1 blocks and may own 1 (maxBlocksPerHost in the IPAM configuration)")
    assert len(caught.value.assigned.allocations) == 4
    assert caught.value.assigned.shortfall == (
        "Assigned 4 out of 5 requested IPv4 addresses; "
        "Need to allocate an IPAM block but could not - limit of 1 blocks reached for this node"
    )


def test_strict_affinity_says_in_the_log_what_it_withholds(node):
    """F05."""
    configure(node, strict_affinity=True)
    fill(node, *ORDER, free=2)
    fill(node, "10.99.0.0/26", free=9)
    assert shortfall(node) != ""
    (line,) = [line for line in node.log.shown("warning") if "strictAffinity" in line]
    assert "free_in_foreign_blocks=8" in line


def test_addresses_of_the_nodes_own_devices_are_never_given(node):
    busy = (Cidr.parse("10.244.0.128/32"), Cidr.parse("fd00:10:244::80/128"))
    four, six = families(node, v4=1, v6=1, busy=busy)
    assert [str(allocation.address) for allocation in (*four.allocations, *six.allocations)] == [
        "10.244.0.129",
        "fd00:10:244::81",
    ]


def test_a_pool_whose_blocks_would_not_fit_in_a_record_is_refused(node):
    """F20."""
    node.add_pool("pool0", "10.244.0.0/16", block_size=19)
    with pytest.raises(IpamError, match="IPPool pool0 has blockSize 19") as caught:
        families(node)
    assert caught.value.code == 7


def test_a_family_that_fails_takes_the_other_with_it(node):
    """What IPv4 got is undone when there is no IPv6 pool."""
    node.remove(IPPoolKey("pool1"))
    with pytest.raises(IpamError, match="cannot find a qualified ippool"):
        families(node, v4=1, v6=1)
    assert (node.holders(), node.counts()) == ({}, {})
    assert node.affinities() == {ORDER[0]: "confirmed"}


def test_a_failure_in_the_middle_leaves_nothing_held(node):
    node.add_block(ORDER[0], OWNER, ("x", 63))
    node.fail("create", BlockKey)
    with pytest.raises(Unavailable):
        families(node, v4=2)
    assert set(node.holders().values()) == {"x"}
    assert node.counts() == {}


def test_an_undone_address_that_was_given_to_somebody_else_meanwhile_is_left(node):
    """The handle is deleted by a DEL, the address taken by another container, and only then our undo runs."""
    undo = node.undo()
    auto_assign(node.work(), node.request(), undo)
    free_handle(node.work(), "net1.c1")
    for number in range(64):
        assigned(node, f"net1.d{number}")
    held = node.holders()
    undo.run()
    assert node.holders() == held


def corrupt(node, text: str) -> None:
    node.datastore.load({key_text(BlockKey(Cidr.parse(text))): "<html>"})


def test_k03_a_damaged_block_of_ours_is_named_and_another_used(node):
    """K03."""
    node.add_block(ORDER[0])
    corrupt(node, ORDER[0])
    assert assigned(node) == ["10.244.0.192"]
    assert [line for line in node.log.shown("error") if "cannot be read" in line and f"block={ORDER[0]}" in line]


def test_k03_a_damaged_block_that_nobody_leads_to_is_named_and_another_claimed(node):
    """K03."""
    corrupt(node, ORDER[0])
    assert assigned(node) == ["10.244.0.192"]
    assert [line for line in node.log.shown("error") if f"block={ORDER[0]}" in line]
    assert node.datastore.revision_of(BlockKey(Cidr.parse(ORDER[0]))) is not None  # nobody wrote over it


@pytest.mark.parametrize("member", ["affinity_claim_time", "releasedAt"])
def test_k03_a_block_whose_times_cannot_be_read_is_passed_over(node, member):
    """K03: it must not end every call of every node that looks at it."""
    block = node.add_block(ORDER[0], OTHER).record
    node.put(BlockKey(block.cidr), block.take((3,), Attribute(None, {}, released_at=block.claimed_at)))
    key = key_text(BlockKey(block.cidr))
    text = node.datastore.records_text()[key]
    node.datastore.load({key: text.replace(f'"{member}":"{block.claimed_at}"', f'"{member}":"yesterday"')})
    fill(node, *ORDER[1:], free=1)
    assert assigned(node) == ["10.244.0.255"]
    (line, *_) = [line for line in node.log.shown("error") if "cannot be read" in line]
    assert "not an RFC 3339 time: 'yesterday'" in line


def test_nothing_is_left_to_do_when_the_datastore_is_away(node):
    node.fail("fetch", AllocationConfigKey)
    with pytest.raises(Unavailable):
        families(node)
    node.heal()
    assert node.datastore.get(AffinityKey(OWNER, Cidr.parse(ORDER[0])), NEVER) is None
