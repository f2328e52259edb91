"""EnsureBlock, and the search for a block that it shares with AutoAssign, on every datastore (conformance 6.1).

Derive a class named `Test…` and give it the fixtures `clock` and `store`, as for contracts.ipam_library.
"""

from __future__ import annotations

import pytest

from contracts.ipam_library import V6_POOL, LibraryContract
from contracts.ipam_windows import BOTH
from domain.ipam.block import CONFIRMED, WINDOWS_HANDLE, Attribute, HostReservedAttr
from domain.ipam.errors import BlockLimitReached, IpamError
from usecases.ipam.allocation_terms import read_surroundings, terms_for
from usecases.ipam.block_supply import BlockSupply
from usecases.ipam.claim_block import claim_block
from worlds.ipam_library import cidr, host


class EnsureBlockContract(LibraryContract):
    """EnsureBlock, and the search for a block that it shares with AutoAssign."""

    TEN, TWENTY, THIRTY, FORTY, NINETY = (f"{first}.0.0.0/24" for first in (10, 20, 30, 40, 90))

    @pytest.fixture
    def pools(self, library):
        library.node("host")
        library.pool(self.TEN)
        library.pool(self.TWENTY)
        library.pool(self.THIRTY, disabled=True)
        library.pool(self.NINETY, 31)
        library.pool("fe80::11/120")
        return library

    @pytest.mark.parametrize(
        ("asked", "text"),
        [
            pytest.param([TEN, THIRTY], f"the given pool ({THIRTY}) does not exist, or is not enabled", id="LIB-099"),
            pytest.param(
                ["fe80::11/120"], "provided IPv4 IPPools list contains one or more IPv6 IPPools", id="LIB-100"
            ),
            pytest.param([NINETY, TEN], f"the given pool ({NINETY}) does not exist, or is not enabled", id="LIB-101"),
            pytest.param([TEN, FORTY], f"the given pool ({FORTY}) does not exist, or is not enabled", id="LIB-102"),
        ],
    )
    def test_pools_that_cannot_serve_are_refused(self, pools, asked, text):
        with pytest.raises(IpamError) as caught:
            pools.ensure("host", pools={4: asked}, host_reserved=BOTH)
        assert str(caught.value) == text
        assert pools.meddled.writes == []

    @pytest.mark.parametrize("asked", [pytest.param([], id="LIB-103"), pytest.param([TEN, TWENTY], id="LIB-104")])
    def test_a_block_is_claimed_once(self, pools, asked):
        """LIB-105."""
        [block] = pools.ensure("host", pools={4: asked}, host_reserved=BOTH)
        assert cidr(block) in cidr(self.TEN)
        assert pools.ensure("host", pools={4: asked}, host_reserved=BOTH) == [block]
        assert pools.affinities() == {block: ("host:host", CONFIRMED)}
        assert pools.counts() == {}

    def test_each_version_has_its_own_block(self, pools):
        """LIB-106."""
        asked = {4: [self.TEN], 6: ["fe80::11/120"]}
        four, six = pools.ensure("host", 1, 1, pools=asked, host_reserved=BOTH)
        assert cidr(four) in cidr(self.TEN)
        assert cidr(six) in cidr("fe80::11/120").network
        assert pools.block(six).attributes == (Attribute(WINDOWS_HANDLE, {"note": "windows host rsvd"}),)

    def test_a_version_that_no_pool_serves_costs_the_other_one_no_block(self, pools):
        with pytest.raises(IpamError, match="does not exist, or is not enabled"):
            pools.ensure("host", 1, 1, pools={6: [V6_POOL]})
        assert pools.meddled.writes == []

    def test_the_number_of_blocks_is_not_limited_and_a_full_block_will_do(self, pools):
        pools.configure(strict_affinity=True, max_blocks_per_host=1)
        [first] = pools.ensure("host", pools={4: [self.TEN]})
        pools.assign("host", 64)
        assert pools.ensure("host", pools={4: [self.TEN]}) == [first]
        [second] = pools.ensure("host", pools={4: [self.TWENTY]})
        assert cidr(second) in cidr(self.TWENTY)

    def test_where_no_place_is_left_there_is_no_block(self, pools):
        pools.pool("10.9.0.0/26")
        pools.node("other")
        pools.assign("other", pools={4: ["10.9.0.0/26"]})
        assert pools.ensure("host", pools={4: ["10.9.0.0/26"]}) == []

    # --- findOrClaimBlock ------------------------------------------------------------------------------------------

    @pytest.fixture
    def two_blocks(self, library):
        """One usable address in each."""
        library.node("host")
        library.pool(self.TEN, 30)
        for text in ("10.0.0.0/30", "10.0.0.4/30"):
            claim_block(library.work, host("host"), cidr(text), HostReservedAttr(2, 1))
        return library

    def supply(self, library, **fields) -> BlockSupply:
        request = library.request("host", "h", 1, host_reserved={4: HostReservedAttr(2, 1)}, **fields)
        return BlockSupply(library.work, terms_for(4, read_surroundings(library.work, request)))

    def drawn(self, supply) -> tuple[str, int]:
        """The block, and how many the node owns by then."""
        return str(supply.next().record.cidr), supply.owned

    def test_a_block_that_is_reserved_is_passed_over(self, two_blocks):
        """LIB-107."""
        two_blocks.reserve("10.0.0.0/30")
        two_blocks.meddled.fetches = 0
        supply = self.supply(two_blocks)
        assert self.drawn(supply) == ("10.0.0.4/30", 2)
        assert two_blocks.meddled.fetches == 2  # settings and affinities; the block
        text, owned = self.drawn(supply)
        assert (text not in ("10.0.0.0/30", "10.0.0.4/30"), owned) == (True, 3)

    def test_own_blocks_come_once_each_and_then_new_ones(self, two_blocks):
        """LIB-108."""
        supply = self.supply(two_blocks)
        assert [self.drawn(supply) for _ in range(2)] == [("10.0.0.0/30", 2), ("10.0.0.4/30", 2)]
        text, owned = self.drawn(supply)
        assert owned == 3
        assert two_blocks.block(text).unallocated == (2,)

    def test_full_blocks_are_passed_over_and_the_limit_holds(self, two_blocks):
        """LIB-109."""
        two_blocks.assign_ip("10.0.0.2", "host")
        assert self.drawn(self.supply(two_blocks)) == ("10.0.0.4/30", 2)
        two_blocks.assign_ip("10.0.0.6", "host")
        assert self.drawn(self.supply(two_blocks))[1] == 3
        two_blocks.assign("host", 1)
        supply = self.supply(two_blocks, max_blocks=3)
        with pytest.raises(BlockLimitReached):
            supply.next()

    def test_each_search_is_for_itself(self, two_blocks):
        """LIB-110."""
        one, other = self.supply(two_blocks), self.supply(two_blocks)
        assert [self.drawn(one)[0], self.drawn(one)[0], self.drawn(other)[0]] == [
            "10.0.0.0/30",
            "10.0.0.4/30",
            "10.0.0.0/30",
        ]
