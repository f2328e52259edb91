"""What the IPAM library does on every datastore: releasing, affinities, handles, settings (conformance 6.1, 6.5).

Derive a class named `Test…` and give it the fixtures `clock` (a MemoryClock) and `store` (an empty datastore on it).
"""

from __future__ import annotations

import pytest

from domain.ipam.block import CONFIRMED, Affinity, Attribute, new_block
from domain.ipam.errors import AddressTaken, InCooldown, IpamError, StaleRequest
from domain.ipam.pools import AllocationConfig
from domain.ipam.release import Release
from domain.moment import SECOND, rfc3339
from ports.datastore import AffinityKey, AllocationConfigKey, BlockKey
from ports.errors import Missing
from usecases.configure_ipam import get_config, set_config
from usecases.ipam.affinities import (
    claim_affinity,
    release_affinity,
    release_block_affinity,
    release_host_affinities,
    release_pool_affinities,
    remove_host,
)
from usecases.ipam.owners import addresses_of_handle, holder_of_address
from usecases.ipam.release_listed import free_cooled_down, release_listed
from worlds.ipam_library import Library, address, cidr, host

V6_POOL = "fd80:24e2:f998:72d6::/120"


class LibraryContract:
    @pytest.fixture
    def library(self, store, clock) -> Library:
        return Library(store, clock)


