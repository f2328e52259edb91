"""What the Kubernetes datastore promises about Calico's own records: the original's objects and marks, few requests.

Derive a class named `Test…`; see `contracts.kubernetes_pods.OnKubernetes` for the fixtures that it needs.
"""

from __future__ import annotations

import time
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from adapters.records.custom_metadata import converted_uid
from adapters.records.members import BadRecord
from contracts.datastore import HOST_A, HOST_AB, SOON, V4_BLOCK, V6_BLOCK, RecordContract, empty_block, endpoint, keys
from contracts.kubernetes_pods import WEB, OnKubernetes
from domain.cluster import ClusterInformation
from domain.ipam.address import Cidr
from domain.ipam.block import Affinity, Handle, Owner
from domain.ipam.pools import AllocationConfig, IPAMConfiguration, IPReservation, Pool
from domain.resource import Metadata
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    ClusterInformationKey,
    ClusterInformations,
    HandleKey,
    Handles,
    IPAMConfigurationKey,
    IPAMConfigurations,
    IPPoolKey,
    IPPools,
    IPReservationKey,
    IPReservations,
    NodeKey,
    Profiles,
)
from ports.errors import AlreadyExists, Conflict, Refused
from services.fake_apiserver import GROUPS

PLURALS = {BlockKey: "ipamblocks", AffinityKey: "blockaffinities", HandleKey: "ipamhandles"}
IPAM_RECORDS = [
    (BlockKey(V4_BLOCK), empty_block(V4_BLOCK), "10-0-0-64-30"),
    (AffinityKey(HOST_A, V6_BLOCK), Affinity("confirmed"), "node-a-fd00--40-126"),
    (HandleKey("net1.C1"), Handle({V4_BLOCK: 1}), "net1.c1"),
]
LABELS = ("projectcalico.org/affinity-type", "projectcalico.org/hostname-hash", "projectcalico.org/ip-version")
NODE_A_HASH = "PY3TQE2E3XMTETLM2MJO3UITKPFB27YUJ4T4E5XGPEJON3SM4QAA"

# Records as a server with complete schemas keeps them: without members that it does not know, without marks.
_plain = {"unknown": ()}
_small = strategies.blocks(max_size=16).map(
    lambda block: block.replace(
        **_plain,
        deleted=False,
        attributes=tuple(one.replace(unknown=()) for one in block.attributes),
        sequence=min(block.sequence, 2**62),
        sequences={at: min(number, 2**62) for at, number in block.sequences.items()},
    )
)
ipam_records = st.one_of(
    _small.map(lambda block: (BlockKey(block.cidr), block)),
    st.tuples(
        st.builds(AffinityKey, strategies.owners, strategies.cidrs()),
        strategies.affinities.map(lambda one: one.replace(deleted=False, **_plain)),
    ),
    st.tuples(
        st.builds(HandleKey, strategies.handles_ids),
        strategies.handles.map(lambda one: one.replace(deleted=False, **_plain)),
    ),
    st.tuples(st.just(AllocationConfigKey()), strategies.allocation_configs.map(lambda one: one.replace(**_plain))),
)


