"""Claiming and giving up many blocks, with rivals and failures (spec: ipam 13)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, VIRTUAL, Affinity, Handle, Owner
from domain.ipam.errors import IpamError, StillContended
from ports.datastore import Affinities, AffinityKey, BlockKey, HandleKey
from ports.errors import Conflict, Expired, Missing, Unavailable
from usecases.ipam.affinities import (
    claim_affinity,
    release_affinity,
    release_block_affinity,
    release_host_affinities,
    release_pool_affinities,
    remove_host,
)
from usecases.ipam.claim_block import give_up_block, release_claim
from usecases.ipam.work import MAX_TRIES
from worlds.one_node import NODE, OWNER

ONE, TWO, SIX = "10.244.0.0/26", "10.244.0.64/26", "fd00:10:244::/122"
OTHER, VIRTUAL_OWNER = Owner(HOST, "node2"), Owner(VIRTUAL, NODE)


def at(text: str) -> Cidr:
    return Cidr.parse(text)


# --- one block -------------------------------------------------------------------------------------------------------
def test_a_block_of_nobody_cannot_be_given_up(node):
    node.add_block(ONE, None)
    with pytest.raises(IpamError, match=r"^Hostname must be specified to release block affinity$"):
        release_block_affinity(node.work(), node.block(ONE), must_be_empty=False)


def test_a_block_that_changed_since_it_was_read_is_not_given_up(node):
    stored = node.add_block(ONE).record
    with pytest.raises(IpamError, match=r"^IPAM block updated since we last read it$"):
        give_up_block(node.work(), OWNER, at(ONE), must_be_empty=True, sequence=stored.sequence + 1)
    assert node.affinities() == {ONE: "confirmed"}


def test_what_leads_nowhere_or_is_led_to_by_nothing_is_missing(node):
    with pytest.raises(Missing, match="BlockAffinityKey"):
        give_up_block(node.work(), OWNER, at(ONE), must_be_empty=True)
    node.put(AffinityKey(OWNER, at(ONE)), Affinity("confirmed"))
    with pytest.raises(Missing, match="BlockKey"):
        give_up_block(node.work(), OWNER, at(ONE), must_be_empty=True)


def test_the_affinity_is_marked_before_a_block_is_detached(node):
    node.add_block(ONE, OWNER, ("h", 1))
    seen = []

    def watch(verb, key):
        if verb != "fetch":
            seen.append((verb, type(key), node.affinities().get(ONE)))

    node.datastore.before = watch
    give_up_block(node.work(), OWNER, at(ONE), must_be_empty=False)
    assert seen == [
        ("update", AffinityKey, "confirmed"),
        ("update", BlockKey, "pendingDeletion"),
        ("delete", AffinityKey, "pendingDeletion"),
    ]


def test_a_block_and_an_affinity_that_go_meanwhile_are_gone(node):
    node.add_block(ONE)
    with node.rival("delete", BlockKey, node.remove):
        give_up_block(node.work(), OWNER, at(ONE), must_be_empty=True)
    node.add_block(ONE)
    with node.rival("delete", AffinityKey, node.remove):
        give_up_block(node.work(), OWNER, at(ONE), must_be_empty=True)
    assert (node.blocks(), node.affinities()) == ([], {})


def test_a_block_in_which_somebody_allocates_is_not_detached_under_him(node):
    node.add_block(ONE, OWNER, ("h", 1))
    with node.rival("update", BlockKey, node.touch), pytest.raises(Conflict, match="BlockKey"):
        give_up_block(node.work(), OWNER, at(ONE), must_be_empty=False)
    assert node.block(ONE).affinity == f"host:{NODE}"


def test_giving_up_in_passing_hides_every_failure_but_the_end_of_time(node):
    """LIB-206."""
    node.add_block(ONE)
    node.fail("update", AffinityKey, Unavailable("away"))
    assert not release_claim(node.work(), OWNER, at(ONE))
    assert node.log.shown("warning") == ["Could not give up an empty block block=10.244.0.0/26 error=away"]
    node.fail("update", AffinityKey, Expired("the datastore"))
    with pytest.raises(Expired):
        release_claim(node.work(), OWNER, at(ONE))


# --- a range ---------------------------------------------------------------------------------------------------------
def test_a_claim_that_is_overtaken_is_made_again(node):
    def dropped(key):
        node.remove(key)

    with node.rival("update", AffinityKey, dropped):
        assert claim_affinity(node.work(), at(ONE), OWNER) == ((at(ONE),), ())
    assert node.affinities() == {ONE: "confirmed"}


def test_a_claim_that_is_always_overtaken_ends(node):
    with node.rival("update", AffinityKey, node.remove, times=MAX_TRIES), pytest.raises(StillContended):
        claim_affinity(node.work(), at(ONE), OWNER)


def test_a_claim_with_an_impossible_block_size_is_refused(node):
    node.add_pool("huge", "fd01::/48", block_size=64)
    with pytest.raises(IpamError, match="blockSize 64"):
        claim_affinity(node.work(), at("fd01::/64"), OWNER)
    assert node.blocks() == []


def test_ipv6_blocks_are_claimed(node):
    claimed, failed = claim_affinity(node.work(), at("fd00:10:244::/121"), OWNER)
    assert ([str(one) for one in claimed], failed) == ([SIX, "fd00:10:244::40/122"], ())


def test_a_block_that_changes_while_it_is_given_up_is_tried_again(node):
    node.add_block(ONE)
    with node.rival("update", AffinityKey, node.touch, times=3):
        release_affinity(node.work(), at(ONE), OWNER, must_be_empty=True)
    assert (node.blocks(), node.affinities()) == ([], {})


def test_a_block_that_always_changes_is_left_in_the_end(node):
    node.add_block(ONE)
    with node.rival("update", AffinityKey, node.touch, times=MAX_TRIES), pytest.raises(StillContended):
        release_affinity(node.work(), at(ONE), OWNER, must_be_empty=True)
    assert node.blocks() == [ONE]


def test_a_lead_to_somebody_elses_block_is_dropped_and_the_block_kept(node):
    node.add_block(ONE, OTHER)
    node.put(AffinityKey(OWNER, at(ONE)), Affinity("confirmed"))
    release_affinity(node.work(), at(ONE), OWNER, must_be_empty=True)
    assert (node.affinities(), node.affinities(OTHER)) == ({}, {ONE: "confirmed"})
    assert node.blocks() == [ONE]


def test_a_lead_to_no_block_is_kept_by_a_release_of_a_range(node):
    """Its owner may be about to make the block."""
    node.put(AffinityKey(OWNER, at(ONE)), Affinity("pending"))
    release_affinity(node.work(), at(ONE), OWNER, must_be_empty=False)
    assert node.affinities() == {ONE: "pending"}


# --- a host ----------------------------------------------------------------------------------------------------------
def test_both_ip_versions_of_a_host_go_and_its_virtual_namesake_stays(node):
    for text in (ONE, SIX):
        node.add_block(text)
    node.add_block(TWO, VIRTUAL_OWNER)
    release_host_affinities(node.work(), OWNER, must_be_empty=True)
    assert node.blocks() == [TWO]
    assert node.affinities(VIRTUAL_OWNER) == {TWO: "confirmed"}


def test_a_failure_with_one_block_does_not_keep_the_others(node):
    for text in (ONE, TWO):
        node.add_block(text)

    def fail(verb, key):
        if (verb, key) == ("delete", BlockKey(at(ONE))):
            raise Unavailable("away")

    node.datastore.before = fail
    with pytest.raises(Unavailable, match="away"):
        release_host_affinities(node.work(), OWNER, must_be_empty=False)
    assert node.blocks() == [ONE]
    node.heal()
    remove_host(node.work(), NODE)
    assert (node.blocks(), node.affinities()) == ([], {})


def test_a_host_that_stays_keeps_leads_to_blocks_that_it_is_about_to_make(node):
    node.put(AffinityKey(OWNER, at(ONE)), Affinity("pending"))
    release_host_affinities(node.work(), OWNER, must_be_empty=True)
    assert node.affinities() == {ONE: "pending"}


# --- a pool ----------------------------------------------------------------------------------------------------------
def test_all_owners_of_a_pool_lose_their_blocks(node):
    node.add_block(ONE)
    node.add_block(TWO, VIRTUAL_OWNER, ("h", 1))
    node.add_block("10.244.0.128/26", OTHER)
    node.add_block(SIX)
    node.put(HandleKey("h"), Handle({at(TWO): 1}))
    release_pool_affinities(node.work(), at("10.244.0.0/24"))
    assert node.blocks() == [TWO, SIX]
    assert node.block(TWO).affinity is None
    assert (node.affinities(), node.affinities(OTHER), node.affinities(VIRTUAL_OWNER)) == ({SIX: "confirmed"}, {}, {})


def test_leads_to_no_block_of_the_pool_go_unless_they_are_pending(node):
    for text, state in ((ONE, "pending"), (TWO, "pendingDeletion"), ("10.244.0.128/26", "confirmed")):
        node.put(AffinityKey(OWNER, at(text)), Affinity(state))
    release_pool_affinities(node.work(), at("10.244.0.0/24"))
    assert node.affinities() == {ONE: "pending"}


def test_a_pool_that_is_claimed_as_fast_as_it_is_given_up_is_left_in_the_end(node):
    node.add_block(ONE)

    claimed_again = node.rival("fetch", Affinities, lambda _key: node.add_block(ONE), times=2 * MAX_TRIES)
    with claimed_again, pytest.raises(StillContended):
        release_pool_affinities(node.work(), at("10.244.0.0/24"))