class ReleaseContract(LibraryContract):
    """ReleaseIPs."""

    @pytest.fixture
    def one_pool(self, library):
        library.pool("10.0.0.0/24", 30)
        library.node("host-a")
        return library

    @pytest.fixture
    def two_pools(self, library):
        library.pool("192.168.1.0/24")
        library.pool(V6_POOL)
        library.node("test-host")
        return library

    def test_an_assigned_address_is_released(self, one_pool):
        """LIB-007."""
        found = one_pool.assign("host-a")
        assert one_pool.release(*found) == ([], found, None)
        assert one_pool.counts() == {}

    def test_a_stale_release_is_refused_round_after_round(self, one_pool):
        """LIB-008."""
        handle, ip = "testnode-ipip-tunnel-address", "10.0.0.1"
        one_pool.assign_ip(ip, handle=handle, use="Tunnel")
        for _ in range(10):
            before = one_pool.sequence_of(ip)
            assert one_pool.release_handle(handle)
            one_pool.assign_ip(ip, handle=handle, use="Tunnel")
            assert one_pool.sequence_of(ip) == before + 2
            unallocated, released, error = one_pool.release(ip, handle=handle, sequence=before)
            assert (unallocated, released) == ([], [])
            assert isinstance(error, StaleRequest)
            assert str(error) == (
                f"update conflict: {ip} with error: the given sequence number ({before}) "
                f"does not match ({before + 2}) when attempting to release IP"
            )
            assert one_pool.release(ip, handle=handle, sequence=before + 2) == ([], [ip], None)
            one_pool.assign_ip(ip, handle=handle, use="Tunnel")
            assert one_pool.sequence_of(ip) == before + 4

    def test_a_released_address_is_the_last_to_be_given_out_again(self, library):
        """LIB-009."""
        library.pool("10.0.0.0/30", 30)
        library.node("wrap-node")
        found = []
        for _ in range(5):
            [ip] = library.assign("wrap-node")
            found.append(ip)
            library.release(ip)
        assert len(set(found[:4])) == 4
        assert found[4] == found[0]

    def test_blocks_of_deleted_pools_are_not_used(self, one_pool):
        """LIB-010."""
        one_pool.assign("host-a")
        one_pool.delete_pools()
        one_pool.pool("11.0.0.0/24")
        assert one_pool.assign("host-a")[0].startswith("11.0.0.")

    def test_a_stale_release_is_refused_after_the_block_was_made_anew(self, one_pool):
        """LIB-011."""
        ip = "10.0.0.1"
        one_pool.assign_ip(ip)
        before = one_pool.sequence_of(ip)
        release_host_affinities(one_pool.work, host("host-a"), must_be_empty=False)
        assert one_pool.release(ip) == ([], [ip], None)
        assert one_pool.blocks() == {}
        one_pool.assign_ip(ip)
        unallocated, released, error = one_pool.release(ip, sequence=before)
        assert (unallocated, released, type(error)) == ([], [], StaleRequest)
        assert one_pool.release(ip, sequence=one_pool.sequence_of(ip)) == ([], [ip], None)

    def test_many_addresses_of_many_blocks_and_handles_are_released_at_once(self, library):
        """LIB-012, with one write per block and the handles read in one go."""
        library.pool("10.0.0.0/24", 30, node_selector="name in {'node1', 'node2'}")
        library.pool("11.0.0.0/24", 30, node_selector="name in {'node3', 'node4'}")
        library.pool("fe80:ba:ad:beef::/120")
        found = []
        for node in ("node1", "node2", "node3", "node4"):
            library.node(node, name=node)
            for number in range(6):
                found += library.assign(node, 1, 1, handle=f"{node}.{number}")
            found += library.assign(node, 13, handle=f"{node}.many")
        library.pool("11.0.0.0/24", 30, node_selector="name in {'node3', 'node4'}", disabled=True)
        library.meddled.writes.clear()
        assert len(found) == 100
        unallocated, released, error = library.release(*found)
        assert (unallocated, sorted(released), error) == ([], sorted(found), None)
        assert library.counts() == {}
        blocks = [key for verb, key in library.meddled.writes if isinstance(key, BlockKey) and verb == "update"]
        assert len(blocks) == len(set(blocks)) == len(library.blocks())

    def test_an_address_named_twice_is_freed_once(self, library):
        """LIB-030 to LIB-033."""
        library.pool("10.0.0.0/26")
        library.node("host-a")
        assert len(library.assign("host-a", 64)) == 64
        assert library.release("10.0.0.1", "10.0.0.1") == ([], ["10.0.0.1"], None)
        library.assign_ip("10.0.0.1", handle="again", attributes={})
        holder = holder_of_address(library.work, address("10.0.0.1"))
        assert (holder.secondary, holder.holder) == ({}, "again")
        assert library.assign("host-a") == []

    def test_when_a_pool_turns_the_node_away_the_block_goes_with_its_last_address(self, library):
        """LIB-087."""
        library.node("host-a", foo="bar")
        library.pool("10.0.0.0/24", node_selector='foo == "bar"')
        found = library.assign("host-a", 3)
        library.release(found[0])
        library.pool("10.0.0.0/24", node_selector='foo != "bar"')
        library.release(found[1])
        assert list(library.blocks().values()) == ["host:host-a"]
        library.release(found[2])
        assert (library.blocks(), library.affinities()) == ({}, {})

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            pytest.param({}, None, id="LIB-135"),
            pytest.param({"sequence": 0}, None, id="LIB-136"),
            pytest.param({"sequence": 1}, "the given sequence number (1) does not match (0)", id="LIB-137"),
            pytest.param({"handle": "fakehandle"}, "the given handle (fakehandle) does not match (h)", id="LIB-138"),
        ],
    )
    def test_a_release_says_which_allocation_it_means(self, library, options, why):
        library.pool("192.168.0.0/24")
        library.put(BlockKey(cidr("192.168.0.0/26")), new_block(cidr("192.168.0.0/26"), host("host-a"), None, 0))
        library.assign_ip("192.168.0.1")
        before = library.block("192.168.0.0/26")
        unallocated, released, error = library.release("192.168.0.1", **options)
        if why is None:
            assert (unallocated, released, error) == ([], ["192.168.0.1"], None)
        else:
            assert (unallocated, released) == ([], [])
            assert str(error) == f"update conflict: 192.168.0.1 with error: {why} when attempting to release IP"
            assert library.block("192.168.0.0/26") == before

    def test_an_address_in_no_pool_is_unallocated(self, two_pools):
        """LIB-139."""
        assert two_pools.release("1.1.1.1") == (["1.1.1.1"], [], None)

    def test_a_free_address_is_unallocated(self, two_pools):
        """LIB-140; LIB-144."""
        assert two_pools.release("192.168.1.0") == (["192.168.1.0"], [], None)
        two_pools.assign_ip("192.168.1.0", "test-host")
        two_pools.release("192.168.1.0")
        assert two_pools.release("192.168.1.1") == (["192.168.1.1"], [], None)
        assert two_pools.release("192.168.1.0") == (["192.168.1.0"], [], None)

    def test_a_particular_address_is_released(self, two_pools):
        """LIB-141; LIB-143."""
        two_pools.assign_ip("192.168.1.0", "test-host")
        assert two_pools.release("192.168.1.0") == ([], ["192.168.1.0"], None)

    def test_addresses_of_two_blocks_are_released(self, two_pools):
        """LIB-142."""
        found = two_pools.assign("test-host", 66)
        assert two_pools.release(*found[1:]) == ([], found[1:], None)
        assert two_pools.counts() == {"h": 1}

    def test_a_cooling_address_is_unallocated(self, one_pool):
        one_pool.configure(cooldown_seconds=30)
        one_pool.assign_ip("10.0.0.1")
        assert one_pool.release("10.0.0.1") == ([], ["10.0.0.1"], None)
        assert one_pool.counts() == {}
        assert one_pool.release("10.0.0.1") == (["10.0.0.1"], [], None)

    def test_addresses_of_deleted_pools_are_found_in_their_blocks(self, one_pool):
        found = one_pool.assign("host-a", 5)
        one_pool.delete_pools()
        assert one_pool.release(*found, "10.0.0.200") == (["10.0.0.200"], found, None)

    def test_a_stale_request_spares_its_block_and_no_other(self, one_pool):
        for last in (1, 2, 5):
            one_pool.assign_ip(f"10.0.0.{last}")
        listed = [Release(address("10.0.0.1"), "other"), Release(address("10.0.0.2")), Release(address("10.0.0.5"))]
        outcome = release_listed(one_pool.work, listed)
        assert outcome.released == (Release(address("10.0.0.5")),)
        assert isinstance(outcome.error, StaleRequest)
        assert one_pool.counts() == {"h": 2}


