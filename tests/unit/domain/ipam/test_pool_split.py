"""A pool is split into equal ones that cover it and leave no block in two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Cidr
from domain.ipam.pool_rules import BadPool, check_pool, check_pool_among
from domain.ipam.pool_split import MOST, children
from domain.ipam.pools import Pool
from domain.resource import Metadata


def pool(cidr="10.0.0.0/16", **more):
    return Pool(Metadata("p", uid="u", created="2026-01-01T00:00:00Z", labels={"a": "b"}), cidr, **more)


def test_children_are_as_the_pool_was_but_for_name_and_range():
    found = children(pool(block_size=28, nat_outgoing=True, node_selector="x", conditions=(("Ready", "True"),)), 4, ())
    assert [(one.metadata.name, one.cidr_text) for one in found] == [
        ("split-p-0", "10.0.0.0/18"),
        ("split-p-1", "10.0.64.0/18"),
        ("split-p-2", "10.0.128.0/18"),
        ("split-p-3", "10.0.192.0/18"),
    ]
    wanted = pool(block_size=28, nat_outgoing=True, node_selector="x")
    for one in found:
        assert one.metadata == Metadata(one.metadata.name, labels={"a": "b"})
        assert one.replace(metadata=wanted.metadata, cidr_text=wanted.cidr_text) == wanted


@given(st.integers(8, 20), st.integers(1, 8), st.lists(st.integers(0, 2**12), max_size=5))
def test_every_address_and_block_lies_in_one_child(length, power, places):
    cidr = Cidr.parse_lenient(f"10.0.0.0/{length}").network
    blocks = [Cidr(4, cidr.first + (place * 64) % cidr.size, 26) for place in places]
    if length + power > 26:
        with pytest.raises(BadPool, match="are too many"):
            children(pool(str(cidr)), 1 << power, blocks)
        return
    found = children(pool(str(cidr)), 1 << power, blocks)
    assert sum(one.cidr.size for one in found) == cidr.size
    assert [one.cidr.first for one in found] == sorted(one.cidr.first for one in found)
    for number, one in enumerate(found):
        assert one.cidr in cidr
        check_pool(one)
        check_pool_among(one, found[max(0, number - 1) : number])  # in order, so no other can overlap
    for block in blocks:
        assert sum(block in one.cidr for one in found) == 1


@pytest.mark.parametrize(
    ("given_pool", "number", "blocks", "why"),
    [
        (pool("nonsense"), 2, (), "its range 'nonsense' is no CIDR"),
        (pool(), 3, (), "cannot be split into 3; give a power of two from 2 to 256"),
        (pool(), 1, (), "cannot be split into 1"),
        (pool(), 0, (), "cannot be split into 0"),
        (pool(), -2, (), "cannot be split into -2"),
        (pool(), 2 * MOST, (), "cannot be split into 512"),
        (pool("10.0.0.0/25"), 4, (), "10.0.0.0/25 has room for 2 blocks of /26; 4 pools are too many"),
        (pool("10.0.0.0/24"), 4, ("10.0.0.0/25",), "block 10.0.0.0/25 is larger than a pool of /26 would be"),
    ],
)
def test_a_split_that_cannot_be_is_refused_with_what_can(given_pool, number, blocks, why):
    with pytest.raises(BadPool, match=why):
        children(given_pool, number, [Cidr.parse(block) for block in blocks])


def test_blocks_of_other_pools_do_not_count():
    assert len(children(pool("10.0.0.0/24"), 4, [Cidr.parse("10.1.0.0/25")])) == 4
