"""What every adapter of the datastore port promises, as one suite that each of them runs.

Derive a class named `Test…` and give it a fixture `store` (an empty datastore on a `MemoryClock`). `RecordContract`
is for all; `DatastoreContract` for those that keep any record as a text under its key, and wants `put_text` as well.
"""

from __future__ import annotations

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.memory.clock import START, MemoryClock
from adapters.records.members import BadRecord
from domain.cluster import ClusterInformation, Node
from domain.ipam.address import Cidr
from domain.ipam.block import Affinity, Attribute, Block, Handle, Owner, new_block
from domain.ipam.pools import AllocationConfig, Pool
from domain.moment import rfc3339
from domain.resource import Metadata
from domain.workload.endpoint import Profile, WorkloadEndpoint
from ports.clock import Deadline
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    Change,
    ClusterInformationKey,
    ClusterInformations,
    Datastore,
    HandleKey,
    Handles,
    IPPoolKey,
    IPPools,
    NodeKey,
    Nodes,
    ProfileKey,
    Profiles,
    WorkloadEndpointKey,
    WorkloadEndpoints,
)
from ports.errors import AlreadyExists, Conflict, Expired, Missing, Refused, Unavailable
from strategies import entries

SOON = Deadline(1_000_000.0)
V4_BLOCK, V6_BLOCK = Cidr.parse("10.0.0.64/30"), Cidr.parse("fd00::40/126")
HOST_A, HOST_AB = Owner("host", "node-a"), Owner("host", "node-ab")


def empty_block(cidr: Cidr) -> Block:
    return Block(cidr, "host:node-a", None, (None,) * 4, (0, 1, 2, 3), (), 7, {})


def endpoint(namespace: str, name: str) -> WorkloadEndpoint:
    return WorkloadEndpoint(Metadata(name, namespace), orchestrator="cni", node="node-a")


def keys(found) -> list[str]:
    return [str(stored.key) for stored in found]


