"""A block that is claimed has one affinity: those that others have left to its place end with the claim.

Nodes that vanish in the middle of a claim or a release leave them, in every state.
"""

from __future__ import annotations

import pytest

from adapters.records.codec import key_text
from domain.cni.request import CniArgs
from domain.ipam.address import Address, Cidr
from domain.ipam.block import CONFIRMED, HOST, PENDING, PENDING_DELETION, VIRTUAL, Affinity, Owner, new_block
from ports.datastore import Affinities, AffinityKey, BlockKey, NodeKey
from ports.errors import Unavailable
from usecases.ipam.claim_block import block_behind, claim_block
from worlds.one_node import NEVER, OWNER, OneNode

CIDR = Cidr.parse("10.244.0.128/26")  # the first place in the node's order
KEY = AffinityKey(OWNER, CIDR)
GONE, OTHER, LOAD_BALANCER = Owner(HOST, "gone"), Owner(HOST, "node2"), Owner(VIRTUAL, "load-balancer")
ONLY_OURS = {"host:node1": CONFIRMED}
STATES = [PENDING, PENDING_DELETION, CONFIRMED, ""]


@pytest.fixture
def node():
    node = OneNode()
    node.add_node(OTHER.name)
    return node


def leave(node, owner: Owner, state: str) -> None:
    node.put(AffinityKey(owner, CIDR), Affinity(state))


def leads(node) -> dict[str, str]:
    """All affinities to the block: owner → state."""
    listed = node.datastore.fetch(Affinities(Owner(HOST, "")), Affinities(Owner(VIRTUAL, "")), deadline=NEVER)
    return {str(one.key.owner): one.record.state for some in listed for one in some if one.key.cidr == CIDR}


@pytest.mark.parametrize("state", STATES)
def test_what_a_node_that_is_no_more_has_left_ends_when_the_range_is_claimed(node, state):
    leave(node, GONE, state)
    (taken,) = node.assign().ips
    assert taken.address.network == CIDR
    assert leads(node) == ONLY_OURS


@pytest.mark.parametrize("state", STATES)
def test_it_ends_when_an_address_of_the_range_is_asked_for(node, state):
    leave(node, GONE, state)
    node.assign(args=CniArgs(Address.parse("10.244.0.130")))
    assert leads(node) == ONLY_OURS


@pytest.mark.parametrize("state", [PENDING_DELETION, CONFIRMED, ""])
@pytest.mark.parametrize("owner", [OTHER, LOAD_BALANCER], ids=str)
def test_a_release_that_stopped_and_a_block_that_was_lost_are_no_claim(node, owner, state):
    """Whether their owner is still there does not matter: to claim the range it would have to write the affinity."""
    leave(node, owner, state)
    node.assign()
    assert leads(node) == ONLY_OURS


@pytest.mark.parametrize("owner", [OTHER, LOAD_BALANCER], ids=str)
def test_a_claim_that_may_be_under_way_is_left_to_whoever_makes_it(node, owner):
    """The block decides who wins; the other finds it and drops the affinity itself, as the original does."""
    leave(node, owner, PENDING)
    node.assign()
    assert leads(node) == {**ONLY_OURS, str(owner): PENDING}


def test_a_claim_of_a_node_whose_record_cannot_be_read_may_be_under_way(node):
    leave(node, OTHER, PENDING)
    node.datastore.load({key_text(NodeKey(OTHER.name)): "[]"})
    node.assign()
    assert leads(node) == {**ONLY_OURS, str(OTHER): PENDING}


def test_a_foreign_node_that_is_just_claiming_wins_if_its_block_is_there_first(node):
    leave(node, OTHER, PENDING)
    with node.rival("create", BlockKey, lambda key: node.put(key, new_block(CIDR, OTHER, None, 1))):
        (taken,) = node.assign().ips
    assert taken.address.network != CIDR
    assert leads(node) == {str(OTHER): PENDING}


def test_who_takes_up_the_affinity_meanwhile_keeps_it(node):
    leave(node, OTHER, PENDING_DELETION)
    with node.rival("delete", AffinityKey, lambda _key: leave(node, OTHER, PENDING)):
        node.assign()
    assert leads(node) == {**ONLY_OURS, str(OTHER): PENDING}


def test_somebody_else_may_be_faster_to_delete_it(node):
    leave(node, GONE, PENDING)
    with node.rival("delete", AffinityKey, node.remove):
        node.assign()
    assert leads(node) == ONLY_OURS
    assert node.log.shown("warning") == []


def test_what_cannot_be_deleted_does_not_hold_the_pod_up(node):
    def away(verb, key):
        if verb == "delete":
            raise Unavailable("connection reset")

    leave(node, GONE, PENDING)
    node.datastore.before = away
    node.assign()
    node.datastore.before = lambda _verb, _key: None
    assert leads(node) == {**ONLY_OURS, str(GONE): PENDING}
    assert "Could not delete a stale block affinity" in node.log.shown("warning")[0]


def test_a_claim_that_goes_on_from_our_own_affinity_ends_those_of_others(node):
    """Whether the block is still to be made or was made before the call died."""
    for block in (None, new_block(CIDR, OWNER, None, 1)):
        leave(node, GONE, PENDING)
        ours = node.put(KEY, Affinity(PENDING))
        block_behind(node.work(), ours, block and node.put(BlockKey(CIDR), block))
        assert leads(node) == ONLY_OURS
        node.remove(BlockKey(CIDR))


def test_the_range_may_be_claimed_without_a_look_at_its_place(node):
    """As an operator's repair does, or a Windows node."""
    leave(node, GONE, CONFIRMED)
    claim_block(node.work(), OWNER, CIDR)
    assert leads(node) == ONLY_OURS


def test_in_a_crowded_pool_that_is_listed_page_by_page_it_ends_as_well(node):
    node.add_pool("pool0", "10.244.0.0/24", block_size=26)
    for text in ("10.244.0.128/26", "10.244.0.192/26", "10.244.0.0/26"):
        node.add_block(text, OTHER, ("x", 64))
    node.datastore.lists_in_one_go = False
    last = Cidr.parse("10.244.0.64/26")
    node.put(AffinityKey(GONE, last), Affinity(PENDING))
    (taken,) = node.assign().ips
    assert taken.address.network == last
    assert [
        one.key.owner for one in node.datastore.list(Affinities(Owner(HOST, "")), NEVER) if one.key.cidr == last
    ] == [OWNER]


def test_where_affinities_are_listed_page_by_page_a_claim_does_not_list_those_to_all_blocks(node):
    """A cluster's affinities are as many as its blocks; `tortie ipam check` finds what is left, `gc` deletes it."""
    leave(node, GONE, PENDING)
    node.datastore.lists_in_one_go = False
    asked = []
    node.datastore.before = lambda _verb, need: asked.append(need) if type(need) is Affinities else None
    node.assign()
    node.datastore.before = lambda _verb, _key: None
    assert {need.owner for need in asked} == {OWNER}
    assert leads(node) == {**ONLY_OURS, str(GONE): PENDING}