class AttributesContract(LibraryContract):
    """GetAssignmentAttributes and IPsByHandle."""

    @pytest.fixture
    def one_pool(self, library):
        library.pool("10.0.0.0/24")
        library.node("host-a")
        return library

    def test_an_address_without_a_pool_has_no_holder(self, library):
        """LIB-014."""
        with pytest.raises(Missing):
            holder_of_address(library.work, address("10.0.0.1"))

    def test_an_address_without_a_block_has_no_holder(self, one_pool):
        """LIB-015."""
        with pytest.raises(Missing):
            holder_of_address(one_pool.work, address("10.0.0.1"))

    def test_an_assigned_address_has_its_handle_and_attributes(self, one_pool):
        """LIB-016."""
        attributes = {"node": "host-a", "type": "vxlanTunnelAddress"}
        one_pool.assign_ip("10.0.0.1", handle="my-test-handle", attributes=attributes)
        assert holder_of_address(one_pool.work, address("10.0.0.1")) == Attribute("my-test-handle", attributes)

    def test_a_free_address_of_a_block_has_no_holder(self, one_pool):
        """LIB-017."""
        one_pool.assign_ip("10.0.0.2")
        with pytest.raises(Missing, match=r"^resource does not exist: 10\.0\.0\.1 with error: IP is unassigned$"):
            holder_of_address(one_pool.work, address("10.0.0.1"))

    def test_a_cooling_address_has_no_holder_any_more(self, one_pool):
        one_pool.configure(cooldown_seconds=30)
        one_pool.assign_ip("10.0.0.5")
        one_pool.release("10.0.0.5")
        with pytest.raises(InCooldown, match=r"^address 10\.0\.0\.5 is in cooldown$"):
            holder_of_address(one_pool.work, address("10.0.0.5"))

    def test_a_disabled_or_deleted_pool_hides_no_holder(self, one_pool):
        """Spec ipam 17.6: not copied."""
        one_pool.assign_ip("10.0.0.1")
        one_pool.pool("10.0.0.0/24", disabled=True)
        assert holder_of_address(one_pool.work, address("10.0.0.1")).holder == "h"
        one_pool.delete_pools()
        assert holder_of_address(one_pool.work, address("10.0.0.1")).holder == "h"

    def test_a_handle_lists_its_addresses_while_it_has_any(self, one_pool):
        """LIB-038."""
        with pytest.raises(Missing, match=r"^resource does not exist: IPAMHandleKey\(id=h\)$"):
            addresses_of_handle(one_pool.work, "h")
        found = one_pool.assign("host-a")
        assert [str(ip) for ip in addresses_of_handle(one_pool.work, "h")] == found
        one_pool.release_handle()
        with pytest.raises(Missing):
            addresses_of_handle(one_pool.work, "h")

    def test_a_handle_lists_addresses_of_all_its_blocks(self, one_pool):
        one_pool.pool(V6_POOL)
        found = one_pool.assign("host-a", 70, 1)
        one_pool.assign("host-a", 3, handle="other")
        assert sorted(str(ip) for ip in addresses_of_handle(one_pool.work, "h")) == sorted(found)


