"""Which pools addresses come from, on every datastore (conformance 6.1; cases C01, C06).

Derive a class named `Test…` and give it the fixtures `clock` and `store`, as for contracts.ipam_library.
"""

from __future__ import annotations

import pytest

from contracts.ipam_assign import full
from contracts.ipam_library import LibraryContract
from domain.ipam.block import CONFIRMED
from domain.ipam.errors import IpamError, NoPool
from domain.ipam.pools import Pool, enabled_pools
from domain.resource import Metadata
from ports.datastore import IPPoolKey, IPPools
from worlds.ipam_library import SOON, address, cidr

FOO = 'foo == "bar"'
NOT_FOO = 'foo != "bar"'


class PoolsContract(LibraryContract):
    """Which pools addresses come from."""

    TEN, TWENTY, THIRTY, FORTY = "10.0.0.0/24", "20.0.0.0/24", "30.0.0.0/24", "40.0.0.0/24"

    @pytest.fixture
    def pools(self, library):
        """Two that are enabled, one that is not, one for IPv6; 40.0.0.0/24 is absent."""
        library.node("host-a")
        library.pool(self.TEN)
        library.pool(self.TWENTY)
        library.pool(self.THIRTY, disabled=True)
        library.pool("fe80::11/120")
        return library

    def test_addresses_come_from_the_pools_that_are_named_in_that_order(self, pools):
        """LIB-095, LIB-096, LIB-097."""
        both = {4: [self.TEN, self.TWENTY]}
        [one] = pools.assign("host-a", pools=both)
        assert one.startswith("10.0.0.")
        assert len(pools.assign("host-a", 300, pools=both)) == 300
        (family,) = pools.families("host-a", 300, pools=both)
        assert (len(family.allocations), family.messages) == (211, (full(self.TEN, self.TWENTY),))

    @pytest.mark.parametrize(
        ("v4", "v6", "asked", "text"),
        [
            pytest.param(1, 0, {4: [TEN, THIRTY]}, f"the given pool ({THIRTY}) does not exist", id="LIB-093"),
            pytest.param(
                0, 1, {6: ["fe80::11/120", TEN]}, "provided IPv6 IPPools list contains one or more IPv4", id="LIB-094"
            ),
            pytest.param(1, 0, {4: [TEN, FORTY]}, f"the given pool ({FORTY}) does not exist, or is not", id="LIB-098"),
        ],
    )
    def test_a_pool_that_cannot_serve_fails_the_whole_call(self, pools, v4, v6, asked, text):
        with pytest.raises(IpamError) as caught:
            pools.assign("host-a", v4, v6, pools=asked)
        assert str(caught.value).startswith(text)
        assert pools.meddled.writes == []

    def test_named_pools_are_alternated_between_and_never_left(self, pools):
        """LIB-083, LIB-084, LIB-085."""
        blocks = {}
        for text in (self.TEN, self.TWENTY, self.TEN, self.TWENTY):
            [ip] = pools.assign("host-a", pools={4: [text]})
            [block] = [block for block in pools.blocks() if address(ip) in cidr(block)]
            assert blocks.setdefault(text, block) == block
            assert cidr(block) in cidr(text)
        rest = pools.assign("host-a", 254, pools={4: [self.TWENTY]})
        assert len([ip for ip in rest if address(ip) in cidr(self.TWENTY)]) == 254
        assert pools.assign("host-a", pools={4: [self.TWENTY]}) == []

    def test_any_pool_will_do_if_none_is_named(self, library):
        """LIB-075, LIB-076."""
        library.node("test-host")
        library.pool(self.TEN)
        library.pool(self.TWENTY)
        assert [len(library.assign("test-host")) for _ in range(2)] == [1, 1]

    def test_after_a_pool_was_replaced_addresses_come_from_the_new_one(self, library):
        """LIB-034, LIB-035, LIB-036, LIB-037."""
        for node in ("host-a", "host-b"):
            library.node(node)
        library.pool(self.TEN)
        first, second = library.assign("host-a"), library.assign("host-a")
        [block] = library.blocks()
        assert all(address(ip) in cidr(block) for ip in first + second)
        library.delete_pools()
        library.pool(self.TWENTY)
        stored = [one.record for one in library.meddled.store.list(IPPools(), SOON)]
        assert [len(enabled_pools(stored, version)) for version in (4, 6)] == [1, 0]
        for node in ("host-b", "host-a"):
            assert library.assign(node)[0].startswith("20.0.0.")

    def test_only_pools_that_select_the_node_serve_it(self, library):
        """LIB-086."""
        library.node("host", foo="bar")
        library.pool(self.TEN, node_selector=FOO)
        library.pool(self.TWENTY, node_selector=NOT_FOO)
        (family,) = library.families("host", 300)
        assert (
            len([one for one in family.allocations if one.address in cidr(self.TEN)]) == len(family.allocations) == 256
        )

    def test_when_a_pool_turns_the_node_away_the_block_goes_with_its_last_handle(self, library):
        """LIB-088."""
        library.node("host", foo="bar")
        library.pool(self.TEN, node_selector=FOO)
        for number in (1, 2, 3):
            library.assign("host", handle=f"handle{number}")
        library.release_handle("handle1")
        library.pool(self.TEN, node_selector=NOT_FOO)
        library.release_handle("handle2")
        assert list(library.blocks().values()) == ["host:host"]
        library.release_handle("handle3")
        assert (library.blocks(), library.affinities()) == ({}, {})

    def test_a_node_that_is_selected_later_borrows_what_is_left(self, library):
        """LIB-089."""
        library.pool("10.0.0.0/30", 30, node_selector=FOO)
        library.node("host1", foo="bar")
        library.node("host2")
        library.assign("host1", handle="h1")
        library.node("host1")
        library.node("host2", foo="bar")
        with pytest.raises(IpamError, match=r"^no configured Calico pools for node host1$"):
            library.assign("host1")
        assert len(library.assign("host2", handle="h2")) == 1
        assert library.blocks() == {"10.0.0.0/30": "host:host1"}
        assert library.affinities() == {"10.0.0.0/30": ("host:host1", CONFIRMED)}

    def test_an_empty_block_of_a_pool_that_turned_the_node_away_is_given_up(self, library):
        """LIB-090."""
        library.node("host", foo="bar")
        library.pool(self.TEN, node_selector=FOO)
        library.assign("host")
        library.release_handle()
        library.pool(self.TEN, node_selector=NOT_FOO)
        library.pool(self.TWENTY, node_selector=FOO)
        assert all(ip.startswith("20.0.0.") for ip in library.assign("host", 3))
        [block] = library.blocks()
        assert block.startswith("20.0.0.")
        assert library.affinities() == {block: ("host:host", CONFIRMED)}

    @pytest.mark.parametrize(
        ("uses", "fields"),
        [
            pytest.param(("Workload",), {"use": "Tunnel"}, id="LIB-091"),
            pytest.param((), {"pools": {4: [TWENTY]}}, id="LIB-092"),
        ],
    )
    def test_an_empty_block_of_a_pool_that_only_this_call_does_not_use_is_kept(self, library, uses, fields):
        library.node("host", foo="bar")
        library.pool(self.TEN, node_selector=FOO, allowed_uses=uses)
        library.assign("host")
        library.release_handle()
        library.pool(self.TWENTY, node_selector=FOO)
        assert library.assign("host", **fields)[0].startswith("20.0.0.")
        assert list(library.blocks().values()) == ["host:host"] * 2
        assert len(library.affinities()) == 2

    @pytest.mark.parametrize("optional", [False, True])
    def test_c01_a_version_without_a_pool_may_be_left_out(self, library, optional):
        """C01: only if that was asked for."""
        library.node("host")
        library.pool("fd00::/120")
        library.pool(self.TEN, assignment_mode="Manual")
        fields = {"optional_families": optional}
        if optional:
            (six,) = library.families("host", 1, 1, **fields)
            assert (six.version, len(six.allocations)) == (6, 1)
            [line] = [line for line in library.log.shown("warning") if "Leaving an IP version out" in line]
            assert "version=4" in line
        else:
            with pytest.raises(IpamError, match=r"^no configured Calico pools for node host$") as caught:
                library.families("host", 1, 1, **fields)
            assert "has assignmentMode Manual" in caught.value.details
            assert "pool-10-0-0-0-24" in caught.value.details
        assert len(library.assign("host", 1, 1, pools={4: [self.TEN]}, **fields)) == 2

    @pytest.mark.parametrize(("v4", "v6"), [(1, 1), (1, 0), (0, 1)])
    def test_c01_a_call_that_no_pool_serves_at_all_fails(self, library, v4, v6):
        """C01."""
        library.node("host")
        with pytest.raises(NoPool, match=r"^cannot find a qualified ippool$"):
            library.families("host", v4, v6, optional_families=True)

    def test_c01_a_version_whose_pool_is_full_or_misnamed_is_not_left_out(self, library):
        """C01."""
        library.node("host")
        library.pool("10.0.0.0/32", 32)
        library.pool("fd00::/120")
        library.assign("host", handle="full")
        four, _ = library.families("host", 1, 1, optional_families=True)
        assert four.shortfall.endswith(full("10.0.0.0/32"))
        with pytest.raises(IpamError, match="does not exist, or is not enabled"):
            library.families("host", 1, 1, optional_families=True, pools={4: [self.FORTY]})

    @pytest.mark.parametrize(
        ("text", "block_size", "asked"),
        [
            ("aa::/96", 0, "aa::/96"),
            ("33:177:177::/112", 0, "33:177:177::/112"),
            ("C001:C0AF::12/122", 126, "c001:c0af::/122"),
            ("5001:0000:0000:001a::/64", 0, "5001:0:0:1a::/64"),
            ("10.20.0.1/24", 0, "10.20.0.0/24"),
        ],
    )
    def test_c06_odd_pools_serve_like_others(self, library, text, block_size, asked):
        """C06."""
        library.put(IPPoolKey("odd"), Pool(Metadata("odd"), text, block_size))
        version = cidr(text).version
        found = []
        for number in range(6):
            library.node(f"node-{number}")
            fields = {"handle": f"h{number}", "pools": {version: [asked]}}
            found += library.assign(f"node-{number}", int(version == 4), int(version == 6), **fields)
        assert len(set(found)) == 6
        assert all(address(ip) in cidr(text).network for ip in found)
        assert all(
            cidr(block) == cidr(block).network and cidr(block) in cidr(text).network for block in library.blocks()
        )

    @pytest.mark.parametrize(("text", "size", "low"), [("fd00::/48", 64, "116 to 128"), ("10.0.0.0/8", 16, "20 to 32")])
    def test_blocks_that_would_not_fit_in_a_record_are_refused_at_once(self, library, text, size, low):
        library.node("host")
        library.pool(text, size)
        version = cidr(text).version
        with pytest.raises(
            IpamError, match=rf"has blockSize {size}, which for IPv{version} must be from {low}$"
        ) as caught:
            library.assign("host", int(version == 4), int(version == 6))
        assert caught.value.code == 7
        with pytest.raises(IpamError, match=f"has blockSize {size}"):
            library.assign_ip(str(cidr(text).address), "host")
        assert library.meddled.writes == []

    def test_the_last_free_place_of_a_quarter_of_a_million_is_found(self, library):
        """All but the last block of 2^18 is reserved, or somebody's."""
        library.node("host")
        library.pool("10.0.0.0/8")
        last = cidr("10.255.248.0/21")
        library.reserve(*[str(cidr("10.0.0.0/8").at(low)) + f"/{length}" for low, length in halves(8, 21)])
        for number in range(31):
            library.claim(f"{last.at(64 * number)}/26", "other")
        assert library.assign("host") == ["10.255.255.192"]


def halves(length: int, least: int):
    """The first half of a range, then of its second half, and so on: (offset, prefix length)."""
    offset = 0
    while length < least:
        length += 1
        yield offset, length
        offset += 1 << (32 - length)
