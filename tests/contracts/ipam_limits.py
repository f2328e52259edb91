"""One address, limits of handles and hosts, borrowing, on every datastore (conformance 6.1; cases R03).

Derive a class named `Test…` and give it the fixtures `clock` and `store`, as for contracts.ipam_library; override
`race` as for contracts.ipam_races.
"""

from __future__ import annotations

import pytest

from contracts.ipam_library import V6_POOL, LibraryContract
from domain.ipam.block import CONFIRMED, PENDING, Affinity, Handle, new_block
from domain.ipam.errors import AddressTaken, BlockLimitReached, HandleFull, IpamError
from ports.datastore import AffinityKey, BlockKey, HandleKey
from ports.errors import Missing
from usecases.ipam.free_addresses import free_allocation, free_unfinished
from usecases.ipam.owners import addresses_of_handle
from worlds.ipam_library import address, cidr, host

NOT_IN_A_POOL = "The provided IP address is not in a configured pool\n"


class AssignIpContract(LibraryContract):
    """AssignIP."""

    @pytest.fixture
    def two_pools(self, library):
        library.node("test-host")
        library.pool("192.168.1.0/24")
        library.pool(V6_POOL)
        return library

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("192.168.1.0", id="LIB-130 LIB-133"),
            pytest.param("fd80:24e2:f998:72d6::", id="LIB-131"),
            pytest.param("192.168.1.255", id="the last one"),
        ],
    )
    def test_every_address_of_a_pool_can_be_had_once(self, two_pools, text):
        """LIB-134."""
        two_pools.assign_ip(text, "test-host")
        with pytest.raises(AddressTaken) as caught:
            two_pools.assign_ip(text, "test-host")
        assert str(caught.value) == f"resource already exists: {text} with error: Address already assigned in block"

    def test_an_address_outside_of_all_pools_cannot_be_had(self, two_pools):
        """LIB-132."""
        with pytest.raises(IpamError) as caught:
            two_pools.assign_ip("1.1.1.1", "test-host")
        assert str(caught.value) == NOT_IN_A_POOL
        assert caught.value.details

    def test_a_pool_serves_the_uses_that_it_allows(self, library):
        """LIB-018, LIB-019, LIB-020, LIB-021."""
        library.node("host-a")
        library.pool("10.0.0.0/24", allowed_uses=("Workload",))
        library.pool("20.0.0.0/24")
        with pytest.raises(IpamError, match="which is not allowed for use"):
            library.assign_ip("10.0.0.1", use="Tunnel")
        library.assign_ip("10.0.0.2", use="Workload")
        library.assign_ip("10.0.0.3", use="")
        library.assign_ip("20.0.0.1", use="Tunnel")
        assert library.holders("h") == ["10.0.0.2", "10.0.0.3", "20.0.0.1"]


