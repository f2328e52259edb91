"""Claiming a block and giving it up; any write may be the last (spec: ipam 8.1–8.3, 13.1; LIB-200 to LIB-208)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, VIRTUAL, WINDOWS_HANDLE, Affinity, Owner
from ports.datastore import AffinityKey, BlockKey
from ports.errors import Unavailable
from usecases.ipam.claim_block import (
    BlockClaimConflict,
    block_behind,
    claim_block,
    confirm,
    create_block,
    drop_affinity,
    release_claim,
)
from worlds.one_node import NEVER, NODE, OWNER

TEXT = "10.244.0.64/26"
CIDR = Cidr.parse(TEXT)
KEY, BLOCK = AffinityKey(OWNER, CIDR), BlockKey(CIDR)
OTHER = Owner(HOST, "node2")


def affinity(node, state: str = "pending"):
    return node.put(KEY, Affinity(state))


def claim(node):
    return claim_block(node.work(), OWNER, CIDR)


def behind(node, state: str):
    return block_behind(node.work(), affinity(node, state), node.datastore.get(BLOCK, NEVER))


def is_ours(node) -> bool:
    return node.affinities() == {TEXT: "confirmed"} and node.block(TEXT).affinity == f"host:{NODE}"


@pytest.mark.parametrize("happened", [True, False])
def test_a_claim_that_is_taken_up_goes_on_if_only_the_answer_was_lost(node, happened):
    node.add_block(TEXT, state="")

    def lose(verb, key):
        if (verb, key) == ("update", BLOCK):
            raise Unavailable("connection reset by peer")

    setattr(node.datastore, "after" if happened else "before", lose)
    if happened:
        assert behind(node, "pendingDeletion").record == node.block(TEXT)
        assert is_ours(node)
    else:
        with pytest.raises(Unavailable):
            behind(node, "pendingDeletion")


# --- claiming --------------------------------------------------------------------------------------------------------
def test_a_claim_writes_the_affinity_then_the_block_then_confirms(node):
    seen = []
    node.datastore.before = lambda verb, key: seen.append((verb, type(key))) if verb != "fetch" else None
    stored = claim(node)
    assert seen == [("create", AffinityKey), ("create", BlockKey), ("update", AffinityKey)]
    assert is_ours(node)
    assert stored.record.sequence > 10**18  # the claim's time in nanoseconds
    assert stored.record.claimed_at == "2026-11-29T13:06:12Z"
    assert stored.record.unallocated == tuple(range(64))


@pytest.mark.parametrize("state", ["pending", "pendingDeletion", ""])
def test_a_claim_that_stopped_half_way_is_continued(node, state):
    affinity(node, state)
    claim(node)
    assert is_ours(node)


def test_an_affinity_that_is_confirmed_already_is_left_as_it_is(node):
    stored = affinity(node, "confirmed")
    claim(node)
    assert node.datastore.revision_of(KEY) == stored.revision


def test_a_block_of_our_own_that_appears_meanwhile_is_used(node):
    """Two processes of one node claim at once: LIB-200, LIB-201."""
    with node.rival("create", BlockKey, lambda _key: node.add_block(TEXT, state="")):
        stored = claim(node)
    assert stored.record == node.block(TEXT)
    assert is_ours(node)


def test_a_block_that_another_node_got_first_is_not_ours_and_our_affinity_goes(node):
    with node.rival("create", BlockKey, lambda _key: node.add_block(TEXT, OTHER)), pytest.raises(BlockClaimConflict):
        claim(node)
    assert node.affinities() == {}
    assert node.affinities(OTHER) == {TEXT: "confirmed"}


def test_an_affinity_that_cannot_be_deleted_stays_pending_and_is_logged(node):
    """LIB-204: it is cleaned up the next time it is met."""
    node.add_block(TEXT, OTHER)
    node.fail("delete", AffinityKey)
    with pytest.raises(BlockClaimConflict):
        claim(node)
    assert node.affinities() == {TEXT: "pending"}
    assert [line for line in node.log.shown("warning") if "Could not delete a stale block affinity" in line]
    node.heal()
    with pytest.raises(BlockClaimConflict):
        behind(node, "pending")
    assert node.affinities() == {}


def test_a_block_that_vanishes_while_it_is_looked_at_is_not_ours(node):
    """The rival creates it, and gives it up before we read it."""
    node.add_block(TEXT, OTHER)
    with node.rival("fetch", BlockKey, node.remove), pytest.raises(BlockClaimConflict):
        claim(node)


def test_an_affinity_that_vanishes_while_it_is_claimed_is_made_again(node):
    affinity(node)
    with node.rival("fetch", AffinityKey, node.remove):
        claim(node)
    assert is_ours(node)


# --- confirming ------------------------------------------------------------------------------------------------------
def test_confirming_what_another_process_has_confirmed_is_fine(node):
    stored = affinity(node)
    with node.rival("update", AffinityKey, lambda _key: affinity(node, "confirmed")):
        confirm(node.work(), stored)
    assert node.affinities() == {TEXT: "confirmed"}


@pytest.mark.parametrize("state", ["pendingDeletion", None])
def test_an_affinity_that_is_given_up_meanwhile_is_never_confirmed(node, state):
    """LIB-202."""

    def give_up(_key):
        node.remove(KEY)
        if state:
            affinity(node, state)

    stored = affinity(node)
    with node.rival("update", AffinityKey, give_up), pytest.raises(BlockClaimConflict):
        confirm(node.work(), stored)
    assert node.affinities() == ({TEXT: state} if state else {})


# --- from an affinity to its block -----------------------------------------------------------------------------------
@pytest.mark.parametrize("state", ["confirmed", ""])
def test_a_confirmed_affinity_leads_to_its_block_without_a_write(node, state):
    block = node.add_block(TEXT, state=state)
    assert behind(node, state) == block
    assert node.datastore.revision_of(BLOCK) == block.revision


@pytest.mark.parametrize("state", ["pending", "pendingDeletion"])
def test_any_other_affinity_is_confirmed_and_the_block_rewritten(node, state):
    """So that a releaser that has read the block loses its race (LIB-203)."""
    before = node.add_block(TEXT).record
    assert behind(node, state).record == before.replace(sequence=before.sequence + 1)
    assert is_ours(node)


@pytest.mark.parametrize("move", ["touch", "remove"])
def test_a_block_that_changes_while_it_is_reconfirmed_is_not_ours_yet(node, move):
    node.add_block(TEXT)
    with node.rival("update", BlockKey, getattr(node, move)), pytest.raises(BlockClaimConflict):
        behind(node, "pendingDeletion")
    assert node.affinities() == {TEXT: "pending"}


@pytest.mark.parametrize("state", ["pending", "confirmed", "pendingDeletion"])
def test_an_affinity_without_a_block_gets_one(node, state):
    behind(node, state)
    assert is_ours(node)


def test_an_affinity_without_a_block_that_vanishes_itself_is_not_ours(node):
    stored = affinity(node)
    node.remove(KEY)
    with pytest.raises(BlockClaimConflict):
        block_behind(node.work(), stored, None)
    assert node.block(TEXT) is None


@pytest.mark.parametrize("owner", [OTHER, Owner(VIRTUAL, NODE), None])
def test_an_affinity_that_leads_to_somebody_elses_block_is_deleted(node, owner):
    node.add_block(TEXT, owner)
    with pytest.raises(BlockClaimConflict):
        behind(node, "confirmed")
    assert node.affinities() == {}


def test_an_unreachable_datastore_is_not_a_lost_race(node):
    node.fail("create", BlockKey)
    with pytest.raises(Unavailable):
        create_block(node.work(), affinity(node))
    assert node.affinities() == {TEXT: "pending"}


# --- giving up -------------------------------------------------------------------------------------------------------
def release(node, owner: Owner = OWNER, **options) -> bool:
    return release_claim(node.work(), owner, CIDR, **options)


def test_giving_up_marks_the_affinity_then_deletes_the_block_then_the_affinity(node):
    node.add_block(TEXT, OWNER, (WINDOWS_HANDLE, 2))
    seen = []

    def watch(verb, key):
        if verb != "fetch":
            seen.append((verb, type(key), node.affinities()))

    node.datastore.before = watch
    assert release(node)
    assert seen == [
        ("update", AffinityKey, {TEXT: "confirmed"}),
        ("delete", BlockKey, {TEXT: "pendingDeletion"}),
        ("delete", AffinityKey, {TEXT: "pendingDeletion"}),
    ]
    assert (node.affinities(), node.block(TEXT)) == ({}, None)


def test_nothing_is_given_up_without_affinity_or_block(node):
    """LIB-208: the second release finds nothing."""
    assert not release(node)
    affinity(node)
    assert not release(node)
    assert node.affinities() == {TEXT: "pending"}
    node.remove(KEY)
    node.add_block(TEXT, OWNER, state="")
    assert not release(node)
    assert node.block(TEXT) is not None


def test_a_block_that_holds_an_address_is_kept(node):
    node.add_block(TEXT, OWNER, ("h", 1))
    assert not release(node)
    assert is_ours(node)


def test_a_block_of_somebody_else_is_kept_and_the_stale_affinity_deleted(node):
    node.add_block(TEXT, OTHER)
    affinity(node, "confirmed")
    assert not release(node)
    assert node.block(TEXT) is not None
    assert (node.affinities(), node.affinities(OTHER)) == ({}, {TEXT: "confirmed"})


def test_a_block_that_lost_its_affinity_can_be_given_up_by_whoever_leads_to_it(node):
    node.add_block(TEXT, None)
    affinity(node)
    assert release(node)
    assert node.block(TEXT) is None


def test_a_block_that_changed_since_it_was_read_is_kept(node):
    block = node.add_block(TEXT).record
    assert not release(node, sequence=block.sequence - 1)
    assert release(node, sequence=block.sequence)


@pytest.mark.parametrize(
    ("verb", "kind", "left"), [("update", AffinityKey, "pending"), ("delete", BlockKey, "pendingDeletion")]
)
def test_whoever_allocates_meanwhile_keeps_the_block(node, verb, kind, left):
    """LIB-207."""
    node.add_block(TEXT)

    def move(key):
        if kind is AffinityKey:
            affinity(node, "pending")
        else:
            node.touch(key)

    with node.rival(verb, kind, move):
        assert not release(node)
    assert node.block(TEXT) is not None
    assert node.affinities() == {TEXT: left}


def test_owners_of_different_kinds_do_not_meet(node):
    """LIB-208."""
    virtual, elsewhere = Owner(VIRTUAL, NODE), Cidr.parse("10.244.0.128/26")
    claim(node)
    claim_block(node.work(), virtual, elsewhere)
    assert node.affinities(virtual) == {"10.244.0.128/26": "confirmed"}
    assert is_ours(node)
    assert release(node)
    assert node.affinities(virtual) == {"10.244.0.128/26": "confirmed"}
    assert release_claim(node.work(), virtual, elsewhere)
    assert node.blocks() == []


def test_dropping_an_affinity_that_changed_leaves_it(node):
    stale = affinity(node)
    affinity(node, "confirmed")
    drop_affinity(node.work(), stale)
    assert node.affinities() == {TEXT: "confirmed"}
