"""Hosts that keep addresses of each block for themselves, on every datastore (conformance 6.1, 6.3, 6.6; case K04).

Derive a class named `Test…` and give it the fixtures `clock` and `store`, as for contracts.ipam_library.
"""

from __future__ import annotations

import pytest

from contracts.ipam_library import V6_POOL, LibraryContract
from domain.ipam.block import WINDOWS_HANDLE, Attribute, HostReservedAttr
from domain.ipam.errors import IpamError
from usecases.ipam.claim_block import claim_block
from worlds.ipam_library import address, cidr, host

RESERVED = HostReservedAttr(3, 1, note="windows host rsvd")
BOTH = {4: RESERVED, 6: RESERVED}
STRICT = "No more free affine blocks and strict affinity enabled"


class HostReservedAttrContract(LibraryContract):
    """Addresses that a host keeps for itself at both ends of each block."""

    def test_reserved_addresses_are_left_out(self, library):
        """LIB-022, LIB-023."""
        library.node("host")
        library.pool("10.0.0.0/26")
        assert len(library.assign("host", 64)) == 64
        library.release_handle()
        library.reserve("10.0.0.1/32", "10.0.0.32/30")
        library.reserve("11.0.0.0/30", "10.0.0.17/32", name="s")
        found = library.assign("host", 64)
        assert len(found) == 58
        assert not {"10.0.0.1", "10.0.0.17", "10.0.0.32", "10.0.0.35"}.intersection(found)

    def test_reservations_and_what_the_host_keeps_add_up(self, library):
        """LIB-024."""
        library.node("host")
        library.pool("10.0.0.0/26")
        library.reserve("10.0.0.1/32", "10.0.0.32/30")
        library.reserve("11.0.0.0/30", "10.0.0.17/32", name="s")
        assert library.ensure("host", host_reserved=BOTH) == ["10.0.0.0/26"]
        found = library.assign("host", 64, host_reserved=BOTH)
        assert len(found) == 64 - 4 - 5
        assert "10.0.0.18" in found

    def test_a_new_block_has_what_the_host_keeps(self, library):
        """LIB-209."""
        block = cidr("10.0.0.0/30")
        host_reserved = HostReservedAttr(2, 1, "test-handle", "ipam ut")
        claim_block(library.work, host("host"), block, host_reserved)
        stored = library.block("10.0.0.0/30")
        assert (stored.allocations, stored.unallocated) == ((0, 0, None, 0), (2,))
        assert stored.attributes == (Attribute("test-handle", {"note": "ipam ut"}),)
        assert stored.sequences == {}
        assert library.counts() == {}

    def test_the_rest_of_the_block_is_assigned(self, library):
        """LIB-210."""
        library.node("host")
        library.pool("10.0.0.0/30", 30)
        host_reserved = {4: HostReservedAttr(2, 1, "test-handle", "ipam ut")}
        (family,) = library.families("host", use="Tunnel", host_reserved=host_reserved)
        assert [str(one.in_block) for one in family.allocations] == ["10.0.0.2/30"]

    def test_a_lead_to_a_block_that_was_never_made_makes_it_likewise(self, library):
        """Crash window L1."""
        library.node("host")
        library.pool("10.0.0.0/24", 29)
        library.claim("10.0.0.8/29", "host")
        library.remove_block("10.0.0.8/29")
        assert library.assign("host", host_reserved=BOTH) == ["10.0.0.11"]
        assert library.block("10.0.0.8/29").allocations == (0, 0, 0, 1, None, None, None, 0)

    def test_a_block_of_which_nothing_is_left_ends_the_search(self, library):
        library.node("host")
        library.pool("10.0.0.0/24", 29)
        library.reserve(*[f"10.0.0.{8 * number + 3}/32" for number in range(32)])
        library.reserve(*[f"10.0.0.{8 * number + 4}/30" for number in range(32)], name="s")
        with pytest.raises(IpamError, match=r"has 0 free ips which is less than 1 ips required\.$"):
            library.assign("host", host_reserved=BOTH)
        assert len(library.blocks()) == 1

    @pytest.mark.parametrize(
        "host_reserved", [HostReservedAttr(0, 0), HostReservedAttr(-1, 4), HostReservedAttr(4, -1)]
    )
    def test_keeping_nothing_is_refused(self, library, host_reserved):
        library.node("host")
        library.pool("10.0.0.0/24")
        with pytest.raises(IpamError, match=r"^HostReservedAttr has wrong parameters$"):
            library.assign("host", host_reserved={4: host_reserved})

    def test_k04_other_nodes_borrow_around_what_a_windows_host_keeps(self, library, clock):
        """K04: the block counts as empty all the same."""
        library.node("node-a")
        library.node("win-1")
        library.pool("10.0.0.0/29", 29)
        library.ensure("win-1", host_reserved=BOTH)
        assert library.assign("node-a", 8) == ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]
        assert library.blocks() == {"10.0.0.0/29": "host:win-1"}
        library.release_handle()
        block = library.block("10.0.0.0/29")
        assert (block.is_empty(), block.allocations) == (True, (0, 0, 0, None, None, None, None, 0))
        assert library.release("10.0.0.0", "10.0.0.7") == (["10.0.0.0", "10.0.0.7"], [], None)
        assert library.block("10.0.0.0/29") == block
        clock.advance(61)
        library.assign("node-a")
        assert library.blocks() == {"10.0.0.0/29": "host:node-a"}  # an empty block is anybody's after a minute


