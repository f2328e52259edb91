"""Finding a block to claim, to take back, or to borrow from (spec: ipam 8.2, 8.4, 9; LIB-205, LIB-206)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, WINDOWS_HANDLE, Owner
from domain.ipam.pools import Pool
from domain.moment import rfc3339
from domain.resource import Metadata
from ports.datastore import AffinityKey, BlockKey, Blocks
from usecases.ipam.claim_place import free_place, in_node_order, reclaim
from worlds.one_node import NEVER, OWNER

OTHER = Owner(HOST, "node2")
# node1's order in 10.244.0.0/24 is .128, .192, .0, .64 (spec: ipam 19.2)
ORDER = ["10.244.0.128/26", "10.244.0.192/26", "10.244.0.0/26", "10.244.0.64/26"]


def pool(cidr: str = "10.244.0.0/24", **fields) -> Pool:
    return Pool(Metadata("p"), cidr, **fields)


def cidrs(*texts: str) -> list[Cidr]:
    return [Cidr.parse(text) for text in texts]


def place(node, pools: list[Pool], *, reserved: tuple[str, ...] = (), existing: tuple[str, ...] = ()) -> str | None:
    found = free_place(node.work(), OWNER, tuple(pools), tuple(cidrs(*reserved)), cidrs(*existing))
    return found and str(found)


# --- a free place ----------------------------------------------------------------------------------------------------
def test_the_first_place_in_the_nodes_order_is_found(node):
    for taken in range(5):
        expected = (*ORDER, None)[taken]
        assert place(node, [pool()], existing=tuple(ORDER[:taken])) == expected


def test_wholly_reserved_places_are_passed_over(node):
    assert place(node, [pool()], reserved=("10.244.0.128/25",)) == ORDER[2]
    assert place(node, [pool()], reserved=("10.244.0.128/27", "10.244.0.160/27")) == ORDER[1]
    assert place(node, [pool()], reserved=("10.244.0.128/27",)) == ORDER[0]
    assert place(node, [pool()], reserved=("10.0.0.0/8",)) is None


def test_places_that_overlap_blocks_of_another_size_are_passed_over(node):
    """The pool's block size was changed while blocks of the old size are in use."""
    assert place(node, [pool()], existing=("10.244.0.128/25",)) == ORDER[2]
    assert place(node, [pool()], existing=("10.244.0.144/28", "10.244.0.192/30")) == ORDER[2]


def test_the_next_pool_follows_a_full_one(node):
    second = pool("10.245.0.0/26")
    assert place(node, [pool(), second], existing=tuple(ORDER)) == "10.245.0.0/26"


def test_a_pool_whose_range_is_no_range_or_smaller_than_a_block_has_no_place(node):
    assert place(node, [pool("nonsense"), pool("10.244.0.0/28")]) is None


def test_one_address_blocks_are_taken_in_an_order_of_the_moment(node):
    """spec: ipam 8.4: seeded by the clock, so two nodes do not follow one another through the pool."""
    found = {place(node, [pool(block_size=32)]) for _ in range(20)}
    assert len(found) > 10
    assert all(Cidr.parse(text) in Cidr.parse("10.244.0.0/24") for text in found)


# --- somebody's empty block ------------------------------------------------------------------------------------------
def reclaimed(node, *, pools: tuple[str, ...] = ("10.244.0.0/24",), reserved: tuple[str, ...] = ()) -> str | None:
    blocks = node.datastore.list(Blocks(4), NEVER)
    found = reclaim(node.work(), tuple(pool(text) for text in pools), tuple(cidrs(*reserved)), blocks)
    return found and str(found)


def test_an_empty_block_of_another_node_is_taken_back_after_a_minute(node):
    """LIB-205."""
    node.add_block(ORDER[0], OTHER, ("h", 1))
    node.add_block(ORDER[1], OTHER)
    assert reclaimed(node) == ORDER[1]
    assert node.blocks() == [ORDER[0]]
    assert node.affinities(OTHER) == {ORDER[0]: "confirmed"}


