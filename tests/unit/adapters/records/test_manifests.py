"""Manifests have calicoctl's shape, and a mistake in one is named before anything is stored."""

from __future__ import annotations

import datetime
import json

import pytest
from hypothesis import given

from adapters.records.codec import decode, encode
from adapters.records.kinds import INNER_KINDS, KINDS, kind_named, kind_of
from adapters.records.manifests import (
    BadManifest,
    expand,
    exported,
    from_manifest,
    name_of,
    revision_of,
    to_list,
    to_manifest,
)
from domain.cluster import Node
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, VIRTUAL, Affinity, Handle, Owner, new_block
from domain.ipam.pools import Pool
from domain.resource import Metadata
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    HandleKey,
    IPPoolKey,
    IPPools,
    NodeKey,
    Stored,
    WorkloadEndpointKey,
    WorkloadEndpoints,
)
from strategies import entries

POOL = {
    "apiVersion": "projectcalico.org/v3",
    "kind": "IPPool",
    "metadata": {"name": "p"},
    "spec": {"cidr": "10.244.0.0/16"},
}


def manifest(kind="IPPool", name="p", spec=None, **metadata):
    spec = {"cidr": "10.244.0.0/16"} if spec is None else spec
    return {"apiVersion": "projectcalico.org/v3", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def fault_of(document):
    with pytest.raises(BadManifest) as caught:
        from_manifest(document)
    return str(caught.value)


def test_a_pool_is_stored_with_the_defaults_that_the_original_writes():
    key, record = from_manifest(POOL)
    assert key == IPPoolKey("p")
    assert encode(key, record) == (
        '{"kind":"IPPool","apiVersion":"projectcalico.org/v3","metadata":{"name":"p"},"spec":{"cidr":"10.244.0.0/16",'
        '"vxlanMode":"Never","ipipMode":"Never","blockSize":26,"nodeSelector":"all()",'
        '"allowedUses":["Workload","Tunnel"],"assignmentMode":"Automatic"}}'
    )


def test_a_manifest_shows_the_revision_where_the_original_does():
    metadata = Metadata("p", uid="u", created="2026-01-01T00:00:00Z", labels={"a": "b"})
    shown = to_manifest(Stored(IPPoolKey("p"), Pool(metadata, "10.0.0.0/16", nat_outgoing=True), "12"))
    assert json.dumps(shown) == json.dumps(
        {
            "kind": "IPPool",
            "apiVersion": "projectcalico.org/v3",
            "metadata": {
                "name": "p",
                "uid": "u",
                "resourceVersion": "12",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"a": "b"},
            },
            "spec": {"cidr": "10.0.0.0/16", "natOutgoing": True},
        }
    )
    bare = to_manifest(Stored(NodeKey("n"), Node(Metadata("n")), "3"))
    assert bare["metadata"] == {"name": "n", "resourceVersion": "3"}
    assert bare["status"] == {}


@given(entries)
def test_a_manifest_of_what_is_stored_reads_back_as_the_same_record(entry):
    """Unknown members aside: those a person's manifest may not have."""
    key, record = entry
    if type(key) not in {kind.key_type for kind in KINDS}:
        return
    shown = to_manifest(Stored(key, record, "5"))
    assert revision_of(shown) == "5"
    assert shown["metadata"].pop("resourceVersion") == "5"
    assert decode(key, json.dumps(shown)) == record


def test_a_pools_host_bits_are_cleared():
    assert from_manifest(manifest(spec={"cidr": "10.244.7.1/16"}))[1].cidr_text == "10.244.0.0/16"
    assert from_manifest(manifest(spec={"cidr": "FD00:0:0::/48"}))[1].cidr_text == "fd00::/48"


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, "IPPool(p): '' is not a CIDR; write it like"),
        ({"cidr": "10.0.0.0"}, "'10.0.0.0' is not a CIDR"),
        (
            {"cidr": "10.0.0.0/16", "blockSize": 19},
            "block size 19 is not possible for IPv4; choose a prefix length from 20 to 32",
        ),
        ({"cidr": "10.0.0.0/16", "blockSize": 33}, "block size 33 is not possible for IPv4"),
        (
            {"cidr": "fd00::/64", "blockSize": 26},
            "block size 26 is not possible for IPv6; choose a prefix length from 116 to 128",
        ),
        ({"cidr": "10.0.0.0/27"}, "10.0.0.0/27 is smaller than one block of /26"),
        ({"cidr": "169.254.0.0/20"}, "169.254.0.0/20 lies in the link-local range"),
        ({"cidr": "10.0.0.0/16", "ipipMode": "always"}, "ipipMode is 'always'; choose one of Never"),
        ({"cidr": "fd00::/64", "ipipMode": "Always"}, "ipipMode Always is not possible for IPv6"),
        (
            {"cidr": "10.0.0.0/16", "ipipMode": "Always", "vxlanMode": "Always"},
            "ipipMode and vxlanMode exclude each other",
        ),
        ({"cidr": "10.0.0.0/16", "allowedUses": ["Pods"]}, "allowedUses is 'Pods'; choose one of Workload"),
        (
            {"cidr": "10.0.0.0/16", "assignmentMode": "Auto"},
            "assignmentMode is 'Auto'; choose one of Automatic, Manual",
        ),
        ({"cidr": "10.0.0.0/16", "nodeSelector": "=="}, "selector '==' cannot be used"),
        ({"cidr": "10.0.0.0/16", "blocksize": 26}, "IPPool(p): unknown field spec.blocksize"),
        ({"cidr": "10.0.0.0/16", "a": 1, "b": 1}, "unknown fields spec.a, spec.b"),
        ({"cidr": "10.0.0.0/16", "blockSize": "26"}, "IPPool(p): spec.blockSize must be a number, not a string"),
        ({"cidr": "10.0.0.0/16", "natOutgoing": "yes"}, "spec.natOutgoing must be a boolean, not a string"),
        ([], "spec must be an object, not a list"),
    ],
)
def test_a_pool_that_could_not_be_used_is_refused_with_the_reason(spec, fault):
    assert fault in fault_of(manifest(spec=spec))


