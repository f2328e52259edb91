"""One particular address (spec: ipam 10, 17)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Address, Cidr
from domain.ipam.block import HOST, Attribute, Handle, HostReservedAttr, Owner
from domain.ipam.errors import IpamError, StillContended
from domain.ipam.pools import AllocationConfig, IPReservation
from domain.moment import SECOND, rfc3339
from domain.resource import Metadata
from ports.datastore import AllocationConfigKey, BlockKey, HandleKey, IPReservationKey
from ports.errors import Unavailable
from usecases.calls.safeguards import Undo
from usecases.ipam.assign_specific import assign_specific
from usecases.ipam.free_addresses import free_allocation, free_handle
from usecases.ipam.work import MAX_TRIES
from worlds.one_node import NODE, OWNER

OTHER = Owner(HOST, "node2")
BLOCK = "10.244.0.0/26"
KEY = BlockKey(Cidr.parse(BLOCK))


def assign(node, text: str = "10.244.0.5", **fields):
    return assign_specific(node.work(), node.request(**fields), Address.parse(text), Undo(node.clock, node.log))


def refusal(node, text: str = "10.244.0.5", **fields) -> str:
    before = node.datastore.records_text()
    with pytest.raises(IpamError) as caught:
        assign(node, text, **fields)
    assert node.datastore.records_text() == before
    return str(caught.value)


def strict(node) -> None:
    node.put(AllocationConfigKey(), AllocationConfig(strict_affinity=True))


# --- where there is room ---------------------------------------------------------------------------------------------


def test_the_addresss_block_is_claimed_if_need_be(node):
    allocation = assign(node)
    assert (str(allocation.address), str(allocation.alone)) == ("10.244.0.5", "10.244.0.5/32")
    assert node.holders() == {"10.244.0.5": "net1.c1"}
    assert node.counts() == {"net1.c1": {BLOCK: 1}}
    assert node.affinities() == {BLOCK: "confirmed"}
    block = node.block(BLOCK)
    assert block.sequences == {5: allocation.sequence}
    assert block.sequence == allocation.sequence + 1


def test_an_ipv6_address_is_assigned_likewise(node):
    assert str(assign(node, "fd00:10:244::47").block) == "fd00:10:244::40/122"


@pytest.mark.parametrize("owner", [OWNER, OTHER, None])
def test_without_strict_affinity_any_block_will_do(node, owner):
    node.add_block(BLOCK, owner)
    assign(node)
    assert node.holders() == {"10.244.0.5": "net1.c1"}
    assert node.block(BLOCK).affinity == (str(owner) if owner else None)


def test_reservations_selectors_and_modes_do_not_count(node):
    """spec: ipam 10, step 1."""
    node.put(IPReservationKey("r"), IPReservation(Metadata("r"), ("10.244.0.0/24",)))
    node.add_pool("pool0", "10.244.0.0/24", node_selector="has(gone)", assignment_mode="Manual")
    assert str(assign(node).address) == "10.244.0.5"


def test_an_address_that_has_cooled_down_can_be_had(node):
    node.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=30))
    block = node.add_block(BLOCK).record
    released = Attribute(None, {}, released_at=rfc3339(node.clock.now()))
    node.put(KEY, block.take((5,), released))
    assert refusal(node) == "address 10.244.0.5 is in cooldown"
    node.clock.advance(32)
    assert str(assign(node).address) == "10.244.0.5"
    assert node.clock.now() > 30 * SECOND


# --- refusals --------------------------------------------------------------------------------------------------------


def test_an_address_outside_every_enabled_pool_is_refused(node):
    assert refusal(node, "192.0.2.1") == "The provided IP address is not in a configured pool\n"
    node.add_pool("pool0", "10.244.0.0/24", disabled=True)
    assert refusal(node) == "The provided IP address is not in a configured pool\n"


def test_an_address_in_a_pool_for_another_use_is_refused(node):
    node.add_pool("p1", "10.123.0.0/24", allowed_uses=("Tunnel",))
    assert refusal(node, "10.123.0.5") == (
        'IP address 10.123.0.5 is in IP pool "p1", which is not allowed for use "Workload" (allowedUses: [Tunnel])'
    )
    assert str(assign(node, "10.123.0.5", use="").address) == "10.123.0.5"


@pytest.mark.parametrize("handle", ["net1.c2", "net1.c1"])
def test_an_address_that_anybody_holds_is_refused_our_own_handle_included(node, handle):
    node.add_block(BLOCK, OWNER, (handle, 6))
    text = "resource already exists: 10.244.0.5 with error: Address already assigned in block"
    assert refusal(node) == text


def test_with_strict_affinity_the_block_must_be_the_nodes_own(node):
    strict(node)
    node.add_block(BLOCK, OTHER)
    assert refusal(node) == "Block host affinity does not match"
    node.add_block("10.244.0.64/26", None)
    assert refusal(node, "10.244.0.65") == "Attempt to assign from block 10.244.0.64/26 with no affinity"
    node.add_block("10.244.0.128/26")
    assert str(assign(node, "10.244.0.129").address) == "10.244.0.129"


def test_the_refusal_names_the_pod_that_holds_the_address(node):
    """L08, F05."""
    holder = Attribute("net1.c9", {"pod": "web-0", "namespace": "shop", "node": "node2"})
    node.put(KEY, node.add_block(BLOCK).record.take((5,), holder))
    with pytest.raises(IpamError) as caught:
        assign(node)
    assert caught.value.details == "held by pod shop/web-0 on node node2, handle net1.c9"
    node.put(KEY, node.block(BLOCK).take((6,), Attribute("net1.c8", {})))
    with pytest.raises(IpamError) as caught:
        assign(node, "10.244.0.6")
    assert caught.value.details == ""


@pytest.mark.parametrize(("cidr", "size"), [("10.99.0.0/16", 19), ("fd99::/64", 115)])
def test_blocks_that_would_not_fit_in_a_record_are_the_configurations_fault(node, cidr, size):
    """F20."""
    node.add_pool("big", cidr, block_size=size)
    with pytest.raises(IpamError, match=f"IPPool big has blockSize {size}, which for IPv. must be from") as caught:
        assign(node, cidr.partition("/")[0])
    assert caught.value.code == 7


def test_with_a_limit_an_address_that_is_ours_already_is_the_answer(node):
    """spec: ipam 10, step 3c; LIB-040. Neither this call nor the first one takes it back any more."""
    first, undo = assign(node), node.undo()
    again = assign_specific(node.work(), node.request(max_per_handle=1), first.address, undo)
    assert (again.address, again.held_before) == (first.address, True)
    undo.run()
    free_allocation(node.work(), "net1.c1", first)
    assert node.holders() == {"10.244.0.5": "net1.c1"}
    assert node.counts() == {"net1.c1": {BLOCK: 1}}


def test_with_a_limit_an_address_that_is_lost_while_it_is_looked_at_is_taken_again(node):
    assign(node)
    with node.rival("update", BlockKey, lambda _key: free_handle(node.work(), "net1.c1")):
        again = assign(node, max_per_handle=1)
    assert not again.held_before
    assert node.counts() == {"net1.c1": {BLOCK: 1}}


def test_beyond_the_limit_the_refusal_names_what_the_handle_has(node):
    """spec: ipam 10, step 3e; LIB-040."""
    assign(node)
    with pytest.raises(IpamError) as caught:
        assign(node, "10.244.0.9", max_per_handle=1)
    assert str(caught.value) == (
        "handle net1.c1 already has IP(s) allocated, cannot assign additional IP 10.244.0.9 (maxAllocPerIPVersion=1)"
    )
    assert caught.value.details == "it has 10.244.0.5"
    assert str(assign(node, "fd00:10:244::5", max_per_handle=1).address) == "fd00:10:244::5"


@pytest.mark.parametrize("block", [BLOCK, "10.244.0.64/26"])
def test_a_count_that_no_block_knows_keeps_nobody_from_an_address(node, block):
    """Crash windows L4 and L7: the original refuses for ever."""
    node.put(HandleKey("net1.c1"), Handle({Cidr.parse(block): 1}))
    assign(node, max_per_handle=1)
    assert node.counts() == {"net1.c1": {BLOCK: 1}}


def test_a_count_that_goes_while_we_look_at_it_is_no_reason_to_refuse(node):
    assign(node, "10.244.0.9")
    reads = []

    def freed(_key) -> None:
        reads.append(1)
        if len(reads) == 2:  # the first one is for counting up
            free_handle(node.work(), "net1.c1")

    with node.rival("fetch", HandleKey, freed, times=2):
        assign(node, max_per_handle=1)
    assert node.holders() == {"10.244.0.5": "net1.c1"}


def test_a_block_that_is_made_for_a_host_has_what_the_host_keeps(node):
    """LIB-209."""
    host_reserved = {4: HostReservedAttr(3, 1)}
    assign(node, host_reserved=host_reserved)
    assert set(node.holders()) == {f"10.244.0.{last}" for last in (0, 1, 2, 5, 63)}
    node.add_pool("small", "10.99.0.0/24", block_size=30)
    with pytest.raises(IpamError, match="IPPool small has blocks of /30, too small") as caught:
        assign(node, "10.99.0.2", host_reserved=host_reserved)
    assert caught.value.code == 7


# --- taking over from an earlier sandbox -----------------------------------------------------------------------------

POD = {"pod": "web-0", "namespace": "shop", "node": NODE}


def sandbox(node, handle: str, changes: dict[str, str] = {}) -> None:  # noqa: B006 - never changed
    """The address is held under that handle, by the pod as described."""
    node.put(KEY, node.add_block(BLOCK).record.take((5,), Attribute(handle, POD | changes)))
    node.put(HandleKey(handle), Handle({Cidr.parse(BLOCK): 1}))


def assign_to_pod(node):
    request = node.request()
    request = request.replace(secondary={**POD, **request.secondary})
    return assign_specific(node.work(), request, Address.parse("10.244.0.5"), Undo(node.clock, node.log))


def test_l08_a_pod_takes_its_address_over_from_its_earlier_sandbox(node):
    """L08: after a power loss no DEL came for it."""
    sandbox(node, "net1.old")
    allocation = assign_to_pod(node)
    assert node.holders() == {"10.244.0.5": "net1.c1"}
    assert node.counts() == {"net1.c1": {BLOCK: 1}}
    assert node.block(BLOCK).sequences == {5: allocation.sequence}
    free_handle(node.work(), "net1.old")  # its late DEL
    assert node.holders() == {"10.244.0.5": "net1.c1"}


def test_l08_a_take_over_whose_answer_was_lost_is_finished(node):
    """L08."""
    sandbox(node, "net1.old")
    node.fail("update", BlockKey, after=True)
    assign_to_pod(node)
    assert node.counts() == {"net1.c1": {BLOCK: 1}}


def test_l08_an_earlier_sandbox_that_changes_meanwhile_counts_what_it_has_left(node):
    """L08."""
    sandbox(node, "net1.old")
    with node.rival("delete", HandleKey, node.touch):
        assign_to_pod(node)
    assert node.counts() == {"net1.c1": {BLOCK: 1}}


@pytest.mark.parametrize(
    ("handle", "changes"),
    [
        pytest.param("net1.old", {"node": "node2"}, id="another node"),
        pytest.param("net1.old", {"namespace": "other"}, id="another namespace"),
        pytest.param("net1.old", {"pod": "web-1"}, id="another pod"),
        pytest.param("net2.old", {}, id="another network"),
        pytest.param("net1.c1", {}, id="this very sandbox"),
        pytest.param("net1.vmi.shop.vm", {}, id="a virtual machine"),
    ],
)
def test_l08_nobody_else_loses_an_address(node, handle, changes):
    """L08."""
    sandbox(node, handle, changes)
    with pytest.raises(IpamError, match="Address already assigned in block"):
        assign_to_pod(node)
    assert node.holders() == {"10.244.0.5": handle}


# --- with a rival ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", ["touch", "remove"])
def test_a_block_that_changes_meanwhile_is_read_again(node, move):
    """spec: ipam 17.1: the count of the lost try is taken back."""
    node.add_block(BLOCK)
    with node.rival("update", BlockKey, getattr(node, move)):
        assign(node)
    assert node.holders() == {"10.244.0.5": "net1.c1"}
    assert node.counts() == {"net1.c1": {BLOCK: 1}}


def test_an_address_that_a_rival_takes_first_is_refused_and_counted_back(node):
    node.add_block(BLOCK)
    rival = lambda _key: node.put(KEY, node.block(BLOCK).take((5,), Attribute("net1.c2", {})))  # noqa: E731 - one use
    with node.rival("update", BlockKey, rival), pytest.raises(IpamError, match="already assigned"):
        assign(node)
    assert node.counts() == {}


def test_losing_the_claim_to_another_node_borrows_from_its_block(node):
    """spec: ipam 17.2: the original gives up here."""
    with node.rival("create", BlockKey, lambda _key: node.add_block(BLOCK, OTHER)):
        assign(node)
    assert node.block(BLOCK).affinity == "host:node2"
    assert node.holders() == {"10.244.0.5": "net1.c1"}


def test_whoever_loses_every_race_gives_up_without_a_trace(node):
    node.add_block(BLOCK)
    with node.rival("update", BlockKey, node.touch, times=MAX_TRIES), pytest.raises(StillContended) as caught:
        assign(node)
    assert caught.value.details == f"last contended record: BlockKey(cidr={BLOCK})"
    assert (node.holders(), node.counts()) == ({}, {})


# --- with a datastore that fails -------------------------------------------------------------------------------------


def test_a_write_whose_answer_was_lost_is_recognised_as_our_own(node):
    node.add_block(BLOCK)
    node.fail("update", BlockKey, after=True)
    allocation = assign(node)
    assert node.block(BLOCK).sequences == {5: allocation.sequence}
    assert node.counts() == {"net1.c1": {BLOCK: 1}}


def test_a_write_that_failed_is_counted_back(node):
    node.add_block(BLOCK)
    node.fail("update", BlockKey)
    with pytest.raises(Unavailable):
        assign(node)
    assert (node.holders(), node.counts()) == ({}, {})


def test_the_holder_is_described(node):
    assign(node)
    assert node.block(BLOCK).holder(5).secondary["node"] == NODE
