"""Garbage collection of IPAM: what it puts right, what it waits for, and what it leaves alone (L04, L11, F16)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Affinity, Attribute, Handle, Owner, new_block
from domain.ipam.errors import StaleRequest
from domain.ipam.inventory import PROBLEM, Finding
from domain.ipam.pools import AllocationConfig
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    HandleKey,
    Handles,
    WorkloadEndpointKey,
)
from ports.errors import Refused, Unavailable
from usecases.check_ipam import check_ipam
from usecases.collect_ipam import DONE, FAILED, KEPT, Look, Sweep, collect_ipam, collectable
from usecases.ipam.repair import repair
from worlds.one_node import NODE, OneNode

B0, B1 = Cidr.parse("10.244.0.0/26"), Cidr.parse("10.244.0.64/26")
ME, OTHER, GONE = Owner(HOST, NODE), Owner(HOST, "node2"), Owner(HOST, "gone-1")
NOW = Sweep(grace=0)
TUNNEL = ("ipip-tunnel-addr-gone-1", {"node": "gone-1", "type": "ipipTunnelAddress"})


@pytest.fixture
def node():
    made = OneNode()
    made.add_node("node2")
    return made


def sweep(node, how=NOW):
    return {(one.finding.kind, one.finding.subject): one.outcome for one in collect_ipam(node.work(), how)}


def findings(node):
    return check_ipam(node.work()).findings


def only(node):
    (finding,) = findings(node)
    return finding


def hold(node, cidr, owner=ME, *, affine=True, **held):
    block = new_block(cidr, owner or "", None, 100).replace(affinity=str(owner) if owner else None)
    for word, (handle, secondary) in held.items():
        block = block.take((int(word[1:]),), Attribute(handle, secondary))
    node.put(BlockKey(cidr), block)
    if owner and affine:
        node.put(AffinityKey(owner, cidr), Affinity("confirmed"))


def count(node, handle, **blocks):
    places = {"b0": B0, "b1": B1}
    node.put(HandleKey(handle), Handle({places[word]: number for word, number in blocks.items()}))


def mine(container="c1"):
    return (f"net1.{container}", {"node": NODE})


# --- the grace period -------------------------------------------------------------------------------------------------


def test_orphan_handles_older_than_the_grace_period_go_and_younger_ones_stay(node):
    """L04: 500 handles that no block knows, one made while the collection waits."""
    hold(node, B0, o0=mine())
    count(node, "net1.c1", b0=1)
    for number in range(500):
        node.put(HandleKey(f"net1.{number:064x}"), Handle({B0: 1}, deleted=number < 20))

    class Clock(type(node.clock)):
        def sleep(self, seconds):
            super().sleep(seconds)
            count(node, "net1.young", b0=1)

    node.clock.__class__ = Clock
    outcomes = collect_ipam(node.work(), Sweep(grace=120))
    assert [round(seconds) for seconds in node.clock.slept] == [120]
    assert [one.outcome for one in outcomes].count(DONE) == 500
    (kept,) = [one for one in outcomes if one.outcome == KEPT]
    assert (kept.finding.subject, kept.why) == ("net1.young", "not there, or not like this, 120 s ago")
    assert sorted(node.counts()) == ["net1.c1", "net1.young"]


def test_a_handle_that_somebody_uses_while_the_collection_waits_is_young(node):
    hold(node, B0)
    count(node, "net1.c1", b0=1)
    first = Look(node.clock.now(), frozenset([only(node).identity]))
    node.touch(HandleKey("net1.c1"))
    assert sweep(node, Sweep(grace=0, first=first)) == {("handle-orphan", "net1.c1"): KEPT}
    assert node.counts() == {"net1.c1": {str(B0): 1}}


def test_nothing_to_collect_is_nothing_to_wait_for(node):
    node.add("c1")
    assert collect_ipam(node.work(), Sweep()) == ()
    assert node.clock.slept == []


def test_an_earlier_look_counts_as_the_first(node):
    """F16: two reports are compared."""
    count(node, "net1.c1", b0=1)
    report = check_ipam(node.work())
    first = Look(report.inventory.now, frozenset(one.identity for one in report.findings))
    node.clock.advance(60)
    assert sweep(node, Sweep(grace=90, first=first)) == {("handle-orphan", "net1.c1"): DONE}
    assert [round(seconds) for seconds in node.clock.slept] == [30]


def test_only_the_kinds_asked_for_are_collected(node):
    count(node, "net1.c1", b0=1)
    node.put(AffinityKey(ME, B1), Affinity("pending"))
    how = Sweep(grace=0, kinds=frozenset(["affinity-without-block"]))
    assert [one.kind for one in collectable(findings(node), how)] == ["affinity-without-block"]
    assert sweep(node, how) == {("affinity-without-block", str(B1)): DONE}
    assert list(node.counts()) == ["net1.c1"]


# --- handles ----------------------------------------------------------------------------------------------------------


def test_a_count_that_is_too_high_by_some_is_corrected_only_with_patience(node):
    """L03: without the grace period a call at work may still count down itself."""
    hold(node, B0, o1=mine())
    count(node, "net1.c1", b0=3, b1=2)
    assert [one.kind for one in findings(node)][:2] == ["handle-counts-too-much"] * 2
    assert sweep(node) == {("handle-counts-too-much", "net1.c1"): DONE}
    assert node.counts() == {"net1.c1": {str(B0): 3}}
    assert sweep(node) == {("handle-counts-too-much", "net1.c1"): KEPT}
    assert sweep(node, Sweep()) == {("handle-counts-too-much", "net1.c1"): DONE}
    assert node.counts() == {"net1.c1": {str(B0): 1}}


def test_a_block_is_rewritten_before_a_count_on_it_is_struck_off(node):
    """A call that has counted up and is about to write the block must lose its race."""
    hold(node, B0)
    count(node, "net1.c1", b0=1)
    before = node.datastore.revision_of(BlockKey(B0))
    sweep(node)
    assert node.datastore.revision_of(BlockKey(B0)) != before
    assert node.block(str(B0)).sequence == 101


def test_a_call_that_writes_the_block_first_keeps_its_handle(node):
    hold(node, B0)
    count(node, "net1.c1", b0=1)

    def rival(_key):
        node.put(BlockKey(B0), node.get(BlockKey(B0)).take((0,), Attribute("net1.c1", {"node": NODE})))

    with node.rival("update", BlockKey, rival):
        assert sweep(node) == {("handle-orphan", "net1.c1"): KEPT}
    assert node.counts_match()


def test_a_call_that_counts_up_meanwhile_keeps_its_handle(node):
    hold(node, B0)
    count(node, "net1.c1", b0=1)
    with node.rival("delete", HandleKey, lambda _key: count(node, "net1.c1", b0=2)):
        assert sweep(node) == {("handle-orphan", "net1.c1"): KEPT}
    assert node.counts() == {"net1.c1": {str(B0): 2}}
    finding = only(node)
    node.touch(HandleKey("net1.c1"))
    assert not repair(node.work(), finding, patient=True)


def test_counts_that_are_too_low_or_missing_are_written_anew(node):
    hold(node, B0, o1=mine(), o2=mine())
    hold(node, B1, o1=mine(), o2=mine("c2"))
    count(node, "net1.c1", b0=1)
    found = sweep(node)
    assert found == {("handle-counts-too-little", "net1.c1"): DONE, ("handle-missing", "net1.c2"): DONE}
    assert node.counts() == {"net1.c1": {str(B0): 2, str(B1): 1}, "net1.c2": {str(B1): 1}}


def test_a_handle_that_is_freed_before_it_is_written_anew_is_not_written(node):
    hold(node, B0, o1=mine())
    finding = findings(node)[0]
    hold(node, B0)
    assert repair(node.work(), finding, patient=True)
    assert node.counts() == {}


# --- affinities and blocks --------------------------------------------------------------------------------------------


def test_affinities_that_lead_nowhere_are_deleted(node):
    node.put(AffinityKey(ME, B0), Affinity("confirmed"))
    hold(node, B1, OTHER)
    node.put(AffinityKey(ME, B1), Affinity("confirmed"))
    assert set(sweep(node).values()) == {DONE}
    assert node.affinities() == {}
    assert node.affinities(OTHER) == {str(B1): "confirmed"}


def test_an_affinity_whose_block_is_made_meanwhile_stays(node):
    node.put(AffinityKey(ME, B0), Affinity("pending"))
    finding = only(node)
    hold(node, B0, affine=False)
    assert not repair(node.work(), finding, patient=True)
    node.remove(BlockKey(B0))
    node.touch(AffinityKey(ME, B0))
    assert not repair(node.work(), finding, patient=True)
    assert node.affinities() == {str(B0): "pending"}


@pytest.mark.parametrize(
    ("state", "held", "left"),
    [("pending", {}, "confirmed"), ("pendingDeletion", {"o1": mine()}, "confirmed"), ("pendingDeletion", {}, None)],
)
def test_what_stopped_half_way_is_finished(node, state, held, left):
    hold(node, B0, **held)
    node.put(AffinityKey(ME, B0), Affinity(state))
    assert sweep(node)[("affinity-unfinished", str(B0))] == DONE
    assert node.affinities() == ({str(B0): left} if left else {})
    assert (node.block(str(B0)) is None) == (left is None)


def test_what_goes_on_again_is_left_to_itself(node):
    hold(node, B0)
    node.put(AffinityKey(ME, B0), Affinity("pending"))
    finding = only(node)
    node.touch(AffinityKey(ME, B0))
    assert not repair(node.work(), finding, patient=True)
    node.remove(BlockKey(B0))
    assert not repair(node.work(), finding, patient=True)
    node.remove(AffinityKey(ME, B0))
    assert not repair(node.work(), finding, patient=True)


def test_a_block_gets_the_affinity_that_leads_to_it(node):
    hold(node, B0, affine=False)
    finding = only(node)
    assert sweep(node) == {("block-without-affinity", str(B0)): DONE}
    assert node.affinities() == {str(B0): "confirmed"}
    hold(node, B0, OTHER, affine=False)
    assert not repair(node.work(), finding, patient=True)
    node.remove(BlockKey(B0))
    assert not repair(node.work(), finding, patient=True)


def test_an_empty_block_of_nobody_goes_and_one_in_use_stays(node):
    hold(node, B0, None)
    hold(node, B1, None, o1=mine())
    count(node, "net1.c1", b1=1)
    assert sweep(node) == {("block-empty-without-owner", str(B0)): DONE}
    assert node.blocks() == [str(B1)]
    finding = Finding("block-empty-without-owner", str(B1), "", "", block=B1)
    assert not repair(node.work(), finding, patient=True)
    assert not repair(node.work(), finding.replace(block=B0), patient=True)


def test_what_has_cooled_down_does_not_keep_a_block(node):
    node.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=30))
    hold(node, B0, None, o1=mine())
    stored = node.get(BlockKey(B0))
    node.put(BlockKey(B0), stored.release((1,), node.clock.now(), 30))
    assert sweep(node) == {}
    node.clock.advance(60)
    assert sweep(node) == {("block-empty-without-owner", str(B0)): DONE}
    assert node.blocks() == []


@pytest.mark.parametrize("affine", [True, False])
def test_empty_blocks_of_nodes_that_are_gone_go_with_their_affinity(node, affine):
    hold(node, B0, GONE, affine=affine)
    assert sweep(node) == {("block-empty-of-vanished-node", str(B0)): DONE}
    assert node.blocks() == []
    assert node.affinities(GONE) == {}


def test_a_block_that_changes_hands_meanwhile_stays(node):
    hold(node, B0, GONE)
    finding = only(node)
    with node.rival("delete", BlockKey, node.touch):
        assert not repair(node.work(), finding, patient=True)
    hold(node, B0, OTHER)
    assert not repair(node.work(), finding, patient=True)
    assert node.blocks() == [str(B0)]


def test_an_address_that_an_endpoint_has_is_not_freed(node):
    """It would be given out a second time."""
    hold(node, B0)
    used = Cidr.parse("10.244.0.7/32")
    endpoint = WorkloadEndpoint(Metadata("e", "default"), node=NODE, container_id="c7", ip_networks=(used,))
    node.put(WorkloadEndpointKey("default", "e"), endpoint)
    node.put(BlockKey(B0), node.get(BlockKey(B0)).replace(unallocated=(5, 6, *range(8, 64))))
    assert sweep(node) == {("block-lost-addresses", str(B0)): DONE}
    assert set(range(64)) - set(node.get(BlockKey(B0)).unallocated) == {7}
    assert [one.kind for one in findings(node)] == ["endpoint-address-not-allocated"]


def test_addresses_that_are_neither_free_nor_held_are_freed(node):
    hold(node, B0, o1=mine())
    count(node, "net1.c1", b0=1)
    node.put(BlockKey(B0), node.get(BlockKey(B0)).replace(unallocated=(5,)))
    finding = findings(node)[0]
    assert sweep(node) == {("block-lost-addresses", str(B0)): DONE}
    block = node.block(str(B0))
    assert block.is_consistent()
    assert (block.unallocated[0], block.sequence) == (5, 101)
    assert repair(node.work(), finding, patient=True)
    assert node.block(str(B0)) == block
    node.remove(BlockKey(B0))
    assert repair(node.work(), finding, patient=True)


# --- leaks ------------------------------------------------------------------------------------------------------------


def test_leaked_addresses_stay_unless_asked_for(node):
    hold(node, B0, o5=mine())
    count(node, "net1.c1", b0=1)
    assert sweep(node) == {}
    assert sweep(node, Sweep(leaked=True)) == {("address-without-endpoint", "10.244.0.5"): DONE}
    assert node.holders() == {}
    assert node.counts() == {}


def test_everything_of_nodes_that_are_gone_can_be_taken_back_at_once(node):
    """L11: each has a block that its tunnel's address keeps."""
    for number in range(4):
        place = Cidr(4, B0.first + 64 * number, 26)
        hold(node, place, Owner(HOST, f"gone-{number}"), o0=(f"ipip-tunnel-addr-gone-{number}", TUNNEL[1]))
        node.put(HandleKey(f"ipip-tunnel-addr-gone-{number}"), Handle({place: 1}))
    assert sweep(node) == {}
    assert set(sweep(node, Sweep(leaked=True)).values()) == {DONE}
    assert (node.blocks(), node.counts(), findings(node)) == ([], {}, ())