def test_a_block_without_a_claim_time_counts_as_old(node):
    stored = node.add_block(ORDER[1], OTHER)
    node.put(stored.key, stored.record.replace(claimed_at=None))
    assert reclaimed(node) == ORDER[1]


def test_windows_reservations_do_not_keep_a_block(node):
    """K04."""
    node.add_block(ORDER[1], OTHER, (WINDOWS_HANDLE, 3))
    assert reclaimed(node) == ORDER[1]


def test_a_block_that_was_claimed_less_than_a_minute_ago_is_left_to_its_owner(node):
    """LIB-205."""
    stored = node.add_block(ORDER[1], OTHER)
    node.put(stored.key, stored.record.replace(claimed_at=rfc3339(node.clock.now())))
    node.clock.advance(59.5)
    assert reclaimed(node) is None
    node.clock.advance(0.6)
    assert reclaimed(node) == ORDER[1]


@pytest.mark.parametrize(
    ("owner", "options"),
    [
        pytest.param(OTHER, {"pools": ("10.99.0.0/24",)}, id="in another pool"),
        pytest.param(OTHER, {"pools": ("nonsense",)}, id="in no pool"),
        pytest.param(None, {}, id="without an owner it can only be borrowed from"),
        pytest.param(OTHER, {"reserved": ("10.244.0.0/24",)}, id="wholly reserved"),
    ],
)
def test_other_empty_blocks_are_left(node, owner, options):
    node.add_block(ORDER[1], owner)
    assert reclaimed(node, **options) is None
    assert node.blocks() == [ORDER[1]]


def test_a_block_in_which_somebody_allocates_meanwhile_is_left(node):
    """LIB-206: a failed reclaim is no error."""
    node.add_block(ORDER[0], OTHER)
    node.add_block(ORDER[1], OTHER)
    with node.rival("delete", BlockKey, node.touch):
        assert reclaimed(node) == ORDER[1]
    assert node.blocks() == [ORDER[0]]


def test_a_block_that_was_used_and_emptied_since_it_was_listed_is_left(node):
    """spec: ipam 8.2: the sequence number must still be the one that was seen."""
    node.add_block(ORDER[0], OTHER)

    def use(key):
        node.put(key, node.get(key).replace(sequence=node.get(key).sequence + 2))

    with node.rival("fetch", BlockKey, use):
        assert reclaimed(node) is None
    assert node.affinities(OTHER) == {ORDER[0]: "confirmed"}


def test_a_block_whose_affinity_is_gone_is_left(node):
    node.add_block(ORDER[0], OTHER, state="")
    assert node.get(AffinityKey(OTHER, Cidr.parse(ORDER[0]))) is None
    assert reclaimed(node) is None


# --- blocks to borrow from -------------------------------------------------------------------------------------------
def ordered(node, one: Pool, *, reserved: tuple[str, ...] = ()) -> list[str]:
    blocks = node.datastore.list(Blocks(), NEVER)
    found = in_node_order(node.work(), OWNER, one, tuple(cidrs(*reserved)), blocks)
    return [str(stored.key.cidr) for stored in found]


def test_blocks_are_borrowed_from_in_the_nodes_order(node):
    for text in (*ORDER, "10.99.0.0/26", "fd00::/122"):
        node.add_block(text, OTHER)
    assert ordered(node, pool()) == ORDER
    assert ordered(node, pool(), reserved=("10.244.0.192/26",)) == [ORDER[0], *ORDER[2:]]


def test_blocks_of_an_older_size_are_borrowed_from_as_well(node):
    for text in ("10.244.0.0/28", "10.244.0.160/28", "10.244.0.192/26"):
        node.add_block(text, OTHER)
    assert ordered(node, pool()) == ["10.244.0.160/28", "10.244.0.192/26", "10.244.0.0/28"]


def test_a_pool_whose_range_is_no_range_or_smaller_than_a_block_has_none(node):
    node.add_block("10.244.0.0/30", OTHER)
    assert ordered(node, pool("nonsense")) == []
    assert ordered(node, pool("10.244.0.0/28")) == []
