"""Records survive being custom resources, in both API groups, and are written as the original writes them."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.records.custom_names import hostname_label
from adapters.records.custom_resources import (
    V1,
    V3,
    decode_object,
    encode_object,
    is_deleted,
    object_path,
    object_revision,
    object_uid,
)
from adapters.records.members import BadRecord
from domain.cluster import ClusterInformation
from domain.ipam.address import Cidr
from domain.ipam.block import Affinity, Block, Handle, Owner
from domain.ipam.pools import AllocationConfig, IPAMConfiguration, Pool, enabled_pools
from domain.resource import Metadata
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    ClusterInformationKey,
    HandleKey,
    IPAMConfigurationKey,
    IPPoolKey,
    IPReservationKey,
    Stored,
)
from ports.errors import Refused
from strategies import (
    affinities,
    allocation_configs,
    blocks,
    cidrs,
    cluster_informations,
    handles,
    handles_ids,
    ipam_configurations,
    owners,
    pools,
    reservations,
)

GOLDEN = Path(__file__).parents[3] / "golden"
RECORDINGS = sorted(path.name for pattern in ("kdd*.json", "kubevirt*.json") for path in GOLDEN.glob(pattern))
WRITTEN = ("ipamblocks", "blockaffinities", "ipamhandles", "ipamconfigurations")
SERVERS_OWN = ("creationTimestamp", "generation", "resourceVersion", "uid", "managedFields")
METADATA = "projectcalico.org/metadata"
CIDR = Cidr.parse("10.0.0.0/30")
CREATED = "2026-11-29T13:00:00Z"

groups = st.sampled_from([V1, V3])


def _named(key_type, records):
    return records.map(lambda record: (key_type(record.metadata.name), record))


default_configurations = ipam_configurations.map(
    lambda one: (IPAMConfigurationKey("default"), one.replace(metadata=one.metadata.replace(name="default")))
)
custom_entries = st.one_of(
    blocks(max_size=16).map(lambda block: (BlockKey(block.cidr), block)),
    st.tuples(st.builds(AffinityKey, owners, cidrs()), affinities),
    st.tuples(st.builds(HandleKey, handles_ids), handles),
    st.tuples(st.just(AllocationConfigKey()), allocation_configs),
    default_configurations,
    _named(ClusterInformationKey, cluster_informations),
    _named(IPPoolKey, pools()),
    _named(IPReservationKey, reservations),
)


def objects_of(recording):
    """(path, object) of every custom resource in any state of a recording."""
    recorded = json.loads((GOLDEN / recording).read_text())
    for state in [recorded["datastore_before"], *(step["datastore"] for step in recorded["steps"])]:
        for place, value in state.items():
            if not place.startswith("pods/"):
                yield place, value


def without_servers_own(value):
    value = copy.deepcopy(value)
    for name in SERVERS_OWN:
        value["metadata"].pop(name, None)
    return value


def block_object(**changes):
    spec = {
        "cidr": "10.0.0.0/30",
        "affinity": "host:n",
        "affinityClaimTime": "2026-11-29T13:06:12Z",
        "allocations": [0, None, None, None],
        "unallocated": [1, 2, 3],
        "attributes": [{"handle_id": "h", "secondary": {"node": "n"}}],
        "sequenceNumber": 1795957572345678901,
        "sequenceNumberForAllocation": {"0": 1795957572345678900},
        "deleted": False,
        "strictAffinity": False,
    }
    spec = {name: value for name, value in (spec | changes).items() if value is not ...}
    return {
        "apiVersion": V1,
        "kind": "IPAMBlock",
        "metadata": {"name": "10-0-0-0-30", "resourceVersion": "7", "annotations": {METADATA: "{}"}},
        "spec": spec,
    }


def affinity_object(name="n-10-0-0-0-30", **spec):
    spec = {"cidr": "10.0.0.0/30", "node": "n", "state": "confirmed", "type": "host", "deleted": "false"} | spec
    spec = {member: value for member, value in spec.items() if value is not ...}
    return {"apiVersion": V1, "kind": "BlockAffinity", "metadata": {"name": name}, "spec": spec}


def pool_object(annotation=None, **metadata):
    annotations = {} if annotation is None else {"annotations": {METADATA: annotation}}
    return {
        "apiVersion": V1,
        "kind": "IPPool",
        "metadata": {"name": "p", "resourceVersion": "9"} | annotations | metadata,
        "spec": {"cidr": "10.244.0.0/16"},
    }


# --- what the original wrote -----------------------------------------------------------------------------------------


def test_the_recordings_are_there():
    assert len(RECORDINGS) >= 21


@pytest.mark.parametrize("recording", RECORDINGS)
def test_what_the_original_wrote_is_written_back(recording):
    """Every block, affinity, handle and configuration of the recordings; other kinds the plugin never writes."""
    seen = 0
    for place, value in objects_of(recording):
        group = value["apiVersion"]
        stored = decode_object(value, group)
        assert object_path(stored.key, group) == f"/apis/{group}/{place}"
        assert stored.revision == value["metadata"]["resourceVersion"]
        again = json.loads(encode_object(stored.key, stored.record, group, stored.revision))
        assert decode_object(again, group).record is not None
        if place.split("/")[0] in WRITTEN:
            assert without_servers_own(again) == without_servers_own(value)
        seen += 1
    assert seen


@pytest.mark.parametrize("recording", RECORDINGS)
def test_pools_and_cluster_information_of_the_recordings_read_back(recording):
    """They were made by hand, without the annotation and with members that the original would leave out."""
    for place, value in objects_of(recording):
        if place.split("/")[0] not in WRITTEN:
            stored = decode_object(value, value["apiVersion"])
            text = encode_object(stored.key, stored.record, value["apiVersion"], stored.revision)
            assert decode_object(text, value["apiVersion"]) == stored
            spec = {name: member for name, member in value["spec"].items() if member is not False}
            assert json.loads(text)["spec"] == spec


# --- round trips -----------------------------------------------------------------------------------------------------


@given(custom_entries, groups)
def test_a_record_reads_back_from_its_object(entry, group):
    key, record = entry
    text = encode_object(key, record, group, "7")
    assert decode_object(text, group, key) == Stored(key, record, "7")
    assert decode_object(json.loads(text), group, key) == Stored(key, record, "7")


@given(custom_entries, groups)
def test_the_object_alone_says_which_record_it_is(entry, group):
    key, record = entry
    found = decode_object(encode_object(key, record, group, "7"), group).key
    assert found == (IPAMConfigurationKey("default") if isinstance(key, AllocationConfigKey) else key)


@given(custom_entries, groups)
def test_a_new_object_names_neither_revision_nor_uid(entry, group):
    """The server gives both; a uid in a POST would be refused or ignored."""
    key, record = entry
    written = json.loads(encode_object(key, record, group, uid="u"))
    assert not {"resourceVersion", "uid"} & set(written["metadata"])
    assert written["apiVersion"] == group


@given(custom_entries)
def test_only_the_first_group_has_the_annotation(entry):
    key, record = entry
    assert METADATA in json.loads(encode_object(key, record, V1))["metadata"]["annotations"]
    assert METADATA not in json.loads(encode_object(key, record, V3))["metadata"].get("annotations", {})


# --- how each kind is written ----------------------------------------------------------------------------------------


def test_a_new_block_has_every_member_that_the_schema_requires():
    """DATASTORE D.7, F, G.2: a list of attributes even when there are none, and strictAffinity."""
    block = Block(CIDR, "host:n", "2026-11-29T13:06:12Z", (None,) * 4, (0, 1, 2, 3), (), 7, {})
    assert json.loads(encode_object(BlockKey(CIDR), block, V1)) == {
        "apiVersion": V1,
        "kind": "IPAMBlock",
        "metadata": {"name": "10-0-0-0-30", "annotations": {METADATA: "{}"}},
        "spec": {
            "cidr": "10.0.0.0/30",
            "affinity": "host:n",
            "affinityClaimTime": "2026-11-29T13:06:12Z",
            "allocations": [None] * 4,
            "unallocated": [0, 1, 2, 3],
            "attributes": [],
            "sequenceNumber": 7,
            "sequenceNumberForAllocation": {},
            "deleted": False,
            "strictAffinity": False,
        },
    }
    nobodys = json.loads(encode_object(BlockKey(CIDR), block.replace(affinity=None, claimed_at=None), V3))
    assert not {"affinity", "affinityClaimTime"} & set(nobodys["spec"])


def test_an_affinity_says_its_labels_twice_in_the_first_group():
    """DATASTORE D.7, G.5; LIB-285: this is what brings an affinity without labels up to date."""
    key = AffinityKey(Owner("host", "node1"), CIDR)
    labels = {
        "projectcalico.org/affinity-type": "host",
        "projectcalico.org/hostname-hash": hostname_label("node1"),
        "projectcalico.org/ip-version": "4",
    }
    old = affinity_object(name="node1-10-0-0-0-30", node="node1", type=...)
    stored = decode_object(old, V1, key)
    first = json.loads(encode_object(key, stored.record, V1, "5"))
    assert first["metadata"] == {
        "name": "node1-10-0-0-0-30",
        "resourceVersion": "5",
        "labels": labels,
        "annotations": {METADATA: json.dumps({"labels": labels}, separators=(",", ":"))},
    }
    assert first["spec"]["type"] == "host"
    assert first["spec"]["deleted"] == "false"
    third = json.loads(encode_object(key, stored.record, V3, "5"))
    assert third["metadata"] == {"name": "node1-10-0-0-0-30", "resourceVersion": "5", "labels": labels}
    assert third["spec"]["deleted"] is False


def test_an_update_can_name_the_object_that_it_means():
    """DATASTORE D.4; LIB-213: the uid of a handle that was deleted and made again is another."""
    text = encode_object(HandleKey("net.Ab"), Handle({CIDR: 1}), V1, "5", "u-1")
    assert json.loads(text)["metadata"] == {
        "name": "net.ab",
        "resourceVersion": "5",
        "uid": "u-1",
        "annotations": {METADATA: "{}"},
    }
    assert json.loads(text)["spec"] == {"handleID": "net.Ab", "block": {"10.0.0.0/30": 1}, "deleted": False}
    assert object_uid(json.loads(text)) == "u-1"
    assert object_revision(json.loads(text)) == "5"


@pytest.mark.parametrize(("group", "kind"), [(V1, "IPAMConfig"), (V3, "IPAMConfiguration")])
def test_the_settings_are_one_object_for_both_keys(group, kind):
    """DATASTORE D.1: what etcd keeps in two records."""
    config = AllocationConfig(True, False, 3, "Disabled", 60)
    text = encode_object(AllocationConfigKey(), config, group, "5")
    written = json.loads(text)
    assert written["kind"] == kind
    assert written["spec"] == {
        "strictAffinity": True,
        "autoAllocateBlocks": False,
        "maxBlocksPerHost": 3,
        "kubeVirtVMAddressPersistence": "Disabled",
        "ipCooldownSeconds": 60,
    }
    assert decode_object(text, group, AllocationConfigKey()).record == config
    resource = decode_object(text, group).record
    assert resource == IPAMConfiguration(Metadata("default"), True, False, 3, "Disabled", 60)
    read_back = encode_object(IPAMConfigurationKey("default"), resource, group, "5")
    assert json.loads(read_back) == written


def test_unset_limits_are_left_out():
    """DATASTORE D.7: the server fills in its defaults."""
    spec = json.loads(encode_object(AllocationConfigKey(), AllocationConfig(kubevirt_persistence=None), V3))["spec"]
    assert spec == {"strictAffinity": False, "autoAllocateBlocks": True}


@pytest.mark.parametrize(
    ("key", "record"),
    [
        (BlockKey(CIDR), Block(Cidr.parse("10.0.0.4/30"), None, None, (None,) * 4, (0, 1, 2, 3), (), 0, {})),
        (IPPoolKey("p"), Pool(Metadata("q"), "10.0.0.0/16")),
    ],
)
def test_a_record_of_another_key_is_not_written(key, record):
    with pytest.raises(BadRecord):
        encode_object(key, record, V1)


# --- metadata --------------------------------------------------------------------------------------------------------


def test_metadata_are_kept_in_the_annotation():
    """DATASTORE D.4."""
    metadata = Metadata(
        "p",
        uid="3f2a9c10-7b4e-4d21-9a6f-0011223344ff",
        created=CREATED,
        labels={"a": "b", "projectcalico.org/x": "y"},
        annotations={"operator.tigera.io/z": "1", "kubectl": "2"},
    )
    written = json.loads(encode_object(IPPoolKey("p"), Pool(metadata, "10.0.0.0/16"), V1, "9"))["metadata"]
    kept = written["annotations"].pop(METADATA)
    assert written == {
        "name": "p",
        "resourceVersion": "9",
        "uid": "fc543908-de72-4d84-9af6-008844cc22ff",
        "labels": {"projectcalico.org/x": "y"},
        "annotations": {"operator.tigera.io/z": "1"},
    }
    assert json.loads(kept) == {
        "creationTimestamp": CREATED,
        "labels": {"a": "b", "projectcalico.org/x": "y"},
        "annotations": {"operator.tigera.io/z": "1", "kubectl": "2"},
    }


def test_an_object_that_somebody_made_by_hand_has_its_own_metadata():
    """DATASTORE D.4: no annotation; only the uid is converted."""
    stored = decode_object(
        pool_object(
            uid="fc543908-de72-4d84-9af6-008844cc22ff",
            creationTimestamp=CREATED,
            labels={"a": "b"},
            annotations={"kubectl": "2"},
            generation=3,
            managedFields=[{}],
            finalizers=["f"],
        ),
        V1,
    )
    assert stored.record.metadata == Metadata(
        "p",
        uid="3f2a9c10-7b4e-4d21-9a6f-0011223344ff",
        created=CREATED,
        labels={"a": "b"},
        annotations={"kubectl": "2"},
        unknown=(("finalizers", '["f"]'),),
    )


def test_the_annotation_wins_over_the_objects_own_metadata():
    """DATASTORE D.4."""
    annotation = '{"name":"other","uid":"x","labels":{"a":"1"},"annotations":{"c":"3"},"creationTimestamp":null}'
    value = pool_object(annotation, creationTimestamp=CREATED, labels={"a": "0", "b": "2"}, finalizers=["f"])
    value["metadata"]["annotations"]["d"] = "4"
    assert decode_object(value, V1).record.metadata == Metadata(
        "p", created=CREATED, labels={"a": "1", "b": "2"}, annotations={"c": "3", "d": "4"}
    )


@pytest.mark.parametrize("annotation", ["{}", '{"creationTimestamp":null}'])
def test_an_empty_annotation_reads(annotation):
    """DATASTORE D.4: what old and new versions write for an object without metadata."""
    assert decode_object(pool_object(annotation), V1).record == Pool(Metadata("p"), "10.244.0.0/16")


@pytest.mark.parametrize("annotation", ["", "{", "[]", '{"labels":[]}', '{"labels":{"a":1}}'])
def test_an_annotation_that_is_no_metadata_makes_the_object_unusable(annotation):
    with pytest.raises(BadRecord, match=r"^record ippool p is corrupt: .*projectcalico.org/metadata"):
        decode_object(pool_object(annotation), V1)


@pytest.mark.parametrize(
    ("group", "annotation", "usable"),
    [(V3, None, False), (V1, None, False), (V1, "{}", True)],
)
def test_a_pool_that_is_being_deleted_gives_no_addresses(group, annotation, usable):
    """DATASTORE D.4, D.8: in the first group the annotation hides the mark, as in the original."""
    value = pool_object(annotation, deletionTimestamp=CREATED, finalizers=["projectcalico.org/ippool-finalizer"])
    pool = decode_object(value, group).record
    assert pool.deleting != usable
    assert bool(enabled_pools([pool], 4)) == usable


def test_in_the_third_group_an_update_keeps_finalizers_and_owners():
    value = pool_object(finalizers=["f"], ownerReferences=[{"kind": "X"}], labels={"a": "b"}, uid="u")
    stored = decode_object(value, V3)
    written = json.loads(encode_object(stored.key, stored.record, V3, "9"))
    assert written["metadata"] == value["metadata"]


def test_cluster_information_made_by_hand_reads():
    value = {"kind": "ClusterInformation", "metadata": {"name": "default"}, "spec": {"datastoreReady": True}}
    record = decode_object(value, V1, ClusterInformationKey("default")).record
    assert record == ClusterInformation(Metadata("default"), datastore_ready=True)


# --- what others wrote -----------------------------------------------------------------------------------------------


def test_an_old_block_reads():
    """DATASTORE G.1."""
    value = block_object(
        allocations=[None] * 4,
        unallocated=[0, 1, 2, 3],
        attributes=None,
        affinity=...,
        affinityClaimTime=...,
        sequenceNumber=...,
        sequenceNumberForAllocation=...,
        deleted=...,
    )
    del value["metadata"]["annotations"]
    assert decode_object(value, V1).record == Block(CIDR, None, None, (None,) * 4, (0, 1, 2, 3), (), 0, {})


@pytest.mark.parametrize(
    ("spec", "affinity"),
    [
        ({"deleted": "true"}, Affinity("confirmed", True)),
        ({"deleted": True}, Affinity("confirmed", True)),
        ({"deleted": ""}, Affinity("confirmed")),
        ({"deleted": ..., "state": ..., "type": ...}, Affinity("")),
        ({"state": None, "deleted": False, "type": ""}, Affinity("")),
    ],
)
@pytest.mark.parametrize("group", [V1, V3])
def test_old_spellings_of_an_affinity_read(group, spec, affinity):
    """DATASTORE G.1."""
    stored = decode_object(affinity_object(**spec), group)
    assert stored.key == AffinityKey(Owner("host", "n"), CIDR)
    assert stored.record == affinity


@pytest.mark.parametrize(
    ("value", "deleted"),
    [
        (affinity_object(deleted="true"), True),
        (affinity_object(deleted=True), True),
        (affinity_object(deleted="false"), False),
        (affinity_object(deleted=...), False),
        (block_object(deleted=True), True),
        (block_object(), False),
        ({"spec": None}, False),
        ([], False),
    ],
)
def test_an_object_that_waits_for_its_removal_is_recognised(value, deleted):
    """DATASTORE D.6."""
    assert is_deleted(value) == deleted


@pytest.mark.parametrize(
    ("handle", "found"), [("net.AbC", "net.AbC"), ("net.abc\r\nx", "net.abc"), (None, "net.abc"), ("", "net.abc")]
)
def test_the_spec_knows_the_case_of_a_handle(handle, found):
    """DATASTORE D.5, G.1: handles of old versions end in `\\r…`."""
    value = {"kind": "IPAMHandle", "metadata": {"name": "net.abc"}, "spec": {"handleID": handle, "block": {}}}
    assert decode_object(value, V1).key == HandleKey(found)


def test_unknown_members_of_a_spec_and_of_an_attribute_survive():
    """DATASTORE G.4."""
    value = block_object(later={"a": [1]}, attributes=[{"handle_id": "h", "secondary": {"vmi-uid": "u"}, "x": 1}])
    stored = decode_object(value, V1)
    assert json.loads(encode_object(stored.key, stored.record, V1, "7"))["spec"] == value["spec"]


def test_large_sequence_numbers_stay_exact():
    """DATASTORE B."""
    text = json.dumps(block_object())
    assert decode_object(text, V1).record.sequence == 1795957572345678901


# --- objects that cannot be used -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (block_object(unallocated=[0, 1, 2, 3]), "ipamblock 10-0-0-0-30 is corrupt: unallocated lists ordinal 0"),
        (block_object(allocations=[0]), "ipamblock 10-0-0-0-30 is corrupt: allocations has 1 entries"),
        (block_object(cidr="10.0.0.4/30"), "ipamblock 10-0-0-0-30 is corrupt: its name is '10-0-0-0-30', but it"),
        (block_object(cidr="x"), "ipamblock 10-0-0-0-30 is corrupt: invalid IP address: x"),
        (
            block_object(affinityClaimTime="yesterday"),
            "ipamblock 10-0-0-0-30 is corrupt: spec.affinityClaimTime is ",
        ),
        (block_object(cidr=...), "ipamblock 10-0-0-0-30 is corrupt: spec.cidr must be a string that is not empty"),
        (affinity_object(node=""), "blockaffinity n-10-0-0-0-30 is corrupt: spec.node must be a string"),
        (affinity_object(node="m"), "blockaffinity n-10-0-0-0-30 is corrupt: its name is 'n-10-0-0-0-30', but it"),
        (affinity_object(deleted="maybe"), "blockaffinity n-10-0-0-0-30 is corrupt: deleted must be a boolean"),
        (affinity_object(type=7), "blockaffinity n-10-0-0-0-30 is corrupt: spec.type must be a string"),
        ({"kind": "IPAMHandle", "metadata": {"name": "h"}, "spec": {"block": []}}, "ipamhandle h is corrupt"),
        ({"kind": "IPPool", "metadata": {"name": "p"}, "spec": []}, "ippool p is corrupt: spec must be an object"),
        ({"kind": "Pod", "metadata": {"name": "p"}}, "pod p is corrupt: kind 'Pod' is none of ours"),
        ({"kind": "IPPool", "metadata": []}, "record of an unknown kind is corrupt: metadata must be an object"),
        ("{", "record of an unknown kind is corrupt: unexpected end of JSON input"),
        ([], "record of an unknown kind is corrupt: the record must be an object"),
    ],
)
def test_an_object_that_cannot_be_used_is_named_with_its_fault(value, shown):
    """K03."""
    with pytest.raises(BadRecord) as caught:
        decode_object(value, V1)
    assert shown in str(caught.value)
    assert isinstance(caught.value, Refused)


@pytest.mark.parametrize("wanted", [BlockKey(Cidr.parse("10.0.0.4/30")), HandleKey("h"), AllocationConfigKey()])
def test_an_object_that_answers_for_another_is_refused(wanted):
    with pytest.raises(BadRecord) as caught:
        decode_object(block_object(), V1, wanted)
    assert caught.value.key == wanted
    assert caught.value.fault == "it describes ipamblock 10-0-0-0-30"


def test_a_virtual_owners_affinity_is_not_taken_for_the_hosts():
    """DATASTORE D.5: the name does not tell them apart, the spec does."""
    with pytest.raises(BadRecord, match=r"it describes blockaffinity n-10-0-0-0-30 \(virtual\)"):
        decode_object(affinity_object(type="virtual"), V1, AffinityKey(Owner("host", "n"), CIDR))


def test_an_item_without_a_kind_is_what_was_asked_for():
    value = block_object()
    del value["kind"], value["apiVersion"]
    assert decode_object(value, V1, BlockKey(CIDR)).revision == "7"