def test_an_address_that_is_given_out_again_meanwhile_is_not_taken(node):
    """By handle and sequence number: the new holder's allocation is another one."""
    hold(node, B0, o5=mine())
    count(node, "net1.c1", b0=1)
    finding = only(node)
    block = node.get(BlockKey(B0))
    for again in (mine(), mine("c2")):
        freed = block.replace(sequence=200).release((5,), 0, 0)
        node.put(BlockKey(B0), freed.take((5,), Attribute(*again)))
        first = Look(node.clock.now(), frozenset([finding.identity]))
        assert KEPT in sweep(node, Sweep(grace=0, leaked=True, first=first)).values()
        with pytest.raises(StaleRequest, match="does not match"):
            repair(node.work(), finding, patient=True)
        assert node.holders() == {"10.244.0.5": again[0]}


def test_an_address_that_is_given_out_again_between_look_and_repair_is_kept(node):
    hold(node, B0, o5=mine())
    count(node, "net1.c1", b0=1)

    def again(_need):
        block = node.get(BlockKey(B0)).replace(sequence=200).release((5,), 0, 0)
        node.put(BlockKey(B0), block.take((5,), Attribute(*mine())))

    with node.rival("fetch", BlockKey, again):
        outcomes = collect_ipam(node.work(), Sweep(grace=0, leaked=True))
    assert [one.outcome for one in outcomes] == [KEPT]
    assert "does not match" in outcomes[0].why
    assert node.holders() == {"10.244.0.5": "net1.c1"}


