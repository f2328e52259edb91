"""What the Kubernetes datastore promises beyond the port: the original's objects and marks, pods as endpoints.

Derive a class named `Test…` and give it: `group` (a key of `fake_apiserver.GROUPS`); `client`, an administrator of an
empty server that serves it (KubeClient or FakeApiserver); `recorded`, a Recorded transport to it; `clock`.
`KubernetesClusterContract` wants the same.
"""

from __future__ import annotations

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from adapters.kubernetes.api import Api
from adapters.kubernetes.cluster import KubernetesCluster
from adapters.kubernetes.datastore import KubernetesDatastore
from adapters.records.bad_record import BadRecord
from adapters.records.custom_metadata import converted_uid
from contracts_cluster import ClusterContract
from contracts_datastore import HOST_A, HOST_AB, SOON, V4_BLOCK, V6_BLOCK, RecordContract, empty_block, endpoint, keys
from domain.cluster import ClusterInformation
from domain.ipam.address import Address, Cidr
from domain.ipam.affinity import Affinity, Owner
from domain.ipam.config import AllocationConfig, IPAMConfiguration
from domain.ipam.handle import Handle
from domain.ipam.pools import Pool
from domain.ipam.reservations import Reservation
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from domain.workload.profiles import Profile
from fake_apiserver import GROUPS
from ports.cluster import NoSuchObject
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
    Nodes,
    ProfileKey,
    Profiles,
    WorkloadEndpointKey,
    WorkloadEndpoints,
)
from ports.errors import AlreadyExists, Conflict, Missing, Refused

PLURALS = {BlockKey: "ipamblocks", AffinityKey: "blockaffinities", HandleKey: "ipamhandles"}
IPAM_RECORDS = [
    (BlockKey(V4_BLOCK), empty_block(V4_BLOCK), "10-0-0-64-30"),
    (AffinityKey(HOST_A, V6_BLOCK), Affinity("confirmed"), "node-a-fd00--40-126"),
    (HandleKey("net1.C1"), Handle({V4_BLOCK: 1}), "net1.c1"),
]
LABELS = ("projectcalico.org/affinity-type", "projectcalico.org/hostname-hash", "projectcalico.org/ip-version")
NODE_A_HASH = "PY3TQE2E3XMTETLM2MJO3UITKPFB27YUJ4T4E5XGPEJON3SM4QAA"
PODS = "/api/v1/namespaces/gold/pods"
WEB = WorkloadEndpointKey("gold", "node--a-k8s-web--0-eth0")
ADDRESSES = "cni.projectcalico.org/podIP", "cni.projectcalico.org/podIPs"

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


def pod_object(name: str, *, node: str = "node-a", annotations: dict | None = None, **spec) -> dict:
    containers = [{"name": "web", "image": "web", "ports": [{"name": "http", "containerPort": 80}]}]
    scheduled = {"nodeName": node} if node else {}
    metadata = {"name": name, "namespace": "gold", "labels": {"app": "web"}, "annotations": annotations or {}}
    spec = {"containers": containers, "serviceAccountName": "default", **scheduled, **spec}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