class AffinityContract(LibraryContract):
    """Claiming blocks and giving them up."""

    NODE = "host-affinity-fvs"

    @pytest.fixture
    def small_blocks(self, library):
        library.pool("10.0.0.0/24", 30)
        library.node(self.NODE)
        return library

    @pytest.fixture
    def large_blocks(self, library):
        library.pool("10.0.0.0/24")
        library.pool("192.168.1.0/24")
        return library

    def test_removing_an_unknown_host_is_fine(self, library):
        """LIB-013."""
        remove_host(library.work, "randomhost")

    @pytest.mark.parametrize("by_block", [pytest.param(False, id="LIB-025"), pytest.param(True, id="LIB-026")])
    def test_a_block_that_must_be_empty_is_kept_until_it_is(self, small_blocks, by_block):
        library = small_blocks
        library.assign(self.NODE)
        [block] = library.blocks()

        def release() -> None:
            if by_block:
                release_block_affinity(library.work, library.block(block), must_be_empty=True)
            else:
                release_affinity(library.work, cidr(block), host(self.NODE), must_be_empty=True)

        with pytest.raises(IpamError, match=rf"^block '{block}' is not empty$"):
            release()
        assert library.blocks() == {block: f"host:{self.NODE}"}
        assert library.affinities() == {block: (f"host:{self.NODE}", CONFIRMED)}
        library.release_handle()
        release()
        assert (library.blocks(), library.affinities()) == ({}, {})

    def test_a_pools_blocks_are_given_up_even_without_an_owner(self, library):
        """LIB-027. (A key without an affinity type is the host's: datastore.md C.2.)"""
        library.pool("10.0.0.0/16")
        block = cidr("10.0.0.0/24")
        library.put(BlockKey(block), new_block(block, "", None, 1).replace(affinity=None))
        library.put(AffinityKey(host("host-a"), block), Affinity(CONFIRMED))
        release_pool_affinities(library.work, cidr("10.0.0.0/16"))
        assert (library.blocks(), library.affinities()) == ({}, {})

    def test_a_pools_blocks_stay_with_those_who_hold_their_addresses(self, library):
        library.pool("10.0.0.0/24", 30)
        library.pool("10.1.0.0/24", 30)
        for node in ("node1", "node2"):
            library.node(node)
            library.assign(node, handle=node, pools={4: ["10.0.0.0/24"]})
        library.assign("node1", handle="elsewhere", pools={4: ["10.1.0.0/24"]})
        library.release_handle("node2")
        release_pool_affinities(library.work, cidr("10.0.0.0/24"))
        [elsewhere] = library.affinities()
        assert elsewhere.startswith("10.1.0.")
        assert sorted(library.blocks().values(), key=str) == [None, "host:node1"]
        library.release_handle("node1")
        assert list(library.blocks()) == [elsewhere]

    def test_empty_blocks_of_a_host_are_given_up_although_one_is_not_empty(self, small_blocks):
        """LIB-028."""
        small_blocks.assign(self.NODE, 12)
        small_blocks.release_handle()
        assert len(small_blocks.blocks()) == 3
        small_blocks.assign(self.NODE)
        with pytest.raises(IpamError, match="is not empty"):
            release_host_affinities(small_blocks.work, host(self.NODE), must_be_empty=True)
        assert len(small_blocks.blocks()) == len(small_blocks.affinities()) == 1

    def test_full_blocks_of_a_host_are_left_to_those_who_hold_their_addresses(self, small_blocks):
        """LIB-029."""
        small_blocks.assign(self.NODE, 12)
        small_blocks.delete_pools()
        release_host_affinities(small_blocks.work, host(self.NODE), must_be_empty=False)
        assert small_blocks.affinities() == {}
        assert list(small_blocks.blocks().values()) == [None] * 3
        small_blocks.release_handle()
        assert small_blocks.blocks() == {}

    def test_a_detached_block_has_no_claim_time(self, small_blocks):
        small_blocks.assign(self.NODE)
        [text] = small_blocks.blocks()
        before = small_blocks.block(text)
        release_host_affinities(small_blocks.work, host(self.NODE), must_be_empty=False)
        detached = before.replace(affinity=None, claimed_at=None, sequence=before.sequence + 1)
        assert small_blocks.block(text) == detached

    def test_removing_a_host_clears_what_leads_nowhere(self, small_blocks):
        """Crash windows L1 and L9: affinities whose block was never made, or is gone."""
        for number, state in enumerate(("pending", "confirmed", "pendingDeletion")):
            small_blocks.put(AffinityKey(host("gone"), cidr(f"10.0.0.{4 * number}/30")), Affinity(state))
        small_blocks.put(AffinityKey(host("other"), cidr("10.0.0.128/30")), Affinity("pending"))
        remove_host(small_blocks.work, "gone")
        assert small_blocks.affinities() == {"10.0.0.128/30": ("host:other", "pending")}

    def test_one_block_is_claimed(self, large_blocks):
        """LIB-145."""
        assert self.claim(large_blocks, "192.168.1.0/26", "host-a") == (["192.168.1.0/26"], [])
        assert large_blocks.affinities() == {"192.168.1.0/26": ("host:host-a", CONFIRMED)}

    def test_less_than_a_block_cannot_be_claimed_or_given_up(self, large_blocks):
        """LIB-146."""
        small = r"^The requested CIDR \(192\.168\.1\.0/27\) is smaller than the minimum\.$"
        with pytest.raises(IpamError, match=small):
            self.claim(large_blocks, "192.168.1.0/27", "host-a")
        with pytest.raises(IpamError, match=small):
            release_affinity(large_blocks.work, cidr("192.168.1.0/27"), host("host-a"), must_be_empty=False)

    def test_what_is_in_no_enabled_pool_cannot_be_claimed_or_given_up(self, large_blocks):
        large_blocks.pool("10.2.0.0/24", disabled=True)
        for text in ("10.1.0.0/24", "10.2.0.0/24", "10.0.0.0/16"):
            outside = rf"^The requested CIDR \({text}\) is not within any configured pools\.$"
            with pytest.raises(IpamError, match=outside):
                self.claim(large_blocks, text, "host-a")
            with pytest.raises(IpamError, match=outside):
                release_affinity(large_blocks.work, cidr(text), host("host-a"), must_be_empty=False)

    def test_blocks_of_others_are_not_claimed(self, large_blocks):
        """LIB-147."""
        large_blocks.assign_ip("10.0.0.1", "host-a")
        claimed, failed = self.claim(large_blocks, "10.0.0.0/24", "host-b")
        assert (len(claimed), failed) == (3, ["10.0.0.0/26"])
        assert large_blocks.blocks()["10.0.0.0/26"] == "host:host-a"
        assert large_blocks.affinities("host-b").keys() == set(claimed)

    def test_a_whole_pool_is_claimed_by_the_first_who_asks(self, large_blocks):
        """LIB-148; LIB-149."""
        every = [f"10.0.0.{number}/26" for number in (0, 64, 128, 192)]
        assert self.claim(large_blocks, "10.0.0.0/24", "host-a") == (every, [])
        assert self.claim(large_blocks, "10.0.0.0/24", "host-b") == ([], every)
        assert self.claim(large_blocks, "10.0.0.0/24", "host-a") == (every, [])
        assert large_blocks.affinities() == dict.fromkeys(every, ("host:host-a", CONFIRMED))

    def test_only_the_owners_blocks_of_a_range_are_given_up(self, large_blocks):
        self.claim(large_blocks, "10.0.0.0/25", "host-a")
        self.claim(large_blocks, "10.0.0.128/25", "host-b")
        self.claim(large_blocks, "192.168.1.0/26", "host-a")
        release_affinity(large_blocks.work, cidr("10.0.0.0/24"), host("host-a"), must_be_empty=True)
        left = {text: owner for text, (owner, _) in large_blocks.affinities().items()}
        assert left == {
            "10.0.0.128/26": "host:host-b",
            "10.0.0.192/26": "host:host-b",
            "192.168.1.0/26": "host:host-a",
        }
        assert large_blocks.blocks() == left

    def claim(self, library, text, node):
        claimed, failed = claim_affinity(library.work, cidr(text), host(node))
        return [str(one) for one in claimed], [str(one) for one in failed]