class WindowsContract(LibraryContract):
    """AutoAssign on Windows nodes, where strict affinity is a must."""

    def windows(self, library, node: str, v4: int = 1, v6: int = 0, **fields):
        fields = {"host_reserved": BOTH, "on_windows": True, **fields}
        return library.families(node, v4, v6, **fields)

    @pytest.fixture
    def strict(self, library):
        library.node("win")
        library.configure(strict_affinity=True)
        return library

    @pytest.mark.parametrize("stored", [False, True])
    def test_without_strict_affinity_nothing_is_assigned(self, library, stored):
        """LIB-286."""
        library.node("win")
        library.pool("100.0.0.0/24")
        if stored:
            library.configure(strict_affinity=False)
        with pytest.raises(IpamError, match=r"^global strict affinity should not be false for Windows node$"):
            self.windows(library, "win")
        assert library.meddled.writes == []

    def test_what_the_host_keeps_is_never_given_out(self, strict):
        """LIB-287."""
        strict.pool("100.0.0.0/24")
        (family,) = self.windows(strict, "win", 256)
        last = {one.address.number & 255 for one in family.allocations}
        assert len(last) == len(family.allocations) == 240
        assert not last.intersection({64 * block + offset for block in range(4) for offset in (0, 1, 2, 63)})

    def test_windows_and_linux_hosts_fill_their_own_blocks(self, strict):
        """LIB-288."""
        strict.pool("100.0.0.0/24")
        nodes = ["win-a", "win-b", "linux-a", "linux-b"]
        fields = [{"host_reserved": BOTH, "on_windows": True}] * 2 + [{"host_reserved": BOTH}, {}]
        for node, one in zip(nodes, fields):
            strict.node(node)
            assert len(strict.assign(node, **one)) == 1
        got = [len(strict.assign(node, 100, **one)) for node, one in zip(nodes, fields)]
        assert got == [59, 59, 59, 63]

    def test_any_pools_block_carries_the_windows_handle(self, strict):
        """LIB-289."""
        strict.pool("100.0.0.0/24")
        strict.pool("200.0.0.0/24")
        for _ in range(2):
            (family,) = self.windows(strict, "win")
            [one] = family.allocations
            assert one.address.number % 64 not in (0, 1, 2, 63)
            assert strict.block(str(one.block)).attributes[0].handle == WINDOWS_HANDLE
        assert len(strict.blocks()) == 1

    def test_named_pools_are_alternated_between_and_never_left(self, strict):
        """LIB-290."""
        pools = ("100.0.0.0/24", "200.0.0.0/24")
        blocks = {}
        for text in pools:
            strict.pool(text)
        for text in (*pools, *pools):
            (family,) = self.windows(strict, "win", pools={4: [text]})
            [one] = family.allocations
            assert one.address in cidr(text)
            assert blocks.setdefault(text, one.block) == one.block
        (rest,) = self.windows(strict, "win", 238, pools={4: [pools[1]]})
        assert (len(rest.allocations), rest.messages) == (238, ())
        (more,) = self.windows(strict, "win", pools={4: [pools[1]]})
        assert more.allocations == ()

    @pytest.mark.parametrize(
        ("v4", "v6", "got", "messages"),
        [
            pytest.param(256, 256, (240, 240), (STRICT,), id="LIB-291"),
            pytest.param(257, 0, (240,), (STRICT,), id="LIB-292"),
            pytest.param(0, 257, (240,), (STRICT,), id="LIB-293"),
            pytest.param(240, 0, (240,), (), id="LIB-296"),
        ],
    )
    def test_the_table_of_windows(self, strict, v4, v6, got, messages):
        strict.pool("192.168.1.0/24")
        strict.pool(V6_POOL)
        families = self.windows(strict, "win", v4, v6)
        assert tuple(len(family.allocations) for family in families) == got
        assert {family.messages for family in families} == {messages}
        assert {family.host_reserved for family in families} == {RESERVED}
        if messages:
            assert families[0].shortfall == (
                f"Assigned 240 out of {v4 or v6} requested IPv{4 if v4 else 6} addresses; {STRICT}; "
                "HostReservedAttr: windows-reserved-ipam-handle"
            )

    @pytest.mark.parametrize(("v4", "v6"), [pytest.param(1, 0, id="LIB-294"), pytest.param(0, 1, id="LIB-295")])
    def test_blocks_too_small_for_what_the_host_keeps_serve_nobody(self, strict, v4, v6):
        strict.pool("192.168.1.0/24")
        strict.pool(V6_POOL)
        with pytest.raises(IpamError, match=r"^cannot find a qualified ippool$"):
            self.windows(strict, "win", v4, v6, host_reserved=dict.fromkeys((4, 6), HostReservedAttr(32, 33)))

    def test_an_own_block_too_small_for_what_the_host_keeps_is_not_used(self, strict):
        """Left from before the pool had larger blocks."""
        strict.pool("192.168.1.0/24")
        claim_block(strict.work, host("win"), cidr("192.168.1.0/30"))
        (family,) = self.windows(strict, "win")
        assert address("192.168.1.0") not in family.allocations[0].block
