"""Automatic assignment on every datastore: the table, and what it costs (conformance 6.1).

Derive a class named `Test…` and give it the fixtures `clock` and `store`, as for contracts.ipam_library.
"""

from __future__ import annotations

from collections import Counter

import pytest

from contracts.ipam_library import V6_POOL, LibraryContract
from domain.ipam.errors import BlockLimitReached, IpamError
from worlds.ipam_library import address, cidr

STRICT = "No more free affine blocks and strict affinity enabled"


def limit_text(limit: int) -> str:
    return f"Need to allocate an IPAM block but could not - limit of {limit} blocks reached for this node"


def full(*pools: str) -> str:
    return f"No IPs available in pools: [{' '.join(pools)}]"


class AutoAssignContract(LibraryContract):
    """The table of AutoAssign, and how much it looks at."""

    @pytest.mark.parametrize(
        ("v4", "v6", "sizes", "pools"),
        [
            pytest.param(1, 1, (32, 128), ("192.168.1.0/24", V6_POOL), id="LIB-116"),
            pytest.param(1, 1, (20, 116), ("192.168.0.0/16", "fd80:24e2:f998:72d6::/110"), id="LIB-117"),
            pytest.param(1, 1, (26, 122), ("192.168.1.0/24", V6_POOL), id="LIB-118"),
            pytest.param(256, 256, (26, 122), ("192.168.1.0/24", V6_POOL), id="LIB-119"),
            pytest.param(256, 256, (30, 126), ("192.168.1.0/24", V6_POOL), id="LIB-120"),
        ],
    )
    def test_each_version_gets_what_it_asks_for(self, library, v4, v6, sizes, pools):
        library.node("host")
        for text, size in zip(pools, sizes):
            library.pool(text, size)
        limit = 256 if v4 > 1 else 0
        four, six = library.families("host", v4, v6, pools={4: pools[:1]}, max_blocks=limit)
        assert [(one.version, one.requested, one.messages) for one in (four, six)] == [(4, v4, ()), (6, v6, ())]
        for family, pool, size, count in zip((four, six), pools, sizes, (v4, v6)):
            assert len({one.address for one in family.allocations}) == len(family.allocations) == count
            assert all(one.address in cidr(pool) and one.in_block.length == size for one in family.allocations)

    @pytest.mark.parametrize(
        ("v4", "v6", "limit", "got"),
        [
            pytest.param(256, 0, 1, 64, id="LIB-121"),
            pytest.param(256, 0, 2, 128, id="LIB-122"),
            pytest.param(0, 256, 1, 64, id="LIB-123"),
        ],
    )
    def test_the_block_limits_error_carries_what_was_assigned(self, library, v4, v6, limit, got):
        library.node("host")
        library.pool("192.168.1.0/24")
        library.pool(V6_POOL)
        with pytest.raises(
            BlockLimitReached, match=r"^cannot allocate new block due to per host block limit$"
        ) as caught:
            library.families("host", v4, v6, max_blocks=limit)
        assigned = caught.value.assigned
        assert (assigned.version, len(assigned.allocations)) == (4 if v4 else 6, got)
        assert (assigned.requested, assigned.messages) == (256, (limit_text(limit),))
        assert len(library.blocks()) == limit

    @pytest.mark.parametrize(
        ("v4", "v6", "pool"),
        [pytest.param(257, 0, "192.168.1.0/24", id="LIB-124"), pytest.param(0, 257, V6_POOL, id="LIB-125")],
    )
    def test_a_full_pool_gives_what_it_has(self, library, v4, v6, pool):
        library.node("host")
        library.pool("192.168.1.0/24")
        library.pool(V6_POOL)
        (family,) = library.families("host", v4, v6)
        assert (len(family.allocations), family.messages) == (256, (full(pool),))

    def test_what_the_own_block_lacks_is_borrowed(self, library):
        """LIB-126 to LIB-128: LIB-126, LIB-127, LIB-128."""
        library.pool("10.0.0.0/25")
        for node in ("host-a", "host-b"):
            library.node(node)
            assert len(library.assign(node, handle=node)) == 1
        found = library.assign("host-a", 64)
        assert len(set(found)) == 64
        [foreign] = [text for text, owner in library.blocks().items() if owner == "host:host-b"]
        assert len([one for one in found if address(one) in cidr(foreign)]) == 1

    def test_with_strict_affinity_other_pools_blocks_do_not_help(self, library):
        """LIB-129."""
        library.node("host")
        for text in ("192.168.1.0/26", "192.168.1.64/26"):
            library.pool(text)
        library.configure(strict_affinity=True)
        (family,) = library.families("host", 256, pools={4: ["192.168.1.0/26"]})
        assert (len(family.allocations), family.messages) == (64, (STRICT,))

    def test_no_block_is_claimed_where_that_is_switched_off(self, library):
        library.node("host")
        library.pool("10.0.0.0/24", 30)
        library.configure(strict_affinity=True, auto_allocate_blocks=False)
        with pytest.raises(IpamError, match=r"^failed to find or claim a block$") as caught:
            library.assign("host")
        assert "autoAllocateBlocks" in caught.value.details
        assert (library.blocks(), library.affinities()) == ({}, {})
        library.configure()
        library.assign("host")
        library.configure(strict_affinity=True, auto_allocate_blocks=False)
        assert len(library.assign("host", 3)) == 3
        with pytest.raises(IpamError, match=r"^failed to find or claim a block$"):
            library.assign("host")

    USES = {"192.168.2.0/24": ("Workload",), "192.168.3.0/24": ("Tunnel",)}

    @pytest.mark.parametrize(
        ("there", "asked", "use", "prefix"),
        [
            pytest.param(USES, ["192.168.3.0/24"], "Workload", None, id="LIB-111"),
            pytest.param(USES, ["192.168.2.0/24"], "Workload", "192.168.2.", id="LIB-112"),
            pytest.param(USES, [], "Workload", "192.168.2.", id="LIB-113"),
            pytest.param(["192.168.3.0/24"], [], "Workload", None, id="LIB-114"),
            pytest.param(USES, ["192.168.3.0/24"], "Tunnel", "192.168.3.", id="LIB-115"),
        ],
    )
    def test_a_pool_serves_the_uses_that_it_allows(self, library, there, asked, use, prefix):
        library.node("host")
        for text in there:
            library.pool(text, 32, allowed_uses=self.USES[text])
        pools = {4: asked}
        if prefix is None:
            with pytest.raises(IpamError, match=r"^cannot find a qualified ippool"):
                library.assign("host", pools=pools, use=use)
        else:
            [found] = library.assign("host", pools=pools, use=use)
            assert found.startswith(prefix)

    @pytest.fixture
    def many_pools(self, library):
        library.node("host-perf", foo="bar")
        for number in range(100):
            library.pool(f"10.{number}.0.0/16", 26)
            library.pool(f"11.{number}.0.0/16", 32)
        for number in range(50):
            library.pool(f"12.{number}.0.0/16", 20)
        return library

    @pytest.mark.parametrize(
        ("first", "pools", "size", "count"),
        [
            pytest.param(11, 100, 32, 1, id="LIB-001"),
            pytest.param(10, 100, 26, 1, id="LIB-002"),
            pytest.param(12, 50, 20, 1, id="LIB-003"),
            pytest.param(12, 50, 20, 64, id="LIB-004"),
        ],
    )
    def test_many_pools_cost_no_more_calls_than_one(self, many_pools, first, pools, size, count):
        many_pools.meddled.writes.clear()
        asked = [f"{first}.{number}.0.0/16" for number in range(pools)]
        (family,) = many_pools.families("host-perf", count, pools={4: asked})
        assert len({one.address for one in family.allocations}) == count
        assert {one.block.length for one in family.allocations} == {size}
        assert len(many_pools.meddled.writes) == 5  # affinity, block, affinity, handle, block

    NODES = 25  # the original has 1000; nothing depends on the number but the time

    def test_each_of_many_nodes_gets_an_address_and_another_one_from_the_same_block(self, library):
        """LIB-005, LIB-006."""
        for number in range(100):
            library.pool(f"10.{number}.0.0/16", 26)
        nodes = [f"node-{number}" for number in range(self.NODES)]
        for node in nodes:
            library.node(node)
        first = [library.assign(node, handle=node) for node in nodes]
        library.meddled.writes.clear()
        second = [library.assign(node, handle=f"{node}-again") for node in nodes]
        assert len({ip for [ip] in first + second}) == 2 * self.NODES
        assert Counter(library.blocks().values()) == {f"host:{node}": 1 for node in nodes}
        assert len(library.meddled.writes) == 2 * self.NODES  # handle and block

    def test_a_node_that_has_filled_many_blocks_reads_them_at_once(self, library):
        library.node("host")
        library.pool("10.0.0.0/24", 30)
        library.assign("host", 4 * 19)
        library.meddled.fetches = 0
        library.assign("host", handle="another")
        assert library.meddled.fetches == 4  # settings and affinities; the first block; the others; all, to claim one
        assert len(library.blocks()) == 20
