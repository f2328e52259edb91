"""Who wins when several calls of the IPAM library want the same block, on every datastore (conformance 6.3).

Derive a class named `Test…` and give it the fixtures `clock` and `store`, as for contracts.ipam_library; override
`race` if the store has a better way to run calls at once than interleaving them on one connection.
"""

from __future__ import annotations

import pytest

from adapters.linux.clock import SystemClock
from adapters.memory.log import RecordingLog
from contracts.ipam_library import LibraryContract
from domain.ipam.block import CONFIRMED, PENDING, PENDING_DELETION, VIRTUAL, Affinity, Owner, new_block
from ports.datastore import AffinityKey, BlockKey, HandleKey
from ports.errors import Conflict, Expired, Missing, Refused, Unavailable
from usecases.ipam.affinities import claim_affinity, release_affinity
from usecases.ipam.claim_block import ClaimOvertaken, claim_block, give_up_block, release_claim
from usecases.ipam.work import Work
from worlds.ipam_library import address, cidr, host, in_threads

BLOCK = cidr("10.0.0.0/26")
A, B = host("host-a"), host("host-b")


class OnConnections:
    """Calls that race have a connection each: `connect`, a fixture, opens one for a clock."""

    @pytest.fixture
    def race(self, connect):
        clock = SystemClock()

        def in_its_own_connection(body):
            with connect(clock) as store:
                return body(Work(store, clock, RecordingLog(), clock.deadline(60)))

        return lambda bodies: in_threads([lambda body=body: in_its_own_connection(body) for body in bodies])