class HandleLimitContract(LibraryContract):
    """MaxAllocToHandlePerIPVersion."""

    @pytest.fixture
    def race(self, library):
        return library.race

    @pytest.fixture
    def pools(self, library):
        library.node("host-a")
        library.pool("10.0.0.0/24", 30)
        library.pool(V6_POOL, 126)
        return library

    def test_a_full_handle_is_answered_with_what_it_holds(self, pools):
        """LIB-039."""
        first = pools.families("host-a", 1, 1, max_per_handle=1)
        again = pools.families("host-a", 1, 1, max_per_handle=1)
        assert [one.address for family in again for one in family.allocations] == [
            one.address for family in first for one in family.allocations
        ]
        assert [str(family.allocations[0].answer).partition("/")[2] for family in first] == ["30", "126"]
        assert [str(family.allocations[0].answer).partition("/")[2] for family in again] == ["32", "128"]
        assert len(addresses_of_handle(pools.work, "h")) == 2
        pools.release_handle()
        with pytest.raises(Missing):
            addresses_of_handle(pools.work, "h")

    def test_one_particular_address_counts_too(self, pools):
        """LIB-040."""
        for _ in range(2):
            pools.assign_ip("10.0.0.1", max_per_handle=1)
        assert pools.holders("h") == ["10.0.0.1"]
        with pytest.raises(IpamError, match=r"already has IP\(s\) allocated"):
            pools.assign_ip("10.0.0.2", max_per_handle=1)
        assert pools.counts() == {"h": 1}

    def test_a_handle_gets_as_many_as_it_may(self, pools):
        """LIB-041."""
        found = [pools.assign("host-a", max_per_handle=2) for _ in range(3)]
        assert found[0] != found[1]
        assert found[2] in found[:2]
        assert sorted(pools.holders("h")) == sorted(found[0] + found[1])

    def test_a_handle_that_holds_too_little_is_refused_more_than_it_may(self, pools):
        pools.assign("host-a", max_per_handle=2)
        with pytest.raises(HandleFull) as caught:
            pools.assign("host-a", 2, max_per_handle=2)
        assert str(caught.value) == "handle h already has 1 allocation(s), cannot allocate more (maxAlloc=2)"
        assert pools.counts() == {"h": 1}

    def test_a_full_handle_costs_no_block_and_asks_for_none(self, pools):
        pools.configure(max_blocks_per_host=1, strict_affinity=True)
        [held] = pools.assign("host-a", max_per_handle=1)
        pools.assign("host-a", 3, handle="rest")
        assert pools.assign("host-a", max_per_handle=1) == [held]
        assert len(pools.blocks()) == 1

    @pytest.mark.parametrize("place", ["own block", "no block"])
    def test_a_count_that_no_block_knows_keeps_nobody_from_an_address(self, pools, place):
        """Crash windows L4, L7 and L11; the original tries a hundred times per block and gives up."""
        pools.assign("host-a", handle="other")
        [block] = pools.blocks()
        counted = cidr(block) if place == "own block" else cidr("10.0.0.252/30")
        pools.put(HandleKey("h"), Handle({counted: 1}))
        [found] = pools.assign("host-a", max_per_handle=1)
        assert pools.holders("h") == [found]
        assert pools.counts() == {"h": 1, "other": 1}

    def test_calls_for_one_handle_that_race_get_the_same_address(self, pools, race):
        bodies = [lambda work, n=n: pools.assign("host-a", work=work, max_per_handle=1) for n in range(4)]
        results = race(bodies)
        assert len({tuple(found) for found in results}) == 1
        assert pools.holders("h") == results[0]
        assert pools.counts() == {"h": 1}

    def test_calls_from_several_hosts_for_one_handle_get_the_same_address(self, pools, race):
        """Each host has a block of its own."""
        for node in ("host-b", "host-c"):
            pools.node(node)
        nodes = ("host-a", "host-b", "host-c")
        results = race([lambda work, node=node: pools.assign(node, work=work, max_per_handle=1) for node in nodes])
        assert len({tuple(found) for found in results}) == 1
        assert pools.holders("h") == results[0]
        assert pools.counts() == {"h": 1}

    def test_whoever_was_first_cannot_take_back_what_another_call_was_answered_too(self, pools):
        """The first call fails later, at another IP version, and undoes what it did."""
        request = pools.request("host-a", "h", 1, max_per_handle=1)
        (family,) = pools.families("host-a", max_per_handle=1, attributes=request.secondary)
        [held] = pools.assign("host-a", max_per_handle=1)
        free_allocation(pools.work, "h", family.allocations[0])
        free_unfinished(pools.work, request)
        assert pools.holders("h") == [held]
        assert pools.counts() == {"h": 1}

    def test_an_address_that_goes_while_it_is_answered_is_replaced(self, pools):
        pools.assign("host-a", max_per_handle=1)
        with pools.before("update", BlockKey, lambda _key: pools.release_handle()):
            (family,) = pools.families("host-a", max_per_handle=1)
        assert not family.allocations[0].held_before
        assert pools.holders("h") == [str(family.allocations[0].address)]

    def test_a_rival_that_fills_the_handle_at_the_last_moment_gives_the_answer(self, pools):
        with pools.before("create", HandleKey, lambda _key: pools.assign("host-a", max_per_handle=1)):
            (family,) = pools.families("host-a", max_per_handle=1)
        assert family.allocations[0].held_before
        assert pools.holders("h") == [str(family.allocations[0].address)]


