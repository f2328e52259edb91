"""What an audit finds, who it says has it; a sound datastore is clean (F06, K03, L03, L04, L11; spec: ipam 16)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.audit import is_clean
from domain.ipam.audit_addresses import young_addresses
from domain.ipam.block import HOST, WINDOWS_HANDLE, Affinity, Attribute, Handle, Owner, new_block
from domain.ipam.inventory import INFO
from domain.ipam.pools import AllocationConfig, IPAMConfiguration, IPReservation
from domain.moment import go_string
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    HandleKey,
    IPAMConfigurationKey,
    IPReservationKey,
    NodeKey,
    WorkloadEndpointKey,
)
from usecases.check_ipam import check_ipam
from worlds.one_node import NODE, OneNode

B0, B1 = "10.244.0.0/26", "10.244.0.64/26"
ME, OTHER, GONE = Owner(HOST, NODE), Owner(HOST, "node2"), Owner(HOST, "gone-1")


@pytest.fixture
def node():
    made = OneNode()
    made.add_node("node2")
    return made


def audit(node):
    return check_ipam(node.work()).findings


def kinds(node):
    return [(finding.kind, finding.subject) for finding in audit(node)]


def only(node):
    (finding,) = audit(node)
    return finding


def hold(node, cidr, owner=ME, **held):
    """A block with its affinity; `held` maps ordinals like `o5` to (handle, attributes) or a handle."""
    key = BlockKey(Cidr.parse(cidr))
    block = new_block(key.cidr, owner or "", None, 100).replace(affinity=str(owner) if owner else None)
    for word, holder in held.items():
        handle, secondary = holder if isinstance(holder, tuple) else (holder, {"node": NODE})
        block = block.take((int(word[1:]),), Attribute(handle, secondary))
    node.put(key, block)
    if owner:
        node.put(AffinityKey(owner, key.cidr), Affinity("confirmed"))
    return key.cidr


def count(node, handle, **blocks):
    node.put(HandleKey(handle), Handle({Cidr.parse(B0): blocks["b0"]} if "b0" in blocks else {}))


def endpoint(node, container, *addresses, name="", pod="", owner=NODE):
    record = WorkloadEndpoint(
        Metadata(name or f"{NODE}-cni-{container}-eth0", "default"),
        node=owner,
        container_id=container,
        pod=pod,
        ip_networks=tuple(Cidr.parse_lenient(text) for text in addresses),
    )
    node.put(WorkloadEndpointKey("default", record.metadata.name), record)


def corrupt(node, key_text):
    node.datastore.load({key_text: "<html>"})


# --- sound states -----------------------------------------------------------------------------------------------------


def test_an_empty_datastore_is_clean(node):
    assert audit(node) == ()


def test_running_containers_are_clean(node):
    node.add("c1")
    node.add("c2")
    node.delete("c2")
    node.clock.advance(3600)
    assert audit(node) == ()


@pytest.mark.parametrize(
    "holder",
    [
        pytest.param(("ipip-tunnel-addr-node1", {"node": NODE, "type": "ipipTunnelAddress"}), id="tunnel"),
        pytest.param(("ipip-tunnel-addr-node.1", {"node": NODE, "type": "ipipTunnelAddress"}), id="tunnel with dot"),
        pytest.param(("net.vmi.default.vm1", {"node": "gone-1", "pod": "virt-launcher-vm1"}), id="machine that is off"),
        pytest.param(("lb-0123", {}), id="load balancer"),
        pytest.param((None, {}), id="no handle"),
    ],
)
def test_who_has_no_endpoint_by_nature_leaks_nothing(node, holder):
    hold(node, B0, o1=holder)
    if holder[0]:
        count(node, holder[0], b0=1)
    assert audit(node) == ()


def test_reservations_of_windows_have_no_handle_and_are_no_leak(node):
    hold(node, B0, o0=WINDOWS_HANDLE, o63=WINDOWS_HANDLE.upper())
    assert audit(node) == ()


def test_an_address_that_a_call_has_just_taken_is_no_leak(node):
    fresh = {"node": NODE, "timestamp": go_string(node.clock.now())}
    hold(node, B0, o1=("net1.c1", fresh))
    count(node, "net1.c1", b0=1)
    assert audit(node) == ()
    node.clock.advance(89)
    assert audit(node) == ()
    node.clock.advance(2)
    assert kinds(node) == [("address-without-endpoint", "10.244.0.1")]


def test_old_spellings_of_a_handle_are_the_handle(node):
    hold(node, B0, o1=("net1.c1\r\n", {"node": NODE}))
    node.put(HandleKey("net1.c1"), Handle({Cidr.parse(B0): 1}))
    endpoint(node, "c1", "10.244.0.1")
    assert audit(node) == ()


# --- handles ----------------------------------------------------------------------------------------------------------


def test_a_handle_that_no_block_knows_is_an_orphan(node):
    """L04."""
    hold(node, B0)
    count(node, "net1.c1", b0=1)
    found = only(node)
    assert (found.kind, found.subject, found.holder) == ("handle-orphan", "net1.c1", {"handle": "net1.c1"})
    assert found.reason == f"it counts 1 in {B0}, but no block has an address for it"
    assert found.repairable
    count(node, "net1.c1")
    assert only(node).reason == "it counts nothing, but no block has an address for it"


@pytest.mark.parametrize(
    ("counted", "kind", "reason"),
    [
        (3, "handle-counts-too-much", "it counts 3 in 10.244.0.0/26, which holds 2 for it"),
        (1, "handle-counts-too-little", "it counts 1 in 10.244.0.0/26, which holds 2 for it"),
    ],
)
def test_a_handle_that_counts_wrongly_is_named_with_both_counts(node, counted, kind, reason):
    """L03."""
    hold(node, B0, o1="net1.c1", o2="net1.c1")
    endpoint(node, "c1", "10.244.0.1", "10.244.0.2")
    count(node, "net1.c1", b0=counted)
    assert (only(node).kind, only(node).reason) == (kind, reason)


def test_counts_are_compared_block_by_block(node):
    hold(node, B0, o1="net1.c1")
    hold(node, B1, o2="net1.c1")
    endpoint(node, "c1", "10.244.0.1", "10.244.0.66")
    node.put(HandleKey("net1.c1"), Handle({Cidr.parse(B0): 1, Cidr.parse("10.244.0.128/26"): 0}))
    assert [(one.kind, str(one.block)) for one in audit(node)] == [
        ("handle-counts-too-little", B1),
        ("handle-counts-too-much", "10.244.0.128/26"),
    ]


def test_a_block_that_names_a_handle_which_does_not_exist_is_told(node):
    hold(node, B0, o1="net1.c1", o2="net1.c1")
    endpoint(node, "c1", "10.244.0.1", "10.244.0.2")
    assert only(node).kind == "handle-missing"
    assert only(node).reason.startswith(f"2 in {B0}, but there is no handle record")


# --- blocks and affinities --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "confirmed", "", "pendingDeletion"])
def test_an_affinity_without_block_is_told_with_its_state(node, state):
    node.put(AffinityKey(ME, Cidr.parse(B0)), Affinity(state))
    found = only(node)
    assert (found.kind, found.subject, found.holder) == ("affinity-without-block", B0, {"node": NODE})
    assert f"a {state or 'confirmed'} affinity" in found.reason


def test_an_affinity_to_somebody_elses_block_is_told(node):
    hold(node, B0, OTHER)
    node.put(AffinityKey(Owner("virtual", "lb"), Cidr.parse(B0)), Affinity("pending"))
    found = only(node)
    assert (found.kind, found.holder) == ("affinity-of-others-block", {"owner": "virtual:lb"})
    assert found.reason == "virtual:lb has an affinity to it, but the block belongs to host:node2"


def test_two_confirmed_affinities_are_worse(node):
    hold(node, B0, OTHER)
    node.put(AffinityKey(ME, Cidr.parse(B0)), Affinity("confirmed"))
    assert only(node).kind == "affinities-both-confirmed"
    assert only(node).owner == ME
    assert "host:node1 and host:node2 all have a confirmed affinity" in only(node).reason


def test_an_affinity_to_a_block_that_was_taken_from_its_owner_is_told(node):
    hold(node, B0, None, o1="net1.c1")
    count(node, "net1.c1", b0=1)
    endpoint(node, "c1", "10.244.0.1")
    node.put(AffinityKey(ME, Cidr.parse(B0)), Affinity("pendingDeletion"))
    assert kinds(node) == [("affinity-of-others-block", B0), ("block-without-owner", B0)]
    assert audit(node)[0].reason.endswith("the block belongs to nobody")


@pytest.mark.parametrize("state", ["pending", "pendingDeletion"])
def test_a_claim_or_release_that_stopped_half_way_is_told(node, state):
    hold(node, B0)
    node.put(AffinityKey(ME, Cidr.parse(B0)), Affinity(state))
    assert only(node).kind == "affinity-unfinished"
    assert state in only(node).reason


def test_a_block_that_its_owner_cannot_find_is_told(node):
    hold(node, B0)
    node.remove(AffinityKey(ME, Cidr.parse(B0)))
    assert (only(node).kind, only(node).holder) == ("block-without-affinity", {"node": NODE})
    hold(node, B0, Owner("virtual", "lb"))
    node.remove(AffinityKey(Owner("virtual", "lb"), Cidr.parse(B0)))
    assert (only(node).kind, only(node).holder) == ("block-without-affinity", {"owner": "virtual:lb"})


def test_a_block_of_nobody_is_a_problem_only_when_empty(node):
    hold(node, B0, None)
    assert only(node).kind == "block-empty-without-owner"
    hold(node, B0, None, o1="net1.c1")
    count(node, "net1.c1", b0=1)
    endpoint(node, "c1", "10.244.0.1")
    assert (only(node).kind, only(node).level, only(node).repairable) == ("block-without-owner", INFO, False)
    assert is_clean(audit(node))


def test_blocks_of_a_node_that_is_gone_are_reclaimable(node):
    """L11: with the reason, and whether an address still holds them back."""
    hold(node, B0, GONE)
    assert only(node).kind == "block-empty-of-vanished-node"
    assert only(node).holder == {"node": "gone-1"}
    assert "node gone-1 does not exist" in only(node).reason
    node.put(AffinityKey(GONE, Cidr.parse(B0)), Affinity("pending"))
    assert only(node).kind == "block-empty-of-vanished-node"
    tunnel = ("ipip-tunnel-addr-gone-1", {"node": "gone-1", "type": "ipipTunnelAddress"})
    hold(node, B0, GONE, o0=tunnel)
    count(node, "ipip-tunnel-addr-gone-1", b0=1)
    address, block = audit(node)
    assert (address.kind, address.subject, address.level) == ("address-of-vanished-node", "10.244.0.0", "leak")
    assert address.holder == {"handle": tunnel[0], "node": "gone-1", "type": "ipipTunnelAddress"}
    assert (block.kind, block.level, block.repairable) == ("block-of-vanished-node", "leak", True)


def test_a_block_of_a_node_that_is_gone_names_the_endpoints_that_keep_it(node):
    """Releasing what has leaked would not give it back, for ever."""
    hold(node, B0, GONE, o1="net1.c1", o2="net1.c2")
    count(node, "net1.c1", b0=1)
    count(node, "net1.c2", b0=1)
    endpoint(node, "c1", "10.244.0.1")
    endpoint(node, "c2", "10.244.0.2")
    (block,) = [one for one in audit(node) if one.kind == "block-of-vanished-node"]
    assert block.advice == (
        "make node gone-1 again, or delete the workload of endpoint default/node1-cni-c1-eth0 and 1 more, "
        "which has an address of it"
    )
    assert not block.repairable
    node.remove(WorkloadEndpointKey("default", "node1-cni-c2-eth0"))
    (block,) = [one for one in audit(node) if one.kind == "block-of-vanished-node"]
    assert "default/node1-cni-c1-eth0, which" in block.advice


def test_young_addresses_without_an_endpoint_are_counted(node):
    now = go_string(node.clock.now())
    hold(node, B0, o1=("net1.c1", {"node": NODE, "timestamp": now}), o2=("net1.c2", {"node": NODE, "timestamp": now}))
    endpoint(node, "c2", "10.244.0.2")
    assert young_addresses(check_ipam(node.work()).inventory) == 1
    node.clock.advance(91)
    assert young_addresses(check_ipam(node.work()).inventory) == 0


def test_an_address_of_a_node_that_is_gone_is_its_endpoint_s_while_there_is_one(node):
    hold(node, B0, ME, o1=("net1.c1", {"node": "gone-1"}))
    count(node, "net1.c1", b0=1)
    endpoint(node, "c1", "10.244.0.1")
    assert audit(node) == ()


def test_where_no_node_is_recorded_none_has_vanished(node):
    node.remove(NodeKey(NODE))
    node.remove(NodeKey("node2"))
    hold(node, B0, GONE)
    assert audit(node) == ()


def test_blocks_that_overlap_are_told(node):
    hold(node, B0)
    hold(node, "10.244.0.32/28")
    hold(node, B1)
    assert kinds(node) == [("blocks-overlap", "10.244.0.32/28")]


def test_blocks_outside_of_pools_or_in_disabled_ones_are_worth_knowing(node):
    hold(node, "10.9.0.0/26")
    node.add_pool("off", "10.8.0.0/24", disabled=True)
    hold(node, "10.8.0.0/26")
    assert kinds(node) == [("block-in-disabled-pool", "10.8.0.0/26"), ("block-outside-pools", "10.9.0.0/26")]
    assert is_clean(audit(node))


def test_addresses_that_are_neither_free_nor_held_are_told(node):
    cidr = hold(node, B0)
    key = BlockKey(cidr)
    node.put(key, node.get(key).replace(unallocated=tuple(range(4, 64))))
    assert only(node).kind == "block-lost-addresses"
    assert only(node).reason.endswith("held: 10.244.0.0, 10.244.0.1, 10.244.0.2, …")
    node.put(key, node.get(key).replace(unallocated=tuple(range(1, 64))))
    assert only(node).reason == "1 of its addresses are neither free nor held: 10.244.0.0"


# --- addresses and endpoints ------------------------------------------------------------------------------------------


def test_an_address_whose_container_has_no_endpoint_is_a_leak_with_its_holder(node):
    """F06: names the holder."""
    who = {"node": NODE, "pod": "web-0", "namespace": "prod", "timestamp": "2020-01-01 00:00:00 +0000 UTC"}
    hold(node, B0, o5=("net1.c1", who))
    count(node, "net1.c1", b0=1)
    found = only(node)
    assert (found.kind, found.subject, found.level) == ("address-without-endpoint", "10.244.0.5", "leak")
    assert found.holder == {"handle": "net1.c1", **who}
    assert (found.handle, found.mark, found.repairable) == ("net1.c1", "100", True)


@pytest.mark.parametrize(
    ("handle", "secondary", "container", "pod"),
    [
        ("net1.c1", {}, "c1", ""),
        ("my.net.c.1", {}, "c.1", ""),
        ("c1", {}, "c1", ""),
        ("default.web-0", {}, "c1", "web-0"),
        ("net1.c9", {"namespace": "default", "pod": "web-0"}, "", "web-0"),
        ("net1.vmi.default.vm", {"namespace": "default", "pod": "launcher"}, "c1", "launcher"),
    ],
)
def test_an_endpoint_speaks_for_its_address_under_every_form_of_handle(node, handle, secondary, container, pod):
    hold(node, B0, o5=(handle, {"node": NODE, **secondary}))
    count(node, handle, b0=1)
    endpoint(node, container, "10.244.0.5", name="e", pod=pod)
    assert audit(node) == ()


def test_an_address_that_its_pod_uses_is_no_leak_whatever_container_the_endpoint_names(node):
    """In Kubernetes the container is an annotation, and may be that of an ADD that has failed since."""
    hold(node, B0, o5=("net1.c1", {"namespace": "default", "node": NODE, "pod": "web-0"}))
    count(node, "net1.c1", b0=1)
    endpoint(node, "c2", "10.244.0.5", pod="web-0")
    assert [kind for kind, _ in kinds(node)] == ["endpoint-address-of-another"]


def test_an_endpoint_whose_address_nobody_has_allocated_is_told(node):
    endpoint(node, "c1", "10.244.0.5", "192.0.2.1")
    assert only(node).kind == "endpoint-address-not-allocated"
    assert "it is free and can be given to another" in only(node).reason
    cidr = hold(node, B0)
    assert only(node).kind == "endpoint-address-not-allocated"
    cooling = node.get(BlockKey(cidr)).take((5,), Attribute("net1.c1", {})).release((5,), node.clock.now(), 60)
    node.put(BlockKey(cidr), cooling)
    node.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=60))
    assert "it is in cooldown" in only(node).reason
    assert only(node).holder == {"endpoint": "default/node1-cni-c1-eth0", "node": NODE, "container": "c1"}


def test_an_endpoint_whose_address_is_anothers_is_told_with_both(node):
    hold(node, B0, o5="net1.c2")
    count(node, "net1.c2", b0=1)
    endpoint(node, "c1", "10.244.0.5")
    endpoint(node, "c2")
    found = only(node)
    assert (found.kind, found.subject) == ("endpoint-address-of-another", "10.244.0.5")
    assert found.reason == "endpoint default/node1-cni-c1-eth0 has it, but it is allocated to net1.c2"
    assert found.holder["handle"] == "net1.c2"
    assert found.holder["container"] == "c1"


def test_endpoints_that_share_an_address_are_told(node):
    hold(node, B0, o5="net1.c1")
    count(node, "net1.c1", b0=1)
    endpoint(node, "c1", "10.244.0.5", name="a")
    endpoint(node, "c1", "10.244.0.5", name="b")
    hold(node, "10.244.0.128/28")
    hold(node, "fd00:10:244::/122", o3="net1.c1")
    node.put(HandleKey("net1.c1"), Handle({Cidr.parse(B0): 1, Cidr.parse("fd00:10:244::/122"): 1}))
    endpoint(node, "c1", "fd00:10:244::3", name="c")
    assert only(node).kind == "endpoints-share-address"
    assert only(node).reason == "2 endpoints have it: default/a, default/b"


def test_an_allocated_address_in_a_reservation_is_worth_knowing(node):
    node.add("c1")
    node.put(IPReservationKey("r"), IPReservation(Metadata("r"), ("10.244.0.0/24",)))
    assert only(node).kind == "address-in-reservation"
    assert is_clean(audit(node))


# --- what cannot be read ----------------------------------------------------------------------------------------------


def test_a_corrupt_record_is_named_and_nothing_is_concluded_from_its_absence(node):
    """K03."""
    node.add("c1")
    node.clock.advance(600)
    for key_text in list(node.datastore.records_text()):
        whole = node.datastore.snapshot()
        if "pool" in key_text or "clusterinformation" in key_text:
            continue
        corrupt(node, key_text)
        found = [one for one in audit(node) if one.level != INFO]
        assert [one.kind for one in found][:1] == ["record-unreadable"], (key_text, found)
        own = key_text.startswith("/calico/ipam/v2/") and not key_text.endswith("/config")
        assert {one.repairable for one in found} == {own}, (key_text, found)
        node.datastore.restore(whole)
    assert audit(node) == ()


def test_a_leak_is_not_collected_while_an_endpoint_cannot_be_read(node):
    hold(node, B0, o5="net1.c1")
    count(node, "net1.c1", b0=1)
    corrupt(node, "/calico/resources/v3/projectcalico.org/workloadendpoints/default/x")
    bad, leak = audit(node)
    assert (bad.kind, bad.subject) == ("record-unreadable", "workloadendpoint default/x")
    assert not leak.repairable
    assert "mend the unreadable endpoint records first" in leak.advice


# --- settings ---------------------------------------------------------------------------------------------------------


def test_settings_that_differ_are_worth_knowing(node):
    node.put(IPAMConfigurationKey("default"), IPAMConfiguration(Metadata("default")))
    assert audit(node) == ()
    node.put(AllocationConfigKey(), AllocationConfig(strict_affinity=True, cooldown_seconds=5))
    assert only(node).kind == "settings-differ"
    assert only(node).reason.endswith("differ in strict affinity, cooldown seconds")
    assert is_clean(audit(node))


def test_the_worst_comes_first(node):
    hold(node, B1, o1="net1.c1")
    hold(node, B0, o2="net1.c1", o1="net1.c1")
    node.put(HandleKey("net1.c1"), Handle({Cidr.parse(B0): 2, Cidr.parse(B1): 1}))
    count(node, "net1.c9", b0=1)
    node.add_pool("off", "10.8.0.0/24", disabled=True)
    hold(node, "10.8.0.0/26")
    assert kinds(node) == [
        ("handle-orphan", "net1.c9"),
        ("address-without-endpoint", "10.244.0.1"),
        ("address-without-endpoint", "10.244.0.2"),
        ("address-without-endpoint", "10.244.0.65"),
        ("block-in-disabled-pool", "10.8.0.0/26"),
    ]