def test_a_disabled_pool_may_be_smaller_than_a_block():
    assert from_manifest(manifest(spec={"cidr": "10.0.0.0/27", "disabled": True}))[1].disabled


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ("text", "a manifest must be an object"),
        (None, "a manifest must be an object"),
        ({}, "apiVersion is missing; write apiVersion: projectcalico.org/v3"),
        ({**POOL, "apiVersion": "v1"}, "apiVersion must be projectcalico.org/v3, not 'v1'"),
        ({**POOL, "kind": "Pod"}, "kind 'Pod' is not one of IPPool, IPReservation"),
        ({**POOL, "kind": "ippool"}, "kind 'ippool' is not one of"),
        ({**POOL, "kind": None}, "kind is missing; write"),
        ({**POOL, "metadata": None}, "IPPool: metadata must be an object"),
        ({**POOL, "metadata": {}}, "IPPool: metadata.name is missing"),
        ({**POOL, "metadata": {"name": 7}}, "IPPool: metadata.name is missing"),
        (manifest(name="a/b"), "metadata.name cannot hold 'a/b'"),
        (manifest(namespace="x"), "metadata.namespace must not be given"),
        (manifest(namespace=7), "metadata.namespace must be a string"),
        (manifest(colour="x"), "unknown field metadata.colour"),
        (manifest(labels={"a": 1}), "metadata.labels.a must be a string, not a number"),
        ({**POOL, "speck": {}}, "unknown field speck"),
        ({**POOL, 7: {}}, "the name of a member must be a string, not 7"),
        ({**POOL, "spec": {"cidr": b"x"}}, "the manifest.spec.cidr: a bytes has no place"),
        ({**POOL, "spec": {"cidr": float("nan")}}, "IPPool(p): "),
        (manifest("ClusterInformation", "x", {}), "metadata.name must be 'default'"),
        (manifest("IPAMConfiguration", "x", {}), "metadata.name must be 'default'"),
        (manifest("Node", "n", {"bpg": {}}), "Node(n): unknown field spec.bpg"),
        (manifest("Profile", "p", {"egress": [{"action": "Allow", "dst": {}}]}), "unknown field spec.egress[0].dst"),
        (manifest("Profile", "p", {"egress": [{"action": "allow"}]}), "must be one of Allow, Deny, Log, Pass"),
        (manifest("IPReservation", "r", {"reservedCIDRs": ["x"]}), "IPReservation(r): invalid IP address: x"),
        (manifest("IPAMConfiguration", "default", {"ipCooldownSeconds": 1201}), "must be 0 to 1200"),
        (manifest("IPAMConfiguration", "default", {"maxBlocksPerHost": -1}), "must be 0 to 1000000"),
        (manifest("IPAMConfiguration", "default", {"kubeVirtVMAddressPersistence": "On"}), "Enabled or Disabled"),
    ],
)
def test_a_mistake_is_named(document, fault):
    assert fault in fault_of(document)


def test_automatic_blocks_stay_on_unless_the_manifest_says_otherwise():
    assert from_manifest(manifest("IPAMConfiguration", "default", {}))[1].auto_allocate_blocks
    spec = {"autoAllocateBlocks": False}
    assert not from_manifest(manifest("IPAMConfiguration", "default", spec))[1].auto_allocate_blocks


def test_other_kinds_read():
    assert from_manifest(manifest("Node", "n", {"bgp": {"asNumber": 64512}}))[1].spec == '{"bgp":{"asNumber":64512}}'
    assert from_manifest(manifest("IPReservation", "r", {"reservedCIDRs": ["10.0.0.1"]}))[1].cidrs == ("10.0.0.1",)
    assert from_manifest(manifest("ClusterInformation", "default", {"datastoreReady": True}))[1].datastore_ready
    rules = [{"action": "Allow", "protocol": "TCP"}]
    assert len(from_manifest(manifest("Profile", "p", {"ingress": rules}))[1].ingress) == 1