def test_an_address_that_is_released_meanwhile_needs_nothing(node):
    hold(node, B0, o5=mine())
    count(node, "net1.c1", b0=1)
    finding = only(node)
    hold(node, B0)
    node.put(BlockKey(B0), node.get(BlockKey(B0)).replace(sequences={5: 100}))
    assert not repair(node.work(), finding, patient=True)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_refusal_keeps_one_and_the_others_go_on(node):
    for number in range(3):
        node.put(HandleKey(f"net1.c{number}"), Handle({}))

    def hook(verb, key):
        if verb == "delete" and key == HandleKey("net1.c1"):
            raise Refused("read-only")

    node.datastore.before = hook
    outcomes = collect_ipam(node.work(), NOW)
    assert [(one.outcome, one.why) for one in outcomes] == [(DONE, ""), (FAILED, "read-only"), (DONE, "")]


def test_a_datastore_that_goes_away_ends_the_collection(node):
    node.put(HandleKey("net1.c1"), Handle({}))
    node.fail("delete", HandleKey)
    with pytest.raises(Unavailable):
        collect_ipam(node.work(), NOW)


def test_a_collection_after_which_a_check_is_clean_does_nothing_more(node):
    hold(node, B0, affine=False)
    hold(node, B1, GONE)
    count(node, "net1.c1", b0=3)
    sweep(node)
    assert not [one for one in findings(node) if one.level == PROBLEM]
    calls = dict(node.datastore.calls)
    assert sweep(node) == {}
    assert {verb: node.datastore.calls[verb] - calls[verb] for verb in ("create", "update", "delete")} == {
        "create": 0,
        "update": 0,
        "delete": 0,
    }
    assert node.datastore.list(Handles(), node.work().deadline) == ()
    assert len(node.datastore.list(Blocks(), node.work().deadline)) == 1
