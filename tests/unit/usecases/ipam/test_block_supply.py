"""Blocks one after the other: the node's own, then new ones, whatever happens to them meanwhile (spec: ipam 8)."""

from __future__ import annotations

from itertools import islice

import pytest

from adapters.records.codec import key_text
from domain.ipam.address import Cidr
from domain.ipam.block import CONFIRMED, HOST, Affinity, Owner
from domain.ipam.block_order import Skip, name_seed, walk
from domain.ipam.errors import BlockLimitReached
from ports.datastore import Affinities, AffinityKey, BlockKey, Blocks
from usecases.ipam.allocation_terms import read_surroundings, terms_for
from usecases.ipam.block_supply import BlockSupply
from usecases.ipam.claim_place import PROBES
from usecases.ipam.work import MAX_TRIES
from worlds.one_node import NODE, OWNER, OneNode

OWN = [f"10.244.0.{first}/30" for first in (100, 104, 108, 112)]


@pytest.fixture
def node():
    """One pool with small blocks."""
    node = OneNode()
    node.add_pool("pool0", "10.244.0.0/24", block_size=30)
    return node


def supply(node, **fields) -> BlockSupply:
    may_lag = not node.datastore.lists_in_one_go
    return BlockSupply(
        node.work(), terms_for(4, read_surroundings(node.work(), node.request(**fields), may_lag=may_lag))
    )


def drawn(blocks: BlockSupply) -> str:
    return str(blocks.next().record.cidr)


def fetched(node) -> int:
    return node.datastore.calls.get("fetch", 0)


def test_full_blocks_are_read_at_once_and_passed_over(node):
    for text in OWN[:3]:
        node.add_block(text, OWNER, ("x", 4))
    node.add_block(OWN[3], OWNER, ("x", 3))
    blocks = supply(node)
    before = fetched(node)
    assert drawn(blocks) == OWN[3]
    assert fetched(node) - before == 2


def test_what_was_read_ahead_and_has_changed_since_loses_no_address(node):
    """A block that is given up between the reading and its turn is made again."""
    for text in OWN[:3]:
        node.add_block(text, OWNER, ("x", 4))
    node.add_block(OWN[3], OWNER, state="pending")
    with node.rival("update", BlockKey, node.touch):
        assert drawn(supply(node)) == OWN[3]
    assert node.affinities()[OWN[3]] == "confirmed"


def test_a_damaged_block_spares_those_that_are_read_with_it(node):
    """K03."""
    for text in OWN:
        node.add_block(text, OWNER, ("x", 4 if text == OWN[0] else 0))
    node.datastore.load({key_text(BlockKey(Cidr.parse(OWN[2]))): "<html>"})
    blocks = supply(node)
    assert [drawn(blocks), drawn(blocks)] == [OWN[1], OWN[3]]
    assert [line for line in node.log.shown("error") if f"block={OWN[2]}" in line]


def test_a_claim_that_is_fought_over_is_tried_again(node):
    """spec: ipam 8.1: the same block, until it is ours or not."""
    node.add_block(OWN[0], OWNER, state="pendingDeletion")
    with node.rival("update", BlockKey, node.touch, times=3):
        assert drawn(supply(node)) == OWN[0]


def test_a_claim_that_is_fought_over_for_ever_is_passed_over(node):
    node.add_block(OWN[0], OWNER, state="pendingDeletion")
    node.add_block(OWN[1])
    with node.rival("update", BlockKey, node.touch, times=MAX_TRIES):
        assert drawn(supply(node)) == OWN[1]


def test_a_claim_that_is_given_up_meanwhile_is_passed_over(node):
    node.add_block(OWN[0], OWNER, state="pending")
    node.add_block(OWN[1])
    with node.rival("update", AffinityKey, node.remove):
        assert drawn(supply(node)) == OWN[1]


def test_each_block_comes_once_and_counts_once(node):
    for text in OWN[:2]:
        node.add_block(text)
    blocks = supply(node)
    seen = [drawn(blocks) for _ in range(4)]
    assert seen[:2] == OWN[:2]
    assert len(set(seen)) == 4
    assert blocks.owned == 4