class OnKubernetes:
    @pytest.fixture
    def api(self, recorded, clock):
        return Api(recorded, clock)

    @pytest.fixture
    def store(self, api, clock, group):
        return KubernetesDatastore(api, clock, group=GROUPS[group])

    @pytest.fixture
    def root(self, group):
        return f"/apis/{GROUPS[group]}"

    @pytest.fixture
    def gold(self, client):
        """A namespace and a pod in it that is scheduled and has no address yet."""
        client.create("/api/v1/namespaces", {"metadata": {"name": "gold", "labels": {"team": "red"}}})
        client.create(PODS, pod_object("web-0"))
        return client


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
        created = store.create(IPReservationKey("r"), Reservation(Metadata("r"), ("10.0.0.0/30",)), SOON)
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
        reservation = store.create(IPReservationKey("x"), Reservation(Metadata("x"), ("10.0.0.0/30",)), SOON)
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
        with pytest.raises(BadRecord, match=r"it describes IPAMHandleKey\(id=net1.C1\)"):
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

    def test_affinities_carry_the_labels_by_which_they_are_listed_through_every_change(self, store, client, root):
        """DATASTORE G.5: a PUT replaces metadata."""
        created = store.create(AffinityKey(HOST_A, V4_BLOCK), Affinity("pending"), SOON)
        store.update(created.key, Affinity("confirmed"), created.revision, SOON)
        labels = client.find(f"{root}/blockaffinities/node-a-10-0-0-64-30")["metadata"]["labels"]
        assert labels == dict(zip(LABELS, ("host", NODE_A_HASH, "4")))

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
        with pytest.raises(BadRecord, match=r"record BlockKey\(cidr=10.0.0.68/30\) is corrupt: allocations\[0\] is 1"):
            store.get(corrupt[0], SOON)
        with pytest.raises(BadRecord, match=r"10\.0\.0\.76/30"):
            store.get(corrupt[1], SOON)

    def test_a_corrupt_record_can_be_deleted(self, store, corrupt):
        store.delete(corrupt[0], None, SOON)
        assert store.get(corrupt[0], SOON) is None

    def test_corrupt_records_are_told_with_their_faults(self, store, corrupt):
        store.create(HandleKey("h"), Handle({}), SOON)
        told = store.unreadable(SOON)
        assert len(told) == 2
        assert told[0].key == corrupt[0]
        assert "10-0-0-72-30" in told[1].fault

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

    # --- endpoints -------------------------------------------------------------------------------------------------

    def endpoint(self, *addresses: str) -> WorkloadEndpoint:
        networks = tuple(Address.parse(text).host_cidr for text in addresses)
        return WorkloadEndpoint(Metadata(WEB.name, "gold"), container_id="c1", ip_networks=networks)

    def annotations(self, client, name: str = "web-0") -> dict[str, str]:
        return client.find(f"{PODS}/{name}")["metadata"].get("annotations") or {}

    def test_a_pod_is_an_endpoint_before_anybody_wrote_one(self, store, gold):
        """CNI-PLUGIN 4.1: one GET of one pod."""
        stored = store.get(WEB, SOON)
        assert (stored.key, stored.record.pod, stored.record.node) == (WEB, "web-0", "node-a")
        assert stored.record.profiles == ("kns.gold", "ksa.gold.default")
        assert stored.record.ip_networks == ()
        assert store.list(WorkloadEndpoints("gold", "node--a-k8s-web--0-"), SOON) == (stored,)

    def test_an_endpoint_is_looked_up_by_one_request_for_one_pod(self, store, gold, recorded):
        store.list(WorkloadEndpoints("gold", "node--a-k8s-web--0-"), SOON)
        store.get(WEB, SOON)
        assert recorded.log == [f"GET {PODS}/web-0"]

    def test_pods_that_are_no_endpoints(self, store, gold):
        gold.create(PODS, pod_object("host", hostNetwork=True))
        gold.create(PODS, pod_object("waits", node=""))
        for name in ("node--a-k8s-host-eth0", "node--a-k8s-waits-eth0", "node--b-k8s-web--0-eth0", "x-k8s-no-eth0"):
            assert store.get(WorkloadEndpointKey("gold", name), SOON) is None
        assert store.list(WorkloadEndpoints("gold", "node--a-k8s-waits-"), SOON) == ()
        assert store.list(WorkloadEndpoints("gold", "node--a-k8s-no-"), SOON) == ()
        assert keys(store.list(WorkloadEndpoints("gold"), SOON)) == [str(WEB)]
        assert str(WEB) in keys(store.list(WorkloadEndpoints(), SOON))

    def test_containers_that_are_no_pods_have_no_endpoints(self, store, recorded):
        text = (
            r"resource does not exist: WorkloadEndpoint\(default/node--a-cni-c1-?(eth0)?\) with error: "
            "malformed WorkloadEndpoint name - unable to determine Pod name"
        )
        key = WorkloadEndpointKey("default", "node--a-cni-c1-eth0")
        with pytest.raises(Missing, match=text):
            store.list(WorkloadEndpoints("default", "node--a-cni-c1-"), SOON)
        with pytest.raises(Missing, match=text):
            store.create(key, endpoint("default", key.name), SOON)
        with pytest.raises(Missing):
            store.delete(key, None, SOON)
        assert store.get(key, SOON) is None
        assert recorded.log == []

    def test_writing_an_endpoint_annotates_its_pod_and_leaves_all_else(self, store, gold, recorded):
        gold.patch(f"{PODS}/web-0", {"metadata": {"annotations": {"mine": "yes"}}})
        written = store.create(WEB, self.endpoint("10.0.0.65", "fd00::41"), SOON)
        assert self.annotations(gold) == {
            "mine": "yes",
            "cni.projectcalico.org/containerID": "c1",
            "cni.projectcalico.org/podIP": "10.0.0.65/32",
            "cni.projectcalico.org/podIPs": "10.0.0.65/32,fd00::41/128",
        }
        assert recorded.log == [f"PATCH {PODS}/web-0/status"]
        assert store.get(WEB, SOON) == written
        assert written.record.container_id == "c1"
        assert [str(network) for network in written.record.ip_networks] == ["10.0.0.65/32", "fd00::41/128"]

    def test_writing_an_endpoint_does_not_mind_other_changes_of_the_pod(self, store, gold):
        """R07."""
        held = store.get(WEB, SOON)
        gold.patch(f"{PODS}/web-0", {"metadata": {"labels": {"x": "1"}}})
        written = store.update(WEB, self.endpoint("10.0.0.65"), held.revision, SOON)
        assert written.record.metadata.labels["x"] == "1"
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == "10.0.0.65/32"

    def test_an_endpoint_of_a_pod_that_is_gone_cannot_be_written(self, store, gold):
        gold.delete(f"{PODS}/web-0")
        with pytest.raises(Missing, match='pods "web-0" not found'):
            store.create(WEB, self.endpoint("10.0.0.65"), SOON)
        with pytest.raises(Missing):
            store.delete(WEB, None, SOON)

    def test_deleting_an_endpoint_takes_its_addresses_away(self, store, gold):
        written = store.create(WEB, self.endpoint("10.0.0.65"), SOON)
        store.delete(WEB, written.revision, SOON)
        annotations = self.annotations(gold)
        assert [annotations[name] for name in ADDRESSES] == ["", ""]
        assert annotations["cni.projectcalico.org/containerID"] == "c1"

    def test_deleting_an_endpoint_at_any_version(self, store, gold, clock):
        store.create(WEB, self.endpoint("10.0.0.65"), SOON)
        store.delete(WEB, None, SOON)
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == ""
        clock.advance(3)
        store.delete(WEB, None, SOON)

    def test_an_endpoint_that_has_changed_since_is_not_deleted(self, store, gold):
        written = store.create(WEB, self.endpoint("10.0.0.65"), SOON)
        gold.patch(f"{PODS}/web-0", {"metadata": {"labels": {"x": "1"}}})
        with pytest.raises(Conflict):
            store.delete(WEB, written.revision, SOON)
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == "10.0.0.65/32"
        store.delete(WEB, store.get(WEB, SOON).revision, SOON)
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == ""

    def test_the_endpoint_of_a_later_pod_of_that_name_is_not_deleted(self, store, gold, clock):
        written = store.create(WEB, self.endpoint("10.0.0.65"), SOON)
        gold.delete(f"{PODS}/web-0")
        gold.create(PODS, pod_object("web-0", annotations=dict.fromkeys(ADDRESSES, "10.0.0.66/32")))
        with pytest.raises((Missing, Conflict)):
            store.delete(WEB, written.revision, SOON)
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == "10.0.0.66/32"
        version = gold.find(f"{PODS}/web-0")["metadata"]["resourceVersion"]
        with pytest.raises(Missing):
            store.delete(WEB, f"{version}/{written.revision.split('/')[1]}", SOON)

    def test_taking_nothing_away_needs_no_request(self, store, gold, recorded):
        """A repeated DEL, and one of a pod that never had an address."""
        held = store.get(WEB, SOON)
        asked = len(recorded.log)
        store.delete(WEB, held.revision, SOON)
        assert len(recorded.log) == asked
        written = store.create(WEB, self.endpoint("10.0.0.65"), SOON)
        store.delete(WEB, written.revision, SOON)
        blank = store.get(WEB, SOON)
        asked = len(recorded.log)
        store.delete(WEB, blank.revision, SOON)
        assert len(recorded.log) == asked

    def test_a_pod_whose_annotations_cannot_be_read_is_left_out_of_lists_and_named(self, store, gold):
        wishes = {"cni.projectcalico.org/floatingIPs": "[", "cni.projectcalico.org/podIP": "10.0.0.65/32"}
        gold.patch(f"{PODS}/web-0", {"metadata": {"annotations": wishes}})
        assert store.list(WorkloadEndpoints("gold"), SOON) == ()
        with pytest.raises(BadRecord, match=r"WorkloadEndpoint\(gold/node--a-k8s-web--0-eth0\)"):
            store.get(WEB, SOON)

    # --- what others write -----------------------------------------------------------------------------------------

    def test_a_node_is_the_kubernetes_node(self, store, client):
        annotations = {"projectcalico.org/labels": '{"zone":"a","rack":"1"}'}
        metadata = {"name": "node-a", "labels": {"zone": "b"}, "annotations": annotations}
        client.create("/api/v1/nodes", {"metadata": metadata})
        try:
            stored = store.get(NodeKey("node-a"), SOON)
            labels = stored.record.metadata.labels
            assert (labels["zone"], labels["rack"]) == ("b", "1")
            assert store.list(Nodes(), SOON) == (stored,)
            assert store.get(NodeKey("node-b"), SOON) is None
            with pytest.raises(Refused, match=r"^operation Create is not supported on Node\(node-a\)$"):
                store.create(stored.key, stored.record, SOON)
            with pytest.raises(Refused, match=r"^operation Update is not supported on Node\(node-a\)$"):
                store.update(stored.key, stored.record, stored.revision, SOON)
            with pytest.raises(Refused, match=r"^operation Delete is not supported on Node\(node-a\)$"):
                store.delete(stored.key, None, SOON)
        finally:
            client.delete("/api/v1/nodes/node-a")

    def test_namespaces_and_service_accounts_are_profiles(self, store, gold):
        gold.create("/api/v1/namespaces/gold/serviceaccounts", {"metadata": {"name": "web.1", "labels": {"a": "b"}}})
        namespace = store.get(ProfileKey("kns.gold"), SOON)
        account = store.get(ProfileKey("ksa.gold.web.1"), SOON)
        assert namespace.record.labels_to_apply["pcns.team"] == "red"
        assert account.record.labels_to_apply["pcsa.a"] == "b"
        listed = store.list(Profiles(), SOON)
        assert {str(namespace.key), str(account.key)} < set(keys(listed))
        assert namespace in listed
        assert account in listed
        assert store.get(ProfileKey("kns.silver"), SOON) is None
        assert store.get(ProfileKey("ksa.gold.none"), SOON) is None
        with pytest.raises(Refused, match="operation Update is not supported"):
            store.update(namespace.key, namespace.record, namespace.revision, SOON)

    def test_the_profile_that_allows_everything_is_there_without_being_stored(self, store, recorded):
        found = store.get(ProfileKey("projectcalico-default-allow"), SOON)
        assert [rule.action for rule in (*found.record.ingress, *found.record.egress)] == ["Allow", "Allow"]
        assert (found.revision, recorded.log) == ("1", [])
        assert store.list(Profiles(), SOON)[-1] == found
        with pytest.raises(AlreadyExists):
            store.create(found.key, found.record, SOON)
        with pytest.raises(Refused, match="operation Delete is not supported"):
            store.delete(found.key, None, SOON)

    @pytest.mark.parametrize(("name", "text"), [("net1", "Invalid name net1"), ("net.1", "Revision  invalid")])
    def test_profiles_of_other_names_are_refused_as_the_original_does(self, store, name, text):
        """CNI-PLUGIN 9: with Kubernetes as the datastore the policy type must be k8s."""
        with pytest.raises(Refused, match=f"^{text}$"):
            store.get(ProfileKey(name), SOON)
        with pytest.raises(Refused, match="operation Create is not supported"):
            store.create(ProfileKey(name), Profile(Metadata(name)), SOON)