class RaceContract(LibraryContract):
    @pytest.fixture
    def race(self, library):
        """Runs `body(work)` for each of a list, all at once; gives their results."""
        return library.race

    @pytest.fixture
    def one_block(self, library):
        """A pool with room for one block, and two hosts that may have it."""
        library.pool("10.0.0.0/26")
        for node in ("host-a", "host-b"):
            library.node(node, foo="bar")
        return library

    def test_of_many_hosts_that_race_for_few_blocks_each_gets_an_address(self, library, race):
        """LIB-199."""
        library.pool("10.0.0.0/22")
        nodes = [f"host-{number}" for number in range(32)]
        for node in nodes:
            library.node(node)
        results = race([lambda work, node=node: library.assign(node, handle=node, work=work) for node in nodes])
        got = dict(zip(nodes, results))
        assert [len(found) for found in results] == [1] * 32
        assert len({found[0] for found in results}) == 32
        claims = library.affinities()
        assert len(claims) == 16
        assert claims == {block: (owner, CONFIRMED) for block, owner in library.blocks().items()}
        for block, (owner, _) in claims.items():
            assert address(got[Owner.parse(owner).name][0]) in cidr(block)

    def test_calls_that_race_on_one_host_claim_one_block(self, library, race):
        """LIB-200."""
        library.pool("10.0.0.0/25")
        library.node("host-a")
        results = race([lambda work, n=n: library.assign("host-a", handle=f"h{n}", work=work) for n in range(4)])
        assert [len(found) for found in results] == [1] * 4
        assert list(library.affinities().values()) == [("host:host-a", CONFIRMED)]

    def test_calls_that_race_to_claim_and_to_give_up_all_succeed(self, library, race):
        """LIB-201."""
        library.pool("10.0.0.0/22")
        whole = cidr("10.0.0.0/22")
        results = race([lambda work: claim_affinity(work, whole, A)] * 4)
        assert [(len(claimed), len(failed)) for claimed, failed in results] == [(16, 0)] * 4
        assert list(library.affinities().values()) == [("host:host-a", CONFIRMED)] * 16
        race([lambda work: release_affinity(work, whole, A, must_be_empty=True)] * 4)
        assert (library.affinities(), library.blocks()) == ({}, {})

    def test_a_claim_that_is_given_up_meanwhile_is_not_confirmed(self, one_block):
        """LIB-202."""

        def given_up(key) -> None:
            one_block.put(key, Affinity(PENDING_DELETION))
            one_block.remove(BlockKey(BLOCK))

        with (
            one_block.before("update", AffinityKey, given_up),
            pytest.raises(
                ClaimOvertaken, match=r"^update conflict: BlockAffinityKey\(cidr=10\.0\.0\.0/26, host=host-a"
            ),
        ):
            claim_block(one_block.work, A, BLOCK)
        assert one_block.affinities() == {"10.0.0.0/26": ("host:host-a", PENDING_DELETION)}

    def test_a_claim_that_somebody_works_on_meanwhile_is_not_given_up(self, one_block):
        """LIB-203."""
        claim_block(one_block.work, A, BLOCK)

        def claimed_again(key) -> None:
            one_block.put(key, Affinity(PENDING))
            one_block.put(BlockKey(BLOCK), new_block(BLOCK, A, None, 7))

        with one_block.before("delete", AffinityKey, claimed_again), pytest.raises(Conflict, match="BlockAffinityKey"):
            give_up_block(one_block.work, A, BLOCK, must_be_empty=True)
        assert one_block.affinities() == {"10.0.0.0/26": ("host:host-a", PENDING)}
        assert one_block.blocks() == {"10.0.0.0/26": "host:host-a"}

    def test_whoever_loses_the_block_borrows_from_the_winner(self, one_block):
        """LIB-204."""
        failing = [0]

        def meddle(verb, key) -> None:
            if verb == "create" and isinstance(key, BlockKey) and not one_block.blocks():
                claim_block(one_block.work, B, BLOCK)
            elif (verb, key) == ("delete", AffinityKey(A, BLOCK)) and not failing[0]:
                failing[0] += 1
                raise Unavailable("connection reset")

        one_block.meddled.before = meddle
        assert len(one_block.assign("host-a")) == 1
        one_block.meddled.before = None
        assert failing == [1]
        assert one_block.affinities("host-b") == {"10.0.0.0/26": ("host:host-b", CONFIRMED)}
        assert one_block.affinities("host-a") == {"10.0.0.0/26": ("host:host-a", PENDING)}
        assert len(one_block.assign("host-a")) == 1
        assert one_block.affinities("host-a") == {}

    def test_an_empty_block_is_taken_from_its_owner_after_a_minute(self, one_block, clock):
        """LIB-205."""
        one_block.configure(strict_affinity=True)
        assert len(one_block.assign("host-a", handle="a")) == 1
        assert one_block.assign("host-b", handle="b") == []
        one_block.release_handle("a")
        assert one_block.assign("host-b", handle="b") == []
        clock.advance(61)
        assert len(one_block.assign("host-b", handle="b")) == 1
        assert one_block.blocks() == {"10.0.0.0/26": "host:host-b"}
        assert one_block.affinities() == {"10.0.0.0/26": ("host:host-b", CONFIRMED)}

    @pytest.fixture
    def idle(self, one_block, clock):
        """host-a's block is empty and old."""
        one_block.configure(strict_affinity=True)
        claim_block(one_block.work, A, BLOCK)
        clock.advance(61)
        return one_block

    @pytest.mark.parametrize("error", [Refused("no"), Unavailable("away")])
    def test_a_block_that_cannot_be_taken_is_left(self, idle, error):
        """LIB-206."""
        with idle.before("delete", BlockKey, raiser(error)):
            assert idle.assign("host-b") == []
        assert idle.blocks() == {"10.0.0.0/26": "host:host-a"}
        assert idle.counts() == {}

    def test_a_call_whose_time_is_over_ends(self, idle):
        """LIB-206."""
        with idle.before("delete", BlockKey, raiser(Expired("the datastore"))), pytest.raises(Expired):
            idle.assign("host-b")
        assert idle.blocks() == {"10.0.0.0/26": "host:host-a"}
        assert idle.counts() == {}

    @pytest.mark.parametrize("verb", ["update", "delete"], ids=["before the mark", "after the mark"])
    def test_an_empty_block_in_which_somebody_allocates_meanwhile_is_kept(self, idle, verb):
        """LIB-207."""
        kind = AffinityKey if verb == "update" else BlockKey
        with idle.before(verb, kind, lambda _key: idle.assign("host-a")):
            assert release_claim(idle.work, A, BLOCK) is False
        assert idle.blocks() == {"10.0.0.0/26": "host:host-a"}
        assert len(idle.assign("host-a")) == 1
        assert idle.affinities() == {"10.0.0.0/26": ("host:host-a", CONFIRMED)}

    def test_a_block_in_which_somebody_allocates_while_it_is_given_up_stays_without_an_owner(self, idle):
        """LIB-207."""
        with idle.before("delete", BlockKey, lambda _key: idle.assign("host-a")):
            release_affinity(idle.work, BLOCK, A, must_be_empty=False)
        assert idle.blocks() == {"10.0.0.0/26": None}
        assert idle.affinities() == {}

    def test_a_host_and_a_virtual_owner_of_the_same_name_do_not_meet(self, library):
        """LIB-208."""
        library.pool("10.1.0.0/16")
        owned = {cidr("10.1.0.0/26"): Owner("host", "name"), cidr("10.1.1.0/26"): Owner(VIRTUAL, "name")}
        for _ in range(2):
            for block, owner in owned.items():
                claim_block(library.work, owner, block)
        assert library.affinities("name") == {str(block): (str(owner), CONFIRMED) for block, owner in owned.items()}
        for block, owner in owned.items():
            give_up_block(library.work, owner, block, must_be_empty=True)
        assert (library.affinities(), library.blocks()) == ({}, {})
        for block, owner in owned.items():
            with pytest.raises(Missing, match=r"^resource does not exist: BlockAffinityKey\("):
                give_up_block(library.work, owner, block, must_be_empty=True)

    def test_an_update_of_the_handle_meanwhile_loses_no_count(self, library):
        """A handle that grows while several of its addresses are released keeps what it has."""
        library.pool("10.0.0.0/24", 30)
        library.node("host-a")
        found = library.assign("host-a", 6)

        def more(_key) -> None:
            library.assign("host-a", 2)

        with library.before("update", HandleKey, more):
            assert library.release(*found) == ([], found, None)
        assert library.counts() == {"h": 2}


def raiser(error: Exception):
    def move(_key) -> None:
        raise error

    return move
