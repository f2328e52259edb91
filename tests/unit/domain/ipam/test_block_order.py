"""The order in which nodes try blocks (LIB-247 to LIB-258, C06; spec: ipam 8.4, 19.2; recording `ipam-node-names`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.ipam.address import BITS, V4, V6, Cidr, covers
from domain.ipam.block_order import Skip, _GoRandom, name_seed, start_index, walk

GOLDEN = Path(__file__).parents[3] / "golden" / "ipam-node-names.json"
NOTHING = Skip()


def order(pool: str, block_length: int, name: str, skip: Skip = NOTHING) -> list[str]:
    return [str(cidr) for cidr in walk(Cidr.parse(pool), block_length, name_seed(name), skip)]


def first(pool: Cidr, block_length: int, name: str) -> Cidr:
    return next(walk(pool, block_length, name_seed(name), NOTHING))


# --- the draw --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "seed"),
    [("node1", 3957252814), ("node2", 3957252813), ("worker-1", 2999756865), ("load-balancer", 4270604816)],
)
def test_a_name_is_hashed_with_fnv_1(name, seed):
    """spec: ipam 19.2."""
    assert name_seed(name) == seed


def test_the_empty_name_and_other_alphabets_have_seeds_too():
    assert name_seed("") == 2166136261
    assert name_seed("ü") != name_seed("u")


def test_the_generator_draws_what_go_draws():
    """spec: ipam 19.2."""
    generator = _GoRandom(3957252814)
    assert [generator.uint32(), generator.uint32()] == [3217423002, 3224389328]


def slow_draws(seed: int, count: int) -> list[int]:
    """The generator as Go states it: 20 steps unused, three steps a word, then the two taps run backwards."""
    from domain.ipam.go_random_table import COOKED

    def step(state: int) -> int:
        return state * 48271 % (2**31 - 1)

    state = seed % (2**31 - 1) or 89482311
    words = []
    for _ in range(20):
        state = step(state)
    for cooked in COOKED:
        parts = []
        for _ in range(3):
            state = step(state)
            parts.append(state)
        words.append((parts[0] << 40 ^ parts[1] << 20 ^ parts[2] ^ cooked) % 2**64)
    tap, feed = 0, 607 - 273
    drawn = []
    for _ in range(count):
        tap, feed = (tap - 1) % 607, (feed - 1) % 607
        words[feed] = (words[feed] + words[tap]) % 2**64
        drawn.append((words[feed] % 2**63) >> 31)
    return drawn


@given(st.integers(0, 2**63 - 1))
@example(0)
@example(2**31 - 1)
@settings(max_examples=15, deadline=None)
def test_the_shortened_generator_agrees_with_the_plain_one_beyond_its_first_round(seed):
    generator = _GoRandom(seed)
    assert [generator.uint32() for _ in range(700)] == slow_draws(seed, 700)


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**130))
@settings(max_examples=60, deadline=None)
def test_a_draw_is_below_its_limit(seed, limit):
    assert 0 <= _GoRandom(seed).below(limit) < limit


@pytest.mark.parametrize(
    ("name", "pool", "block_length", "start", "block"),
    [
        ("node1", "192.168.0.0/16", 26, 666, "192.168.166.128/26"),
        ("node2", "192.168.0.0/16", 26, 416, "192.168.104.0/26"),
        ("worker-1", "192.168.0.0/16", 26, 905, "192.168.226.64/26"),
        ("load-balancer", "192.168.0.0/16", 26, 586, "192.168.146.128/26"),
        ("node1", "10.0.0.0/8", 26, 71252, "10.69.149.0/26"),
        ("node1", "fd80:24e2:f998:72d6::/112", 122, 666, "fd80:24e2:f998:72d6::a680/122"),
        ("node1", "fd00:10:244::/64", 122, 13588661266676378, "fd00:10:244:0:c11:b42f:f17e:a680/122"),
    ],
)
def test_the_start_blocks_of_the_specification(name, pool, block_length, start, block):
    """spec: ipam 19.2."""
    assert start_index(Cidr.parse(pool), block_length, name_seed(name)) == start
    assert str(first(Cidr.parse(pool), block_length, name)) == block


def test_the_walk_goes_up_from_the_start_and_wraps_round():
    """spec: ipam 19.2."""
    expected = ["10.244.0.128/26", "10.244.0.192/26", "10.244.0.0/26", "10.244.0.64/26"]
    assert order("10.244.0.0/24", 26, "node1") == expected


def golden_names() -> dict[str, dict]:
    return json.loads(GOLDEN.read_text())["names"]


def test_a_recording_of_first_blocks_is_there():
    assert len(golden_names()) == 12


@pytest.mark.parametrize("version", [4, 6])
def test_every_recorded_node_starts_where_the_original_started(version):
    pool, block_length = {4: ("10.20.0.0/16", 26), 6: ("fd20::/48", 122)}[version]
    recorded, ours = {}, {}
    for name, one in golden_names().items():
        answer = json.loads(one["stdout"])
        addresses = [Cidr.parse(ip["address"]) for ip in answer["ips"]]
        recorded[name] = next(str(cidr.network) for cidr in addresses if cidr.version == version)
        ours[name] = str(first(Cidr.parse(pool), block_length, name))
    assert ours == recorded


# --- the walk --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pool", "block_length", "count"),
    [
        pytest.param("10.10.0.0/24", 26, 4, id="LIB-253"),
        pytest.param("fd80:24e2:f998:72d6::/120", 122, 4, id="LIB-254"),
        pytest.param("10.10.0.0/16", 20, 16, id="LIB-255"),
        pytest.param("fd80:24e2:f998:72d6::/114", 116, 4, id="LIB-256"),
        pytest.param("10.10.0.0/24", 32, 256, id="LIB-257"),
        pytest.param("fd80:24e2:f998:72d6::/120", 128, 256, id="LIB-258"),
        pytest.param("10.10.0.0/26", 26, 1, id="a pool of one block"),
        pytest.param("10.10.0.0/28", 26, 0, id="a pool smaller than a block has none"),
    ],
)
def test_the_walk_covers_the_pool_exactly_once(pool, block_length, count):
    found = [Cidr.parse(text) for text in order(pool, block_length, "testHost")]
    assert len(set(found)) == len(found) == count
    assert all(block in Cidr.parse(pool) and block == block.network for block in found)
    assert all(block.length == block_length for block in found)


@pytest.mark.parametrize(
    ("text", "block_length"),
    [
        ("aa::/96", 122),
        ("33:177:177::/112", 122),
        ("C001:C0AF::12/122", 126),
        ("5001:0000:0000:001a::/64", 122),
        ("10.20.0.1/24", 26),
        ("0.0.0.0/24", 26),
        ("::1:0:0:0/80", 122),
    ],
)
def test_c06_odd_pools_give_each_of_a_thousand_nodes_a_block_inside(text, block_length):
    """C06: leading zero bytes, host bits, upper case and long forms."""
    pool = Cidr.parse(text).network
    starts = {first(pool, block_length, f"node-{number}") for number in range(1000)}
    assert all(block in pool and block.length == block_length and block == block.network for block in starts)
    blocks = 1 << (block_length - pool.length)
    assert len(starts) > min(blocks, 900) // 2  # and they are scattered
    assert all(Cidr.parse(str(block)) == block for block in starts)


def test_c06_a_pool_is_the_same_however_it_is_written():
    """C06."""
    assert Cidr.parse("C001:C0AF::12/122").network == Cidr.parse("c001:c0af:0:0::/122")
    assert str(Cidr.parse("5001:0000:0000:001a::/64").network) == "5001:0:0:1a::/64"


@st.composite
def walks(draw):
    """A small pool, its blocks' size, a seed, and ranges and blocks to leave out."""
    version = draw(st.sampled_from([V4, V6]))
    longest = BITS[version]
    pool_length = draw(st.integers(longest - 8, longest))
    pool = Cidr(version, draw(st.integers(0, 2**20)) + (0xFD00 << 16), pool_length).network
    block_length = draw(st.integers(pool_length, longest))
    ranges = draw(
        st.lists(
            st.builds(
                lambda offset, length: Cidr(version, pool.first + offset, length).network,
                st.integers(0, 2**8),
                st.integers(longest - 8, longest),
            ),
            max_size=5,
        )
    )
    size = 1 << (longest - block_length)
    taken = draw(st.frozensets(st.integers(0, pool.size // size - 1).map(lambda index: pool.first + index * size)))
    return pool, block_length, draw(st.integers(0, 2**32 - 1)), tuple(ranges), taken


@given(walks())
@settings(max_examples=100, deadline=None)
def test_the_walk_meets_every_block_but_the_left_out_ones_in_order(drawn):
    pool, block_length, seed, ranges, taken = drawn
    size = 1 << (BITS[pool.version] - block_length)
    count = pool.size // size
    start = start_index(pool, block_length, seed)
    everything = [Cidr(pool.version, pool.first + (start + step) % count * size, block_length) for step in range(count)]
    expected = [one for one in everything if one.first not in taken and not covers(ranges, one)]
    assert list(walk(pool, block_length, seed, Skip(ranges, taken))) == expected


def test_a_huge_reserved_pool_is_passed_over_at_once():
    """2^58 blocks, all but the last reserved: nobody could look at them one by one."""
    pool = Cidr.parse("fd00:10:244::/64")
    reserved, low = [], pool.first
    for length in range(65, 123):
        reserved.append(Cidr(V6, low, length))
        low += reserved[-1].size
    found = list(walk(pool, 122, name_seed("node1"), Skip(tuple(reserved))))
    assert found == [Cidr(V6, low, 122)]
    assert found[0].end == pool.end


@pytest.mark.parametrize(
    ("reserved", "merged"),
    [
        pytest.param([], [], id="LIB-247"),
        pytest.param(["0.0.0.0/0", "10.0.0.0/8"], ["0.0.0.0/0"], id="LIB-248"),
        pytest.param(["::/0", "f0f0::/16"], ["::/0"], id="LIB-249"),
        pytest.param(
            ["10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25", "11.0.0.0/8"], ["10.0.0.0/24", "11.0.0.0/8"], id="LIB-250"
        ),
        pytest.param(
            ["10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25", "11.0.0.0/24"], ["10.0.0.0/24", "11.0.0.0/24"], id="LIB-251"
        ),
        pytest.param(
            ["11.0.0.0/25", "10.0.0.0/25", "11.0.0.0/8", "10.0.0.0/24", "10.0.0.0/25"],
            ["10.0.0.0/24", "11.0.0.0/8"],
            id="LIB-252",
        ),
    ],
)
def test_repeated_and_nested_ranges_are_passed_over_as_one(reserved, merged):
    skip = Skip(tuple(Cidr.parse(text) for text in reserved))
    for text in reserved:
        one = Cidr.parse(text)
        whole = next(Cidr.parse(outer) for outer in merged if one in Cidr.parse(outer))
        assert skip.past(one.first, one.size) == whole.end
    elsewhere = Cidr.parse("203.0.113.0/26")
    anywhere = any(Cidr.parse(text).length == 0 for text in reserved)
    assert (skip.past(elsewhere.first, elsewhere.size) is None) == (not anywhere)