def test_a_block_that_another_call_has_just_filled_is_not_what_a_new_one_would_be(node):
    """It is claimed for the node, full as it is; the next one is looked for."""
    with node.rival("create", BlockKey, lambda key: node.add_block(str(key.cidr), OWNER, ("x", 4), state="")):
        stored = supply(node).next()
    assert stored.record.unallocated == ()


# --- where to claim --------------------------------------------------------------------------------------------------


@pytest.fixture
def listings() -> list[str]:
    """The listings of blocks so far."""
    return []


@pytest.fixture
def noted(node, listings):
    def note(_verb, need):
        if type(need) is Blocks and need.around is None:
            listings.append(need)

    node.datastore.before = note
    return node


@pytest.fixture(params=["in one go", "page by page"])
def listed(noted, request):
    noted.datastore.lists_in_one_go = request.param == "in one go"
    return noted


@pytest.fixture
def paged(noted):
    noted.datastore.lists_in_one_go = False
    return noted


def walked(node, count: int) -> list[Cidr]:
    """The first places of the node's walk through its pool."""
    return list(islice(walk(Cidr.parse("10.244.0.0/24"), 30, name_seed(NODE), Skip()), count))


def test_p01_a_place_in_a_pool_with_room_is_found_without_listing_blocks(listed, listings):
    first, second, third = walked(listed, 3)
    for cidr in (first, second):
        listed.add_block(str(cidr), Owner(HOST, "node2"), ("x", 1))
    assert drawn(supply(listed)) == str(third)
    assert listings == []


def test_a_claim_that_a_rival_has_touched_is_finished_and_no_other_place_claimed(paged):
    """Else the block would be left half claimed until the node needs one more."""
    place = str(walked(paged, 1)[0])
    with paged.rival("update", AffinityKey, paged.touch):
        assert drawn(supply(paged)) == place
    assert paged.affinities() == {place: "confirmed"}


def test_a_crowded_pool_is_listed_after_a_few_looks(listed, listings):
    places = walked(listed, PROBES + 1)
    for cidr in places[:-1]:
        listed.add_block(str(cidr), Owner(HOST, "node2"), ("x", 1))
    assert drawn(supply(listed)) == str(places[-1])
    assert len(listings) == 1


def test_a_pool_without_any_place_left_is_listed_for_blocks_to_reclaim(listed):
    listed.add_pool("pool0", "10.244.0.0/30", block_size=30)
    listed.add_block("10.244.0.0/30", Owner(HOST, "node2"), ("x", 4))
    assert supply(listed).next() is None


def test_a_block_of_ours_that_no_affinity_leads_to_is_found_by_looking(listed, listings):
    place = walked(listed, 1)[0]
    listed.add_block(str(place), OWNER, state="")
    assert drawn(supply(listed)) == str(place)
    assert listings == []


def test_k03_a_damaged_block_at_a_place_that_is_looked_at_spares_the_next_place(listed, listings):
    first, second = walked(listed, 2)
    listed.datastore.load({key_text(BlockKey(first)): "<html>"})
    assert drawn(supply(listed)) == str(second)
    assert [line for line in listed.log.shown("error") if f"block={first}" in line]
    assert listings == []


def test_k03_a_damaged_block_in_a_crowded_pool_spares_the_next_place(listed):
    """A listing leaves it out; the claim meets it."""
    *taken, damaged, free = walked(listed, PROBES + 2)
    for cidr in taken:
        listed.add_block(str(cidr), Owner(HOST, "node2"), ("x", 1))
    listed.datastore.load({key_text(BlockKey(damaged)): "<html>"})
    assert drawn(supply(listed)) == str(free)
    assert [line for line in listed.log.shown("error") if f"block={damaged}" in line]


@pytest.mark.parametrize("length", [20, 29, 31, 32])
def test_a_block_of_another_size_that_overlaps_a_place_is_seen_where_that_is_one_question(noted, listings, length):
    """Of a pool that was deleted and made again with other blocks while some held addresses."""
    first, second = walked(noted, 2)
    old = first.replace(length=length).network
    noted.add_block(str(old), Owner(HOST, "node2"), ("x", 1))
    if length < 24:  # it covers the whole pool
        assert supply(noted).next() is None
        return
    claimed = Cidr.parse(drawn(supply(noted)))
    assert not claimed.overlaps(old)
    assert claimed == (second if not second.overlaps(old) else walked(noted, 3)[2])
    assert listings == []