class RecordContract:
    @pytest.fixture
    def clock(self) -> MemoryClock:
        return MemoryClock()

    def test_what_was_created_is_what_get_gives(self, store):
        created = store.create(HandleKey("net1.c1"), Handle({V4_BLOCK: 1}), SOON)
        assert store.get(HandleKey("net1.c1"), SOON) == created
        assert created.record == Handle({V4_BLOCK: 1})

    def test_a_record_that_nobody_wrote_is_none(self, store):
        assert store.get(HandleKey("net1.c1"), SOON) is None
        assert store.get(AllocationConfigKey(), SOON) is None

    def test_creating_over_a_record_fails_and_leaves_it(self, store):
        created = store.create(HandleKey("net1.c1"), Handle({V4_BLOCK: 1}), SOON)
        with pytest.raises(AlreadyExists, match=r"resource already exists: IPAMHandleKey\(id=net1.c1\)"):
            store.create(HandleKey("net1.c1"), Handle({}), SOON)
        assert store.get(HandleKey("net1.c1"), SOON) == created

    def test_an_update_that_names_the_current_revision_happens(self, store):
        created = store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        updated = store.update(HandleKey("h"), Handle({V4_BLOCK: 2}), created.revision, SOON)
        assert updated.record == Handle({V4_BLOCK: 2})
        assert updated.revision != created.revision
        assert store.get(HandleKey("h"), SOON) == updated

    def test_of_two_updates_that_name_the_same_revision_the_second_conflicts(self, store):
        created = store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        updated = store.update(HandleKey("h"), Handle({V4_BLOCK: 2}), created.revision, SOON)
        with pytest.raises(Conflict, match=r"update conflict: IPAMHandleKey\(id=h\)"):
            store.update(HandleKey("h"), Handle({V4_BLOCK: 3}), created.revision, SOON)
        assert store.get(HandleKey("h"), SOON) == updated

    def test_an_update_of_a_record_that_is_gone_is_missing(self, store):
        created = store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        store.delete(HandleKey("h"), created.revision, SOON)
        with pytest.raises(Missing, match=r"resource does not exist: IPAMHandleKey\(id=h\)"):
            store.update(HandleKey("h"), Handle({V4_BLOCK: 2}), created.revision, SOON)
        assert store.get(HandleKey("h"), SOON) is None

    def test_a_delete_that_names_a_stale_revision_conflicts(self, store):
        created = store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        updated = store.update(HandleKey("h"), Handle({V4_BLOCK: 2}), created.revision, SOON)
        with pytest.raises(Conflict):
            store.delete(HandleKey("h"), created.revision, SOON)
        assert store.get(HandleKey("h"), SOON) == updated

    def test_a_delete_without_a_revision_deletes_whatever_is_there(self, store):
        created = store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        store.update(HandleKey("h"), Handle({V4_BLOCK: 2}), created.revision, SOON)
        store.delete(HandleKey("h"), None, SOON)
        assert store.get(HandleKey("h"), SOON) is None

    @pytest.mark.parametrize("revision", [None, "1"])
    def test_deleting_what_is_not_there_is_missing(self, store, revision):
        with pytest.raises(Missing):
            store.delete(HandleKey("h"), revision, SOON)

    def test_a_record_made_again_has_another_revision(self, store):
        """Else an update decided on the first one would hit the second."""
        first = store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        store.delete(HandleKey("h"), first.revision, SOON)
        second = store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        assert second.revision != first.revision
        with pytest.raises(Conflict):
            store.update(HandleKey("h"), Handle({}), first.revision, SOON)

    def test_a_revision_that_is_no_number_conflicts(self, store):
        store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        with pytest.raises(Conflict):
            store.update(HandleKey("h"), Handle({}), "x", SOON)

    def test_writing_one_record_leaves_the_revision_of_another(self, store):
        one = store.create(HandleKey("one"), Handle({}), SOON)
        store.create(HandleKey("two"), Handle({}), SOON)
        assert store.get(HandleKey("one"), SOON) == one

    def test_an_empty_store_lists_nothing(self, store):
        listings = (Blocks(), Affinities(HOST_A), Handles(), IPPools(), Nodes(), ClusterInformations())
        assert [store.list(listing, SOON) for listing in listings] == [()] * 6

    def test_blocks_are_listed_by_version(self, store):
        four = store.create(BlockKey(V4_BLOCK), empty_block(V4_BLOCK), SOON)
        six = store.create(BlockKey(V6_BLOCK), empty_block(V6_BLOCK), SOON)
        assert store.list(Blocks(4), SOON) == (four,)
        assert store.list(Blocks(6), SOON) == (six,)
        assert store.list(Blocks(), SOON) == (four, six)

    def test_deleted_records_are_listed_no_more(self, store):
        store.create(HandleKey("a"), Handle({}), SOON)
        kept = store.create(HandleKey("b"), Handle({}), SOON)
        store.delete(HandleKey("a"), None, SOON)
        assert store.list(Handles(), SOON) == (kept,)

    def test_fetch_answers_keys_and_listings_in_the_order_asked(self, store):
        handle = store.create(HandleKey("h"), Handle({}), SOON)
        config = store.create(AllocationConfigKey(), AllocationConfig(strict_affinity=True), SOON)
        found = store.fetch(Nodes(), HandleKey("h"), Handles(), HandleKey("none"), AllocationConfigKey(), deadline=SOON)
        assert found == ((), handle, (handle,), None, config)
        assert store.fetch(deadline=SOON) == ()

    def test_no_verb_does_anything_past_its_deadline(self, store, clock):
        created = store.create(HandleKey("h"), Handle({}), SOON)
        clock.advance(10)
        past = Deadline(5.0)
        for verb in (
            lambda: store.get(HandleKey("h"), past),
            lambda: store.list(Handles(), past),
            lambda: store.unreadable(past),
            lambda: store.create(HandleKey("i"), Handle({}), past),
            lambda: store.update(HandleKey("h"), Handle({V4_BLOCK: 1}), created.revision, past),
            lambda: store.delete(HandleKey("h"), None, past),
        ):
            with pytest.raises(Expired, match=r"deadline exceeded while waiting for .*datastore") as caught:
                verb()
            assert isinstance(caught.value, Unavailable)
        assert store.list(Handles(), SOON) == (created,)