class KubernetesDatastoreContract(OnKubernetes, RecordContract):
    # --- objects ---------------------------------------------------------------------------------------------------

    @settings(
        max_examples=25,
        deadline=None,  # a busy server must not fail the test
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(ipam_records)
    def test_any_record_is_kept_as_it_is(self, store, drawn):
        key, record = drawn
        held = store.get(key, SOON)
        written = store.update(key, record, held.revision, SOON) if held else store.create(key, record, SOON)
        try:
            assert written.record == record
            assert store.get(key, SOON) == written
        finally:
            store.delete(key, written.revision, SOON)

    def test_a_resource_gets_uid_and_creation_time_when_it_is_created(self, store, client, root, group):
        created = store.create(IPReservationKey("r"), IPReservation(Metadata("r"), ("10.0.0.0/30",)), SOON)
        uid = client.find(f"{root}/ipreservations/r")["metadata"]["uid"]
        assert created.record.metadata.uid == (converted_uid(uid) if group == "v1" else uid)
        assert uuid.UUID(created.record.metadata.uid).version == 4
        assert created.record.metadata.created.endswith("Z")
        assert store.get(IPReservationKey("r"), SOON) == created

    def test_a_resource_can_be_changed_and_deleted(self, store):
        created = store.create(IPPoolKey("p"), Pool(Metadata("p", labels={"a": "b"}), "10.0.0.0/16"), SOON)
        updated = store.update(created.key, created.record.replace(disabled=True), created.revision, SOON)
        assert updated.record == created.record.replace(disabled=True)
        assert updated.record.metadata.labels == {"a": "b"}
        assert store.list(IPPools(), SOON) == (updated,)
        with pytest.raises(Conflict):
            store.delete(created.key, created.revision, SOON)
        store.delete(created.key, updated.revision, SOON)
        assert store.list(IPPools(), SOON) == ()

    def test_resources_of_different_kinds_do_not_meet(self, store):
        pool = store.create(IPPoolKey("x"), Pool(Metadata("x"), "10.0.0.0/16"), SOON)
        reservation = store.create(IPReservationKey("x"), IPReservation(Metadata("x"), ("10.0.0.0/30",)), SOON)
        info = store.create(ClusterInformationKey("x"), ClusterInformation(Metadata("x"), datastore_ready=True), SOON)
        assert store.list(IPPools(), SOON) == (pool,)
        assert store.list(IPReservations(), SOON) == (reservation,)
        assert store.list(ClusterInformations(), SOON) == (info,)

    def test_a_record_under_the_key_of_another_is_refused(self, store):
        with pytest.raises(BadRecord, match="its name is 'b'"):
            store.create(IPPoolKey("a"), Pool(Metadata("b"), "10.0.0.0/16"), SOON)
        with pytest.raises(BadRecord, match="its cidr is"):
            store.create(BlockKey(V4_BLOCK), empty_block(V6_BLOCK), SOON)
        with pytest.raises(BadRecord, match="its name is"):
            store.create(WEB, endpoint("gold", "w"), SOON)
        with pytest.raises(BadRecord, match="its namespace is"):
            store.create(WEB, endpoint("other", WEB.name), SOON)

    @pytest.mark.parametrize("handle", ["", "net1/c1", "net1.\ud800", "..", "a%2Fb"])
    def test_a_name_that_no_object_can_have_is_refused(self, store, recorded, handle):
        with pytest.raises(BadRecord, match="cannot be the name of an object"):
            store.create(HandleKey(handle), Handle({}), SOON)
        assert recorded.log == []

    def test_a_name_that_the_server_does_not_take_is_refused_in_its_words(self, store):
        with pytest.raises(Refused, match="RFC 1123 subdomain"):
            store.create(HandleKey("net_1.c1"), Handle({}), SOON)
        assert store.get(HandleKey("net_1.c1"), SOON) is None

    def test_a_list_is_in_the_order_of_object_names(self, store):
        for name in ("b", "a.2", "a", "a.10", "C"):
            store.create(HandleKey(name), Handle({}), SOON)
        assert [one.key.handle for one in store.list(Handles(), SOON)] == ["a", "a.10", "a.2", "b", "C"]

    def test_two_handles_that_differ_in_case_only_are_never_taken_for_each_other(self, store):
        """They would be one object."""
        held = store.create(HandleKey("net1.C1"), Handle({}), SOON)
        with pytest.raises(AlreadyExists):
            store.create(HandleKey("net1.c1"), Handle({}), SOON)
        with pytest.raises(BadRecord, match=r"it describes ipamhandle net1.C1"):
            store.get(HandleKey("net1.c1"), SOON)
        assert store.get(HandleKey("net1.C1"), SOON) == held

    def test_affinities_are_listed_by_owner_and_version(self, store):
        virtual = Owner("virtual", "node-v")
        for owner in (HOST_AB, HOST_A, virtual):
            for cidr in (V6_BLOCK, V4_BLOCK):
                store.create(AffinityKey(owner, cidr), Affinity("confirmed"), SOON)

        def listed(owner, version=None):
            return [(one.key.owner, one.key.cidr) for one in store.list(Affinities(owner, version), SOON)]

        assert listed(HOST_A) == [(HOST_A, V4_BLOCK), (HOST_A, V6_BLOCK)]
        assert listed(HOST_A, 6) == [(HOST_A, V6_BLOCK)]
        assert listed(virtual, 4) == [(virtual, V4_BLOCK)]
        assert listed(Owner("virtual", "node-a")) == []
        assert listed(Owner("host", ""), 4) == [(HOST_A, V4_BLOCK), (HOST_AB, V4_BLOCK)]
        assert len(listed(Owner("host", ""))) == 4

    def test_a_listing_that_may_lag_shows_before_long_what_the_other_shows_at_once(self, store):
        for owner in (HOST_AB, HOST_A):
            for cidr in (V6_BLOCK, V4_BLOCK):
                store.create(AffinityKey(owner, cidr), Affinity("confirmed"), SOON)
        now = store.list(Affinities(HOST_A, 4), SOON)
        assert [one.key.cidr for one in now] == [V4_BLOCK]
        until = time.monotonic() + 20
        while store.list(Affinities(HOST_A, 4, may_lag=True), SOON) != now:
            assert time.monotonic() < until

    def test_affinities_carry_the_labels_by_which_they_are_listed_through_every_change(self, store, client, root):
        """DATASTORE G.5: a PUT replaces metadata."""
        created = store.create(AffinityKey(HOST_A, V4_BLOCK), Affinity("pending"), SOON)
        store.update(created.key, Affinity("confirmed"), created.revision, SOON)
        labels = client.find(f"{root}/blockaffinities/node-a-10-0-0-64-30")["metadata"]["labels"]
        assert labels == dict(zip(LABELS, ("host", NODE_A_HASH, "4")))

    def test_a_label_finds_an_affinity_but_its_spec_says_whose_it_is(self, store, client, root):
        """DATASTORE G.3."""
        store.create(AffinityKey(HOST_AB, V4_BLOCK), Affinity("confirmed"), SOON)
        labels = dict(zip(LABELS, ("host", NODE_A_HASH, "4")))
        client.patch(f"{root}/blockaffinities/node-ab-10-0-0-64-30", {"metadata": {"labels": labels}})
        assert store.list(Affinities(HOST_A, 4), SOON) == ()
        assert len(store.list(Affinities(Owner("host", ""), 4), SOON)) == 1

    def test_both_records_of_settings_are_one_object(self, store, recorded):
        created = store.create(AllocationConfigKey(), AllocationConfig(max_blocks_per_host=3), SOON)
        before = len(recorded.log)
        settings, resource = store.fetch(AllocationConfigKey(), IPAMConfigurationKey("default"), deadline=SOON)
        assert len(recorded.log) == before + 1
        assert settings == created
        assert isinstance(resource.record, IPAMConfiguration)
        assert (resource.record.max_blocks_per_host, resource.revision) == (3, created.revision)
        store.update(resource.key, resource.record.replace(strict_affinity=True), resource.revision, SOON)
        assert store.get(AllocationConfigKey(), SOON).record.strict_affinity
        assert keys(store.list(IPAMConfigurations(), SOON)) == ["IPAMConfiguration(default)"]

    def test_everything_asked_at_once_is_sent_at_once(self, store, recorded, gold):
        needs = (HandleKey("a"), Blocks(4), Affinities(HOST_A), HandleKey("a"), NodeKey("node-a"), WEB)
        store.fetch(*needs, deadline=SOON)
        assert recorded.rounds == [5]

    # --- deletion --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(("key", "record", "name"), IPAM_RECORDS)
    def test_a_deletion_is_one_request_for_one_version(self, store, recorded, key, record, name):
        """LIB-211, LIB-212, LIB-213: what was made again is not deleted for what was there before."""
        first = store.create(key, record, SOON)
        store.delete(key, first.revision, SOON)
        second = store.create(key, record, SOON)
        with pytest.raises(Conflict):
            store.delete(key, first.revision, SOON)
        assert store.get(key, SOON) == second
        before = len(recorded.log)
        store.delete(key, second.revision, SOON)
        assert [line.split()[0] for line in recorded.log[before:]] == ["DELETE"]
        assert store.get(key, SOON) is None

    @pytest.fixture
    def marked(self, store, client, root):
        """Marks an IPAM record as deleted, as the original does before it removes it."""

        def mark(key, record, name):
            store.create(key, record, SOON)
            store.update(key, record.replace(deleted=True), client.version(f"{root}/{PLURALS[type(key)]}/{name}"), SOON)

        client.version = lambda path: client.find(path)["metadata"]["resourceVersion"]
        return mark

    @pytest.mark.parametrize(("key", "record", "name"), IPAM_RECORDS)
    def test_reading_a_marked_record_ends_its_deletion(self, store, client, root, marked, key, record, name):
        """L10, DATASTORE D.6."""
        marked(key, record, name)
        path = f"{root}/{PLURALS[type(key)]}/{name}"
        assert client.find(path)["spec"]["deleted"] in (True, "true")
        assert store.get(key, SOON) is None
        assert client.find(path) is None

    @pytest.mark.parametrize(("key", "record", "name"), IPAM_RECORDS)
    def test_a_record_is_made_again_over_one_that_is_marked_as_deleted(self, store, marked, key, record, name):
        marked(key, record, name)
        created = store.create(key, record, SOON)
        assert store.get(key, SOON) == created

    def test_lists_leave_out_what_is_marked_as_deleted(self, store, client, root, marked):
        for key, record, name in IPAM_RECORDS:
            marked(key, record, name)
        assert store.fetch(Blocks(), Affinities(HOST_A), Handles(), deadline=SOON) == ((), (), ())
        assert store.unreadable(SOON) == ()
        assert client.find(f"{root}/ipamhandles/net1.c1") is not None

    # --- objects that are no records -------------------------------------------------------------------------------

    @pytest.fixture
    def corrupt(self, client, root, group):
        """Blocks 10.0.0.68/30 and 10.0.0.72/30 as a server takes them, but no one can use."""
        spec = {"affinity": "host:node-a", "unallocated": [1, 2, 3], "attributes": [{}], "strictAffinity": False}
        kind = {"kind": "IPAMBlock", "apiVersion": GROUPS[group]}
        broken = spec | {"cidr": "10.0.0.68/30", "allocations": [1, None, None, None]}
        wrong = spec | {"cidr": "10.0.0.76/30", "allocations": [0, None, None, None]}
        client.create(f"{root}/ipamblocks", {**kind, "metadata": {"name": "10-0-0-68-30"}, "spec": broken})
        client.create(f"{root}/ipamblocks", {**kind, "metadata": {"name": "10-0-0-72-30"}, "spec": wrong})
        return [BlockKey(Cidr.parse("10.0.0.68/30")), BlockKey(Cidr.parse("10.0.0.72/30"))]

    def test_a_list_leaves_out_corrupt_records_and_a_get_names_them(self, store, corrupt):
        """K03."""
        good = store.create(BlockKey(V4_BLOCK), empty_block(V4_BLOCK), SOON)
        assert store.list(Blocks(4), SOON) == (good,)
        with pytest.raises(BadRecord, match=r"record ipamblock 10-0-0-68-30 is corrupt: allocations\[0\] is 1"):
            store.get(corrupt[0], SOON)
        with pytest.raises(BadRecord, match=r"describes ipamblock 10-0-0-76-30"):
            store.get(corrupt[1], SOON)

    def test_a_corrupt_record_can_be_deleted(self, store, corrupt):
        store.delete(corrupt[0], None, SOON)
        assert store.get(corrupt[0], SOON) is None

    def test_corrupt_records_are_told_with_their_faults(self, store, corrupt):
        store.create(HandleKey("h"), Handle({}), SOON)
        told = store.unreadable(SOON)
        assert [one.key for one in told] == corrupt
        assert "10-0-0-72-30" in told[1].fault
        assert store.unreadable(SOON, Blocks()) == told
        assert store.unreadable(SOON, Handles()) == store.unreadable(SOON, Profiles()) == ()

    def test_a_corrupt_record_can_be_replaced_under_its_revision(self, store, corrupt):
        """With what still makes sense of it: nothing, where it describes another block."""
        bad, wrong = store.unreadable(SOON)
        assert (bad.salvage.affinity, bad.salvage.is_consistent()) == ("host:node-a", True)
        assert wrong.salvage.affinity is None
        stored = store.update(bad.key, bad.salvage, bad.revision, SOON)
        assert store.get(corrupt[0], SOON).record == stored.record == bad.salvage
        with pytest.raises(Conflict):
            store.update(bad.key, bad.salvage, bad.revision, SOON)
        store.delete(wrong.key, wrong.revision, SOON)
        assert store.unreadable(SOON) == ()

    def test_a_handle_that_does_not_say_which_goes_by_its_name(self, store, client, root, group):
        kind = {"kind": "IPAMHandle", "apiVersion": GROUPS[group]}
        spec = {"handleID": "net1.other", "block": {"10.0.0.64/30": 1}, "deleted": False}
        client.create(f"{root}/ipamhandles", {**kind, "metadata": {"name": "net1.c1"}, "spec": spec})
        (bad,) = store.unreadable(SOON)
        assert (bad.key, bad.salvage) == (HandleKey("net1.c1"), None)
        store.update(bad.key, Handle({V4_BLOCK: 1}), bad.revision, SOON)
        assert store.get(HandleKey("net1.c1"), SOON).record == Handle({V4_BLOCK: 1})

    # --- old affinities --------------------------------------------------------------------------------------------

    def test_affinities_of_old_versions_get_their_labels(self, store, client, root, group):
        """LIB-285: the node's own, and no others."""
        for node, name, block in (
            ("host-a", "host-a-10-10-0-0-26", "10.10.0.0/26"),
            ("host-a", "host-a-10-10-0-64-26", "10.10.0.64/26"),
            ("host-b", "host-b-10-10-1-0-26", "10.10.1.0/26"),
        ):
            deleted = "false" if group == "v1" else False
            spec = {"state": "confirmed", "node": node, "cidr": block, "deleted": deleted}
            made = {"kind": "BlockAffinity", "apiVersion": GROUPS[group], "metadata": {"name": name}, "spec": spec}
            client.create(f"{root}/blockaffinities", made)
        host_a = Owner("host", "host-a")
        assert store.list(Affinities(host_a), SOON) == ()
        store.upgrade_affinities(host_a, SOON)
        assert keys(store.list(Affinities(host_a, 4), SOON)) == [
            "BlockAffinityKey(cidr=10.10.0.0/26, host=host-a, affinityType=host)",
            "BlockAffinityKey(cidr=10.10.0.64/26, host=host-a, affinityType=host)",
        ]
        upgraded = client.find(f"{root}/blockaffinities/host-a-10-10-0-0-26")
        assert set(upgraded["metadata"]["labels"]) == set(LABELS)
        assert upgraded["spec"]["state"] == "confirmed"
        assert "labels" not in client.find(f"{root}/blockaffinities/host-b-10-10-1-0-26")["metadata"]