# --- where listings lag -----------------------------------------------------------------------------------------------


@pytest.fixture
def lagging(paged):
    """Listings that may lag show a node without blocks."""
    paged.datastore.lag = paged.datastore.snapshot()
    return paged


def test_a_block_that_the_listing_does_not_show_yet_is_used_before_one_is_claimed(lagging):
    lagging.add_block(OWN[0], OWNER, ("x", 4))
    lagging.add_block(OWN[1], OWNER, ("x", 1))
    assert drawn(supply(lagging)) == OWN[1]
    assert set(lagging.affinities()) == set(OWN[:2])


def test_up_to_date_affinities_are_listed_only_when_those_shown_do_not_serve(paged):
    """And only once."""
    asked = []
    paged.add_block(OWN[0], OWNER, ("x", 1))
    paged.datastore.before = lambda _verb, need: asked.append(need) if type(need) is Affinities else None
    blocks = supply(paged)
    assert drawn(blocks) == OWN[0]
    assert [need.may_lag for need in asked] == [True]
    for _ in range(2):
        blocks.next()
    assert [need.may_lag for need in asked] == [True, False]


def test_no_block_is_claimed_in_a_pool_that_was_switched_off_a_moment_ago(lagging):
    """The pools are read anew in the same question as the affinities, before the block is written."""
    lagging.add_pool("pool9", "10.250.0.0/24", block_size=30)
    lagging.add_pool("pool0", "10.244.0.0/24", block_size=30, disabled=True)
    blocks = supply(lagging)
    before = fetched(lagging)
    assert drawn(blocks).startswith("10.250.0.")
    assert fetched(lagging) - before == 2


def test_blocks_that_the_listing_does_not_show_yet_count_as_the_nodes(lagging):
    lagging.add_block(OWN[0], OWNER, ("x", 4))
    with pytest.raises(BlockLimitReached) as caught:
        supply(lagging, max_blocks=1).next()
    assert caught.value.details.startswith("the node owns 1 blocks")


def test_a_block_that_is_given_up_but_still_listed_is_passed_over(paged):
    """Neither it nor its affinity comes back."""
    paged.add_block(OWN[0])
    paged.add_block(OWN[1])
    paged.datastore.lag = paged.datastore.snapshot()
    for key in (BlockKey(Cidr.parse(OWN[0])), AffinityKey(OWNER, Cidr.parse(OWN[0]))):
        paged.remove(key)
    assert drawn(supply(paged)) == OWN[1]
    assert set(paged.affinities()) == {OWN[1]}


def test_a_block_that_is_somebody_elses_by_now_keeps_its_owner_and_the_node_its_affinity(paged):
    """What has changed since the listing is not deleted by its word."""
    paged.add_block(OWN[0])
    paged.datastore.lag = paged.datastore.snapshot()
    paged.touch(AffinityKey(OWNER, Cidr.parse(OWN[0])))
    paged.remove(BlockKey(Cidr.parse(OWN[0])))
    paged.add_block(OWN[0], Owner(HOST, "node2"), state="")
    assert drawn(supply(paged)) != OWN[0]
    assert paged.block(OWN[0]).affinity == "host:node2"
    assert OWN[0] in paged.affinities()


@pytest.mark.parametrize("before", ["pending", "pendingDeletion"])
def test_an_affinity_that_is_confirmed_by_now_stays_so(paged, before):
    """Routes of the node's containers depend on it; the claim of the call before is what the listing still shows."""
    paged.add_block(OWN[0], state=before)
    paged.datastore.lag = paged.datastore.snapshot()
    paged.put(AffinityKey(OWNER, Cidr.parse(OWN[0])), Affinity(CONFIRMED))
    written = []
    paged.datastore.after = lambda verb, what: written.append(what) if verb == "update" else None
    assert drawn(supply(paged)) == OWN[0]
    assert written == []
    assert paged.affinities() == {OWN[0]: CONFIRMED}