class DatastoreContract(RecordContract):
    def put_text(self, store: Datastore, key_text: str, text: str) -> None:
        """Store a text as another program could have, unchecked."""
        raise NotImplementedError

    # --- one record ----------------------------------------------------------------------------------------------

    @settings(
        max_examples=60,
        deadline=None,  # a full disk cache must not fail the test
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(st.data())
    def test_any_record_is_kept_as_it_is(self, store, data):
        key, record = data.draw(entries)
        held = store.get(key, SOON)
        written = store.update(key, record, held.revision, SOON) if held else store.create(key, record, SOON)
        assert written.record == record
        assert store.get(key, SOON) == written
        store.delete(key, written.revision, SOON)

    # --- v3 resources --------------------------------------------------------------------------------------------

    def test_a_resource_gets_uid_and_creation_time_when_it_is_created(self, store):
        created = store.create(NodeKey("node-a"), Node(Metadata("node-a")), SOON)
        metadata = created.record.metadata
        assert uuid.UUID(metadata.uid).version == 4
        assert metadata.created == rfc3339(START)
        assert store.get(NodeKey("node-a"), SOON) == created

    def test_a_resource_keeps_the_uid_and_creation_time_that_it_brings(self, store):
        metadata = Metadata("node-a", uid="6b0a8f9e-0000-4000-8000-000000000001", created="2026-01-01T00:00:00Z")
        assert store.create(NodeKey("node-a"), Node(metadata), SOON).record.metadata == metadata

    def test_an_update_fills_nothing(self, store):
        created = store.create(NodeKey("node-a"), Node(Metadata("node-a")), SOON)
        record = created.record.replace(spec='{"bgp":{}}')
        assert store.update(NodeKey("node-a"), record, created.revision, SOON).record == record

    def test_two_resources_get_two_uids(self, store):
        one = store.create(NodeKey("a"), Node(Metadata("a")), SOON)
        two = store.create(NodeKey("b"), Node(Metadata("b")), SOON)
        assert one.record.metadata.uid != two.record.metadata.uid

    def test_a_record_under_the_key_of_another_is_refused(self, store):
        with pytest.raises(BadRecord, match="its name is 'b'"):
            store.create(NodeKey("a"), Node(Metadata("b")), SOON)
        with pytest.raises(BadRecord, match="its cidr is"):
            store.create(BlockKey(V4_BLOCK), empty_block(V6_BLOCK), SOON)
        with pytest.raises(BadRecord, match="its namespace is"):
            store.create(WorkloadEndpointKey("ns", "w"), endpoint("other", "w"), SOON)

    @pytest.mark.parametrize("handle", ["", "net1/c1", "net1.\ud800", "a\0b"])
    def test_a_name_that_no_key_can_hold_is_refused(self, store, handle):
        with pytest.raises(BadRecord, match="cannot be part of a datastore key"):
            store.create(HandleKey(handle), Handle({}), SOON)

    def test_members_that_we_do_not_know_survive_a_rewrite(self, store):
        self.put_text(store, "/calico/ipam/v2/handle/h", '{"block":{},"deleted":false,"colour":{"b":[1,2.5],"a":null}}')
        self.put_text(
            store,
            "/calico/resources/v3/projectcalico.org/clusterinformations/default",
            '{"kind":"ClusterInformation","apiVersion":"projectcalico.org/v3","metadata":{"name":"default","uid":"u",'
            '"creationTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]},"spec":{"variant":"Calico"},"extra":1}',
        )
        handle = store.get(HandleKey("h"), SOON)
        store.update(handle.key, handle.record.replace(deleted=True), handle.revision, SOON)
        info = store.get(ClusterInformationKey("default"), SOON)
        store.update(info.key, info.record.replace(datastore_ready=True), info.revision, SOON)
        assert store.get(HandleKey("h"), SOON).record == Handle({}, True, (("colour", '{"b":[1,2.5],"a":null}'),))
        kept = store.get(ClusterInformationKey("default"), SOON).record
        assert kept.metadata.unknown == (("finalizers", '["f"]'),)
        assert (kept.spec_unknown, kept.unknown) == ((("variant", '"Calico"'),), (("extra", "1"),))
        assert kept.datastore_ready is True

    def test_the_profile_that_allows_everything_is_there_without_being_stored(self, store):
        store.create(ProfileKey("zz"), Profile(Metadata("zz")), SOON)
        assert keys(store.list(Profiles(), SOON)) == ["Profile(zz)", "Profile(projectcalico-default-allow)"]
        found = store.get(ProfileKey("projectcalico-default-allow"), SOON)
        assert [rule.action for rule in (*found.record.ingress, *found.record.egress)] == ["Allow", "Allow"]
        assert found.revision == "1"
        with pytest.raises(AlreadyExists):
            store.create(found.key, found.record, SOON)
        with pytest.raises(Refused, match="operation Update is not supported"):
            store.update(found.key, found.record, "1", SOON)
        with pytest.raises(Refused, match="operation Delete is not supported"):
            store.delete(found.key, None, SOON)

    # --- lists ---------------------------------------------------------------------------------------------------

    def test_a_list_is_in_the_order_of_key_texts(self, store):
        made = [store.create(HandleKey(name), Handle({}), SOON) for name in ("b", "a.2", "a", "a.10", "B", "é")]
        by_name = {stored.key.handle: stored for stored in made}
        assert store.list(Handles(), SOON) == tuple(by_name[name] for name in ("B", "a", "a.10", "a.2", "b", "é"))

    def test_affinities_are_listed_by_owner_and_version(self, store):
        """DATASTORE C.1: a list of node-a never sees node-ab."""
        virtual = Owner("virtual", "node-a")
        for owner in (HOST_AB, HOST_A, virtual):
            for cidr in (V6_BLOCK, V4_BLOCK):
                store.create(AffinityKey(owner, cidr), Affinity("confirmed"), SOON)

        def listed(owner, version=None):
            return [(one.key.owner, one.key.cidr) for one in store.list(Affinities(owner, version), SOON)]

        assert listed(HOST_A) == [(HOST_A, V4_BLOCK), (HOST_A, V6_BLOCK)]
        assert listed(HOST_A, 6) == [(HOST_A, V6_BLOCK)]
        assert listed(virtual, 4) == [(virtual, V4_BLOCK)]
        assert listed(Owner("host", ""), 4) == [(HOST_A, V4_BLOCK), (HOST_AB, V4_BLOCK)]
        assert len(listed(Owner("host", ""))) == 4

    def test_affinities_to_one_block_are_listed_whoever_has_them(self, store):
        virtual, inside = Owner("virtual", "node-a"), Cidr(V4_BLOCK.version, V4_BLOCK.number, V4_BLOCK.length + 1)
        for owner, cidr in (
            (HOST_AB, V4_BLOCK),
            (HOST_A, V4_BLOCK),
            (virtual, V4_BLOCK),
            (HOST_A, V6_BLOCK),
            (HOST_A, inside),
        ):
            store.create(AffinityKey(owner, cidr), Affinity("pending"), SOON)

        def owners(kind, to):
            return [one.key.owner for one in store.list(Affinities(Owner(kind, ""), to.version, to=to), SOON)]

        assert owners("host", V4_BLOCK) == [HOST_A, HOST_AB]
        assert owners("virtual", V4_BLOCK) == [virtual]
        assert (owners("host", V6_BLOCK), owners("virtual", V6_BLOCK)) == ([HOST_A], [])

    @pytest.mark.parametrize(
        ("around", "near", "far"),
        [
            (
                "10.1.2.64/26",
                "10.1.0.0/20 10.1.2.0/24 10.1.2.100/32 10.1.2.126/31 10.1.2.64/26 10.1.2.64/27",
                "10.1.16.0/20 10.1.2.0/26 10.1.2.128/26 10.1.2.6/31 10.11.2.64/26 fd00::40/122",
            ),
            ("10.1.16.0/20", "10.1.16.0/20 10.1.31.192/26", "10.1.0.0/20 10.1.160.0/26 10.1.32.0/26"),
            ("fd00::/122", "fd00::/116 fd00::/122 fd00::/128 fd00::3f/128", "fd00::1000/116 fd00::40/122 fd00:1::/122"),
            ("1:0:0:5:6::/122", "1:0:0:5:6::/116 1::5:6:0:0:20/123", "1::5:6:0:0:40/122 1:0:0:5:7::/122"),
        ],
    )
    def test_blocks_around_a_range_are_those_that_overlap_it(self, store, around, near, far):
        """Whatever their size; they are found by their keys where all blocks can be listed in one go."""
        for text in (*near.split(), *far.split()):
            store.create(BlockKey(Cidr.parse(text)), new_block(Cidr.parse(text), HOST_A, None, 7), SOON)
        cidr = Cidr.parse(around)
        found = store.list(Blocks(cidr.version, cidr), SOON)
        assert {str(one.key.cidr) for one in found} == set(near.split())
        assert len(found) == len(near.split())

    def test_resources_of_different_kinds_do_not_meet(self, store):
        pool = store.create(IPPoolKey("x"), Pool(Metadata("x"), "10.0.0.0/16"), SOON)
        node = store.create(NodeKey("x"), Node(Metadata("x")), SOON)
        info = store.create(ClusterInformationKey("x"), ClusterInformation(Metadata("x")), SOON)
        assert store.list(IPPools(), SOON) == (pool,)
        assert store.list(Nodes(), SOON) == (node,)
        assert store.list(ClusterInformations(), SOON) == (info,)

    def test_endpoints_are_listed_by_namespace_and_name_prefix(self, store):
        for namespace, name in (
            ("a", "n-k8s-web-eth0"),
            ("a", "n-k8s-web-net1"),
            ("a", "n-k8s-w"),
            ("ab", "n-k8s-web-x"),
        ):
            store.create(WorkloadEndpointKey(namespace, name), endpoint(namespace, name), SOON)

        def listed(namespace, prefix=""):
            return keys(store.list(WorkloadEndpoints(namespace, prefix), SOON))

        assert listed("a", "n-k8s-web-") == ["WorkloadEndpoint(a/n-k8s-web-eth0)", "WorkloadEndpoint(a/n-k8s-web-net1)"]
        assert listed("", "n-k8s-web-")[-1] == "WorkloadEndpoint(ab/n-k8s-web-x)"
        assert len(listed("a")) == 3
        assert len(listed("")) == 4
        assert listed("b") == []

    def test_endpoints_are_listed_by_their_node(self, store):
        for name in ("node--a-k8s-web-eth0", "node--a--x-k8s-web-eth0", "node--ab-cni-c1-eth0", "node-k8s-web-eth0"):
            store.create(WorkloadEndpointKey("a", name), endpoint("a", name), SOON)

        def listed(node, namespace=""):
            return keys(store.list(WorkloadEndpoints(namespace, node=node), SOON))

        assert listed("node-a") == ["WorkloadEndpoint(a/node--a-k8s-web-eth0)"]
        assert listed("node-a-x", "a") == ["WorkloadEndpoint(a/node--a--x-k8s-web-eth0)"]
        assert listed("node") == ["WorkloadEndpoint(a/node-k8s-web-eth0)"]
        assert listed("node-a", "b") == listed("nod") == []

    # --- records that cannot be used -----------------------------------------------------------------------------

    def test_a_list_leaves_out_corrupt_records_and_a_get_names_them(self, store):
        """K03: a corrupt block must not keep others from being used, and whoever asks for it is told."""
        good = store.create(BlockKey(V4_BLOCK), empty_block(V4_BLOCK), SOON)
        bad = BlockKey(Cidr.parse("10.0.0.68/30"))
        self.put_text(
            store,
            "/calico/ipam/v2/assignment/ipv4/block/10.0.0.68-30",
            '{"cidr":"10.0.0.68/30","affinity":null,"allocations":[1,null,null,null],"unallocated":[1,2,3],"attributes":[{}]}',
        )
        assert store.list(Blocks(4), SOON) == (good,)
        with pytest.raises(BadRecord, match=r"record ipamblock 10-0-0-68-30 is corrupt: allocations\[0\] is 1"):
            store.get(bad, SOON)

    def test_a_corrupt_record_can_be_deleted(self, store):
        self.put_text(store, "/calico/ipam/v2/handle/h", "<html>")
        store.delete(HandleKey("h"), None, SOON)
        assert store.get(HandleKey("h"), SOON) is None

    def test_corrupt_records_of_every_kind_are_told_with_their_faults(self, store):
        """K03: what lists leave out, an operator can find."""
        store.create(HandleKey("h1"), Handle({}), SOON)
        self.put_text(store, "/calico/ipam/v2/assignment/ipv4/block/10.0.0.64-30", "{}")
        self.put_text(store, "/calico/ipam/v2/assignment/ipv4/block/nonsense", "{}")
        self.put_text(store, "/calico/ipam/v2/handle/h2", "<html>")
        self.put_text(store, "/calico/resources/v3/projectcalico.org/nodes/node-a", "[]")
        told = store.unreadable(SOON)
        assert {one.key for one in told} == {BlockKey(V4_BLOCK), HandleKey("h2"), NodeKey("node-a")}
        assert {one.fault for one in told if one.key == NodeKey("node-a")} == {
            "the record must be an object, not a list"
        }
        assert all(one.fault for one in told)

    def test_corrupt_records_of_one_listing_only(self, store):
        self.put_text(store, "/calico/ipam/v2/handle/h2", "<html>")
        self.put_text(store, "/calico/resources/v3/projectcalico.org/nodes/node-a", "[]")
        self.put_text(store, "/calico/resources/v3/projectcalico.org/workloadendpoints/a/e", "[]")
        assert [one.key for one in store.unreadable(SOON, Nodes())] == [NodeKey("node-a")]
        assert [one.key for one in store.unreadable(SOON, WorkloadEndpoints("a"))] == [WorkloadEndpointKey("a", "e")]
        assert store.unreadable(SOON, WorkloadEndpoints("b")) == ()
        assert store.unreadable(SOON, Blocks()) == ()

    def test_a_corrupt_record_can_be_replaced_under_its_revision(self, store):
        """With what still makes sense of a block; somebody who was faster wins."""
        self.put_text(
            store,
            "/calico/ipam/v2/assignment/ipv4/block/10.0.0.64-30",
            '{"cidr":"10.0.0.64/30","affinity":"host:n","allocations":[1,0,null,null],"attributes":[{"handle_id":"h"}],'
            '"unallocated":[2,2],"sequenceNumber":7}',
        )
        (bad,) = store.unreadable(SOON)
        assert bad.text.startswith('{"cidr":')
        assert (bad.salvage.affinity, bad.salvage.sequence) == ("host:n", 7)
        assert [bad.salvage.holder(ordinal) for ordinal in range(4)] == [None, Attribute("h", {}), None, None]
        assert bad.salvage.is_consistent()
        stored = store.update(bad.key, bad.salvage, bad.revision, SOON)
        assert store.get(BlockKey(V4_BLOCK), SOON) == stored
        with pytest.raises(Conflict):
            store.update(bad.key, bad.salvage, bad.revision, SOON)
        with pytest.raises(Conflict):
            store.delete(bad.key, bad.revision, SOON)

    def test_keys_that_do_not_parse_are_left_out_of_lists(self, store):
        self.put_text(store, "/calico/ipam/v2/assignment/ipv4/block/nonsense", "{}")
        self.put_text(store, "/calico/ipam/v2/host/node-a", "")
        self.put_text(store, "/calico/ipam/v2/host/node-a/ipv4/block/10.0.0.64-30", "")
        assert store.list(Blocks(), SOON) == ()
        assert [one.record for one in store.list(Affinities(HOST_A), SOON)] == [Affinity("")]


class TogetherContract:
    """Beside `DatastoreContract`, for those that write several records at once."""

    def test_several_changes_happen_at_once(self, store):
        old = store.create(HandleKey("old"), Handle({V4_BLOCK: 1}), SOON)
        block = store.create(BlockKey(V4_BLOCK), empty_block(V4_BLOCK), SOON)
        changed = block.record.replace(sequence=8)
        gone, new, written = store.write(
            (
                Change(old.key, None, old.revision),
                Change(HandleKey("new"), Handle({V4_BLOCK: 2}), None),
                Change(block.key, changed, block.revision),
            ),
            SOON,
        )
        assert gone is None
        assert (new.record, written.record) == (Handle({V4_BLOCK: 2}), changed)
        assert store.fetch(old.key, new.key, block.key, deadline=SOON) == (None, new, written)
        store.update(new.key, Handle({}), new.revision, SOON)

    @pytest.mark.parametrize("first", [False, True])
    @pytest.mark.parametrize("fault", [AlreadyExists, Conflict, Missing])
    def test_all_or_nothing(self, store, fault, first):
        """Whichever of the changes it is that cannot be made; it is named."""
        block = store.create(BlockKey(V4_BLOCK), empty_block(V4_BLOCK), SOON)
        handle = store.create(HandleKey("h"), Handle({V4_BLOCK: 1}), SOON)
        fine = Change(block.key, block.record.replace(sequence=8), block.revision)
        wrong = {
            AlreadyExists: Change(handle.key, Handle({}), None),
            Conflict: Change(handle.key, Handle({}), block.revision),
            Missing: Change(HandleKey("none"), None, handle.revision),
        }[fault]
        with pytest.raises(fault, match=str(wrong.key).replace("(", ".").replace(")", ".")):
            store.write((wrong, fine) if first else (fine, wrong), SOON)
        assert store.fetch(block.key, handle.key, HandleKey("none"), deadline=SOON) == (block, handle, None)

    def test_past_the_deadline_nothing_is_written(self, store, clock):
        clock.advance(SOON.at + 1)
        with pytest.raises(Expired):
            store.write((Change(HandleKey("h"), Handle({}), None),), SOON)
        assert store.get(HandleKey("h"), Deadline(SOON.at + 100)) is None