class BorrowingContract(LibraryContract):
    """What nodes take from each other's blocks, and how many they may have of their own."""

    @pytest.fixture
    def race(self, library):
        return library.race

    @pytest.fixture
    def hosts(self, library):
        for node in ("host1", "host2"):
            library.node(node, foo="bar")
        return library

    def test_strict_affinity_decides_whether_a_block_is_shared(self, hosts):
        """LIB-071."""
        hosts.pool("10.0.0.0/28", 28)
        got = []
        for strict in (False, True, False):
            hosts.configure(strict_affinity=strict)
            got.append([len(hosts.assign(node)) for node in ("host1", "host2")])
        assert got == [[1, 1], [1, 0], [1, 1]]

    def test_borrowed_and_own_addresses_are_released_in_any_order(self, hosts):
        """LIB-072."""
        hosts.pool("10.0.0.0/28", 28)
        hosts.assign("host1", handle="owner")
        hosts.assign("host2", handle="borrower")
        assert hosts.release_handle("borrower")
        assert hosts.release_handle("owner")
        assert hosts.counts() == {}

    def test_a_host_has_no_more_blocks_than_the_settings_and_the_call_allow(self, hosts):
        """LIB-073."""
        hosts.pool("10.0.0.0/28", 30)
        hosts.configure(strict_affinity=True, max_blocks_per_host=2)
        for _ in range(8):
            assert len(hosts.assign("host1")) == 1
        self.require_limit(hosts, 2)
        assert len(hosts.assign("host2")) == 1
        self.require_limit(hosts, 2)
        self.require_limit(hosts, 2, max_blocks=3)
        hosts.configure(strict_affinity=True, max_blocks_per_host=3)
        self.require_limit(hosts, 2, max_blocks=2)
        assert len(hosts.assign("host1")) == 1

    def require_limit(self, library, limit, **fields):
        with pytest.raises(BlockLimitReached) as caught:
            library.assign("host1", **fields)
        assert caught.value.limit == limit
        assert caught.value.assigned.allocations == ()

    NAMES = ("long--hostna" * 21, "long-two")
    ALIKE = ("n" * 251 + "1", "n" * 251 + "2")

    @pytest.mark.parametrize("names", [NAMES, ALIKE], ids=["LIB-074", "alike but for the last letter"])
    def test_names_as_long_as_they_may_be_are_kept_apart(self, library, names):
        """LIB-074."""
        library.pool("10.0.0.0/24")
        library.pool(V6_POOL)
        for name in names:
            library.node(name)
            assert len(library.assign(name, 1, 1, handle=name[:60] + name[-1])) == 2
        for name in names:
            [(owner, state)] = library.affinities(name, 6).values()
            assert (owner, state) == (f"host:{name}", CONFIRMED)
        assert len(library.affinities("", 6)) == 2

    def test_r03_a_claim_that_another_node_won_is_dropped_and_another_block_claimed(self, hosts):
        """R03: the node claims a second block as its owner, and takes nothing from the first."""
        hosts.pool("10.20.0.0/24")
        lost = cidr("10.20.0.0/26")
        hosts.put(AffinityKey(host("host1"), lost), Affinity(PENDING))
        hosts.put(BlockKey(lost), new_block(lost, host("host2"), None, 1))
        [found] = hosts.assign("host1")
        assert address(found) not in lost
        [(block, claim)] = hosts.affinities("host1").items()
        assert claim == ("host:host1", CONFIRMED)
        assert hosts.blocks() == {"10.20.0.0/26": "host:host2", block: "host:host1"}

    def test_r03_nodes_that_race_for_few_blocks_agree_on_who_owns_which(self, library, race):
        """R03: many first calls on a pool of four blocks."""
        library.pool("10.20.0.0/24")
        nodes = [f"node-{number}" for number in range(2)]
        for node in nodes:
            library.node(node)
        calls = [(node, number) for number in range(25) for node in nodes]
        results = race(
            [lambda work, one=one: library.assign(one[0], handle=f"{one[0]}.{one[1]}", work=work) for one in calls]
        )
        assert len({ip for [ip] in results}) == len(calls)
        claims = library.affinities()
        assert claims == {block: (owner, CONFIRMED) for block, owner in library.blocks().items()}
        for (node, _), [ip] in zip(calls, results):
            [owner] = [owner for block, (owner, _) in claims.items() if address(ip) in cidr(block)]
            assert owner == f"host:{node}"