class SettingsContract(LibraryContract):
    """The IPAM config, and the cooldown it asks for."""

    def test_what_nobody_has_set_has_defaults_that_are_not_stored(self, library):
        """LIB-150; LIB-151."""
        config = get_config(library.work)
        assert (config.auto_allocate_blocks, config.strict_affinity) == (True, False)
        assert library.get(AllocationConfigKey()) is None

    def test_settings_are_read_back(self, library):
        """LIB-152."""
        wanted = AllocationConfig(strict_affinity=True, auto_allocate_blocks=False)
        assert set_config(library.work, wanted) == wanted
        assert get_config(library.work) == wanted
        again = AllocationConfig(strict_affinity=True, max_blocks_per_host=3, cooldown_seconds=60)
        assert set_config(library.work, again) == get_config(library.work) == again

    @pytest.fixture
    def cooling(self, library, clock):
        """One live address, and one released an hour ago."""
        library.pool("10.0.0.0/24", 30)
        library.node("host-a")
        library.assign_ip("10.0.0.0", handle="live")
        library.assign_ip("10.0.0.1", handle="gone")
        library.configure(cooldown_seconds=1000)
        library.release_handle("gone")
        clock.advance(3600)
        library.meddled.writes.clear()
        return library

    def test_what_has_cooled_down_is_freed_with_one_write(self, cooling):
        """LIB-242: over exactly the revision that was read."""
        cooling.configure(cooldown_seconds=30)
        before = cooling.block("10.0.0.0/30")
        assert free_cooled_down(cooling.work) == (cidr("10.0.0.0/30"),)
        assert cooling.meddled.writes == [("update", BlockKey(cidr("10.0.0.0/30")))]
        after = cooling.block("10.0.0.0/30")
        assert (after.allocations, after.unallocated) == ((0, None, None, None), (2, 3, 1))
        assert [one.handle for one in after.attributes] == ["live"]
        assert after.sequence == before.sequence + 1

    def test_what_is_still_cooling_is_left_alone(self, cooling):
        """LIB-243."""
        cooling.configure(cooldown_seconds=100_000)
        assert free_cooled_down(cooling.work) == ()
        assert cooling.meddled.writes == []

    def test_a_block_without_an_owner_goes_when_its_last_address_has_cooled_down(self, library):
        library.configure(cooldown_seconds=30)
        block = cidr("10.0.0.0/30")
        released = Attribute(None, {}, released_at=rfc3339(library.clock.now() - 3600 * SECOND))
        ownerless = new_block(block, "", None, 1).take((2,), released).replace(affinity=None)
        library.put(BlockKey(block), ownerless)
        assert free_cooled_down(library.work) == (block,)
        assert library.blocks() == {}

    def test_an_address_can_be_had_again_once_its_cooldown_was_collected(self, cooling):
        with pytest.raises(AddressTaken):
            cooling.assign_ip("10.0.0.0", handle="x")
        free_cooled_down(cooling.work)
        cooling.assign_ip("10.0.0.1", handle="x")