def test_an_endpoint_without_a_namespace_is_in_default():
    key, record = from_manifest(manifest("WorkloadEndpoint", "w", {"node": "n"}))
    assert key == WorkloadEndpointKey("default", "w")
    assert record.metadata.namespace == "default"


def test_instants_that_a_yaml_reader_makes_become_texts():
    zone = datetime.timezone(datetime.timedelta(hours=1))
    made = datetime.datetime(2026, 1, 1, 1, 0, 0, tzinfo=zone)
    assert from_manifest(manifest(creationTimestamp=made))[1].metadata.created == "2026-01-01T00:00:00Z"


def test_lists_of_manifests_are_taken_apart():
    listed = {"kind": "IPPoolList", "apiVersion": "projectcalico.org/v3", "items": [POOL, POOL]}
    assert expand([listed, POOL, None]) == [POOL] * 3
    assert expand({"kind": "List"}) == []
    stored = Stored(IPPoolKey("p"), Pool(Metadata("p"), "10.0.0.0/16"), "1")
    shown = to_list([kind_of(stored.key)], [stored])
    assert shown["kind"] == "IPPoolList"
    assert shown["items"] == [to_manifest(stored)]


@pytest.mark.parametrize("document", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"resourceVersion": ""}}])
def test_a_manifest_without_a_revision_has_none(document):
    assert revision_of(document) is None


@pytest.mark.parametrize("name", ["ippool", "ippools", "IPPool", "pool", "pools", "ipp"])
def test_kinds_go_by_all_the_names_that_calicoctl_knows(name):
    kind = kind_named(name)
    assert kind is not None
    assert kind.key("p") == IPPoolKey("p")
    assert kind.listings() == (IPPools(),)


def test_a_name_belongs_to_one_kind():
    names = [name for kind in (*KINDS, *INNER_KINDS) for name in kind.names]
    assert len(names) == len(set(names))
    assert kind_named("pod") is None
    assert kind_of(HandleKey("h")).plural == "ipamhandles"
    with pytest.raises(LookupError, match="is of no kind that operators know"):
        kind_of(AllocationConfigKey())


@pytest.mark.parametrize("name", ["ippools.crd.projectcalico.org", "ippool.projectcalico.org"])
def test_kinds_go_by_the_names_that_kubectl_writes(name):
    assert kind_named(name) is kind_named("ippool")


def test_affinities_are_listed_for_either_kind_of_owner():
    assert kind_named("affinities").listings() == (Affinities(Owner(HOST, "")), Affinities(Owner(VIRTUAL, "")))


INNER = [
    (BlockKey(Cidr.parse("10.0.0.0/30")), new_block(Cidr.parse("10.0.0.0/30"), "host:n", None, 1)),
    (HandleKey("Net.C1"), Handle({Cidr.parse("10.0.0.0/30"): 2})),
    (AffinityKey(Owner(HOST, "n"), Cidr.parse("10.0.0.0/30")), Affinity("confirmed")),
]


@pytest.mark.parametrize(("key", "record"), INNER)
def test_ipams_own_records_are_shown_as_kubectl_shows_them_and_not_taken(key, record):
    """A11: blocks, handles and affinities are kinds of `tortie get`."""
    shown = to_manifest(Stored(key, record, "7"))
    assert (shown["apiVersion"], shown["kind"]) == ("crd.projectcalico.org/v1", kind_of(key).name)
    assert shown["metadata"]["name"] == name_of(key) == name_of(key).lower()
    assert shown["metadata"]["resourceVersion"] == "7"
    assert to_list([kind_of(key)], [])["apiVersion"] == "crd.projectcalico.org/v1"
    with pytest.raises(BadManifest, match="IPAM's own, which `tortie ipam` repairs"):
        from_manifest(shown)


def test_several_kinds_are_listed_as_kubectl_lists_them():
    stored = Stored(IPPoolKey("p"), Pool(Metadata("p"), "10.0.0.0/16"), "1")
    shown = to_list(list(KINDS[:2]), [stored])
    assert (shown["kind"], shown["apiVersion"]) == ("List", "v1")
    assert expand(shown) == [to_manifest(stored)]


def test_an_export_is_without_what_belongs_to_one_cluster():
    pool = Pool(Metadata("p", uid="u", created="2026-01-01T00:00:00Z", labels={"a": "b"}), "10.0.0.0/16")
    assert exported(to_manifest(Stored(IPPoolKey("p"), pool, "1")))["metadata"] == {"name": "p", "labels": {"a": "b"}}


def test_namespaced_kinds_have_keys_and_listings_of_a_namespace():
    kind = kind_named("wep")
    assert kind.key("w", "ns") == WorkloadEndpointKey("ns", "w")
    assert kind.listings("ns") == (WorkloadEndpoints("ns"),)
