"""How full pools and blocks are (LIB-077 to LIB-080, LIB-259 to LIB-268)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, new_block
from domain.ipam.pools import IPReservation, Pool
from domain.ipam.utilisation import (
    BORROWED,
    COOLING,
    FREE,
    RESERVED,
    USED,
    block_use,
    space_outside,
    utilisation,
)
from domain.moment import SECOND
from domain.resource import Metadata
from strategies import blocks, cidrs

NOW = 1_795_957_572 * SECOND


def ranges(*texts):
    return tuple(Cidr.parse_lenient(text) for text in texts)


def block(cidr, owner="host:node-a", *, held=(), node="node-a"):
    made = new_block(Cidr.parse(cidr), owner, None, 1).replace(affinity=owner)
    return made.take(tuple(held), Attribute("net.c1", {"node": node})) if held else made


@pytest.mark.parametrize(
    ("reserved", "of_pool", "of_block"),
    [
        pytest.param(["10.0.0.32/30"], (256, 1, 4, 251), (64, 1, 4, 59), id="LIB-077"),
        pytest.param(["10.0.0.128/25"], (256, 1, 128, 127), (64, 1, 0, 63), id="LIB-078"),
        pytest.param(["10.0.0.5/32"], (256, 1, 1, 255), (64, 1, 1, 63), id="LIB-079"),
        pytest.param(["10.0.0.0/25", "10.0.0.5/32", "10.0.0.64/26"], (256, 1, 128, 128), (64, 1, 64, 0), id="LIB-080"),
    ],
)
def test_utilisation_counts_reservations_once_and_beside_what_is_in_use(reserved, of_pool, of_block):
    pools = [Pool(Metadata("p"), "10.0.0.0/24")]
    reservations = [IPReservation(Metadata("r"), tuple(reserved))]
    (pool,) = utilisation(pools, [block("10.0.0.0/26", held=[5])], reservations, NOW, 0).pools
    (only,) = pool.blocks
    assert (pool.space.total, pool.space.in_use, pool.space.reserved, pool.space.free) == of_pool
    assert (only.space.total, only.space.in_use, only.space.reserved, only.space.free) == of_block
    assert pool.places == 4


@pytest.mark.parametrize(
    ("pool", "reserved", "taken", "set_aside", "free"),
    [
        pytest.param("10.0.0.0/24", [], [], 0, 256, id="LIB-259"),
        pytest.param("10.0.0.0/24", ["10.0.0.32/30"], [], 4, 252, id="LIB-260"),
        pytest.param(
            "10.0.0.0/24", ["10.0.0.0/25", "10.0.0.5/32", "10.0.0.64/26", "10.0.0.0/25"], [], 128, 128, id="LIB-261"
        ),
        pytest.param("10.0.0.0/24", ["10.0.0.0/16"], [], 256, 0, id="LIB-262"),
        pytest.param("10.0.0.0/24", ["192.168.0.0/24", "fd00::/120"], [], 0, 256, id="LIB-263"),
        pytest.param("10.0.0.0/24", [], ["10.0.0.0/26", "10.0.0.64/26"], 0, 128, id="LIB-264"),
        pytest.param("10.0.0.0/24", ["10.0.0.32/30"], ["10.0.0.0/26"], 4, 192, id="LIB-265"),
        pytest.param("10.0.0.0/24", ["10.0.0.128/25"], ["10.0.0.0/26"], 128, 64, id="LIB-266"),
        pytest.param("fd00::/120", ["fd00::/126"], [], 4, 252, id="LIB-267"),
        pytest.param("fd00::/8", [], [], 0, 2**120, id="LIB-268: the original stops at 2^63-1"),
    ],
)
def test_space_outside_blocks(pool, reserved, taken, set_aside, free):
    space = space_outside(Cidr.parse(pool), ranges(*reserved), ranges(*taken))
    assert (space.reserved, space.free) == (set_aside, free)
    assert space.total == Cidr.parse(pool).size


@given(cidrs(version=4, min_length=22), st.lists(cidrs(version=4, min_length=20), max_size=5))
def test_space_outside_agrees_with_counting(pool, others):
    every = {pool.at(ordinal).number for ordinal in range(pool.size)}
    covered = {number for number in every if any(one.first <= number < one.end for one in others)}
    assert space_outside(pool, (), others).free == len(every - covered)
    assert space_outside(pool, others, ()).reserved == len(covered)


@given(blocks(), st.lists(cidrs(), max_size=3))
def test_every_address_has_one_state_and_the_counts_follow(made, reserved):
    use = block_use(made, reserved)
    space = use.space
    assert len(use.states) == space.total == made.cidr.size
    assert use.states.count(USED) + use.states.count(BORROWED) == space.in_use
    assert space.in_use + space.cooling + space.free + use.states.count(RESERVED) == space.total
    assert use.states.count(RESERVED) <= space.reserved
    assert space.free == len(made.free(tuple(reserved)))


def test_states_tell_borrowed_from_own_and_cooling_from_free():
    made = block("10.0.0.0/29", held=[0]).take((1,), Attribute("net.c2", {"node": "node-b"}))
    made = made.take((2,), Attribute("net.c3", {})).release((2,), NOW - 10 * SECOND, 30)
    use = block_use(made.take((3,), Attribute("net.c4", {})), ranges("10.0.0.7"))
    assert list(use.states) == [USED, BORROWED, COOLING, USED, FREE, FREE, FREE, RESERVED]


def test_nobody_borrows_from_a_block_without_a_node():
    for owner in (None, "virtual:load-balancer"):
        assert block_use(block("10.0.0.0/30", owner, held=[0], node="node-b"), ()).states[0] == USED


def test_what_has_cooled_down_is_free_although_the_record_says_otherwise():
    made = block("10.0.0.0/30", held=[0]).release((0,), NOW - 31 * SECOND, 30)
    warm = utilisation([Pool(Metadata("p"), "10.0.0.0/24")], [made], (), NOW, 60).pools[0]
    cold = utilisation([Pool(Metadata("p"), "10.0.0.0/24")], [made], (), NOW, 30).pools[0]
    assert (warm.space.cooling, warm.space.free) == (1, 255)
    assert (cold.space.cooling, cold.space.free) == (0, 256)


def test_blocks_are_under_their_pool_and_others_are_strays():
    """LIB-081, LIB-082: each block is counted in its own pool."""
    pools = [
        Pool(Metadata("b"), "20.0.0.0/24", disabled=True),
        Pool(Metadata("a"), "10.0.0.0/24", conditions=(("Allocatable", "False"),)),
        Pool(Metadata("six"), "fd00::/8"),
        Pool(Metadata("bad"), "no range"),
    ]
    some = [block("20.0.0.64/26", held=[1]), block("10.0.0.0/26"), block("20.0.0.0/26"), block("30.0.0.0/26")]
    found = utilisation(pools, some, (), NOW, 0)
    assert [pool.name for pool in found.pools] == ["b", "a", "six"]
    assert [pool.enabled for pool in found.pools] == [False, False, True]
    assert [[str(one.cidr) for one in pool.blocks] for pool in found.pools] == [
        ["20.0.0.0/26", "20.0.0.64/26"],
        ["10.0.0.0/26"],
        [],
    ]
    assert [str(one.cidr) for one in found.strays] == ["30.0.0.0/26"]
    assert [pool.space.in_use for pool in found.pools] == [1, 0, 0]
    assert found.pools[2].space.total == found.pools[2].space.free == 2**120


@pytest.mark.parametrize(
    ("reserved", "count"),
    [
        pytest.param([], 0, id="LIB-222"),
        pytest.param(["100.64.0.128/25"], 128, id="LIB-223"),
        pytest.param(["100.64.0.0/24"], 256, id="LIB-224"),
    ],
)
def test_reserved_addresses_count_whether_held_or_not(reserved, count):
    block = new_block(Cidr.parse("100.64.0.0/24"), "host:node1", None, 1).take((10, 210), Attribute("h", {}))
    assert block_use(block, [Cidr.parse(text) for text in reserved]).space.reserved == count