class KubernetesClusterContract(OnKubernetes, ClusterContract):
    @pytest.fixture
    def cluster(self, api, client):
        client.create("/api/v1/namespaces", {"metadata": {"name": "web", "labels": {"team": "blue"}}})
        return KubernetesCluster(api)

    def test_what_is_not_there_is_told_in_the_servers_words(self, cluster):
        for verb, text in (
            (lambda: cluster.namespace("nowhere", SOON), 'namespaces "nowhere" not found'),
            (lambda: cluster.pod("web", "nobody", SOON), 'pods "nobody" not found'),
            (lambda: cluster.pod_cidrs("node-x", SOON), 'nodes "node-x" not found'),
        ):
            with pytest.raises(NoSuchObject) as told:
                verb()
            assert str(told.value) == text

    def test_a_pod(self, cluster, gold):
        pod = cluster.pod("gold", "web-0", SOON)
        assert (pod.name, pod.namespace, pod.node, pod.labels["app"]) == ("web-0", "gold", "node-a", "web")
        assert pod.uid == gold.find(f"{PODS}/web-0")["metadata"]["uid"]

    def test_virtual_machines(self, cluster, gold):
        owner = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachine",
            "name": "vm1",
            "uid": "u1",
            "controller": True,
        }
        root = "/apis/kubevirt.io/v1/namespaces/gold"
        made = {}
        for plural, kind, metadata in (
            ("virtualmachines", "VirtualMachine", {"name": "vm1"}),
            ("virtualmachineinstances", "VirtualMachineInstance", {"name": "vm1", "ownerReferences": [owner]}),
        ):
            machine = {"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": metadata, "spec": {}}
            made[plural] = gold.create(f"{root}/{plural}", machine)["metadata"]["uid"]
        machine, instance = (
            cluster.virtual_machine("gold", "vm1", SOON),
            cluster.virtual_machine_instance("gold", "vm1", SOON),
        )
        assert (machine.name, machine.uid, machine.owners) == ("vm1", made["virtualmachines"], ())
        assert instance.uid == made["virtualmachineinstances"]
        assert [(one.kind, one.name, one.uid, one.controller) for one in instance.owners] == [
            ("VirtualMachine", "vm1", "u1", True)
        ]
        with pytest.raises(NoSuchObject, match=r'virtualmachineinstances\.kubevirt\.io "vm2" not found'):
            cluster.virtual_machine_instance("gold", "vm2", SOON)

    def test_ranges_of_a_node(self, cluster, client):
        ranges = {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd01::/64"]}
        client.create("/api/v1/nodes", {"metadata": {"name": "node-a"}, "spec": ranges})
        client.create("/api/v1/nodes", {"metadata": {"name": "node-b"}})
        try:
            assert cluster.pod_cidrs("node-a", SOON) == ("10.1.0.0/24", "fd01::/64")
            assert cluster.pod_cidrs("node-b", SOON) == ()
        finally:
            client.delete("/api/v1/nodes/node-a")
            client.delete("/api/v1/nodes/node-b")

    def test_a_pod_and_a_namespace_are_read_once_for_a_while(self, cluster, store, gold, recorded, clock):
        """P01: the endpoint, and the pod that it is, are one object."""
        store.list(WorkloadEndpoints("gold", "node--a-k8s-web--0-"), SOON)
        for _ in range(2):
            cluster.pod("gold", "web-0", SOON)
            cluster.namespace("gold", SOON)
        assert recorded.log == [f"GET {PODS}/web-0", "GET /api/v1/namespaces/gold"]
        clock.advance(2)
        cluster.pod("gold", "web-0", SOON)
        assert len(recorded.log) == 3

    def test_a_pod_that_we_have_written_is_read_again(self, cluster, store, gold, recorded):
        cluster.pod("gold", "web-0", SOON)
        networks = (Address.parse("10.0.0.65").host_cidr,)
        record = WorkloadEndpoint(Metadata(WEB.name, "gold"), container_id="c1", ip_networks=networks)
        written = store.create(WEB, record, SOON)
        assert cluster.pod("gold", "web-0", SOON).revision == written.revision.split("/")[0]
        assert len(recorded.log) == 3
