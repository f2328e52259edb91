"""Which API group, whole collections, and what a server's no means."""

from __future__ import annotations

import json

import pytest

from adapters.kubernetes.answers import Reply, refusal
from adapters.kubernetes.api import Api
from adapters.kubernetes.datastore import KubernetesDatastore
from adapters.kubernetes.groups import Groups
from adapters.kubernetes.objects import all_of, one, read_objects
from adapters.kubernetes.transport.seam import HttpAnswer
from adapters.memory.clock import MemoryClock
from contracts.kubernetes_pods import PODS, WEB, networked, pod_object
from domain.cluster import ClusterInformation
from domain.ipam.address import Cidr
from domain.ipam.block import Affinity, Handle, Owner
from domain.resource import Metadata
from ports.clock import Deadline
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    Blocks,
    ClusterInformationKey,
    HandleKey,
    Handles,
    IPPools,
    IPReservations,
    WorkloadEndpoints,
)
from ports.errors import AlreadyExists, Conflict, Missing, Refused, Unauthorized, Unavailable
from services.fake_apiserver import FakeApiserver, Recorded, lost

SOON = Deadline(1000.0)
V1, V3 = "crd.projectcalico.org/v1", "projectcalico.org/v3"
HANDLES = f"/apis/{V1}/ipamhandles"


@pytest.fixture
def clock():
    return MemoryClock()


@pytest.fixture
def server():
    return FakeApiserver("v1")


@pytest.fixture
def recorded(server):
    return Recorded(server.transport())


@pytest.fixture
def api(recorded, clock):
    return Api(recorded, clock)


@pytest.fixture
def store(api, clock):
    return KubernetesDatastore(api, clock, group=V1)


class TestGroups:
    @pytest.mark.parametrize(
        ("setting", "chosen"),
        [(V1, V1), (V3, V3), ("ProjectCalico.org/V3", V3), ("projectcalico.org", V1), ("anything", V1)],
    )
    def test_what_is_told_is_not_asked(self, api, recorded, setting, chosen):
        """DATASTORE D.1."""
        assert Groups(api, setting).choose(SOON) == chosen
        assert recorded.log == []

    @pytest.mark.parametrize(
        ("groups", "chosen"), [(["v1"], V1), (["v3"], V3), (["v1", "v3"], V1), ([], V1), (["kubevirt"], V1)]
    )
    def test_otherwise_the_server_is_asked_once(self, clock, groups, chosen):
        recorded = Recorded(FakeApiserver(*groups).transport())
        choice = Groups(Api(recorded, clock), "")
        assert [choice.choose(SOON) for _ in range(2)] == [chosen, chosen]
        assert recorded.log == ["GET /apis"]

    def test_a_server_that_does_not_let_us_ask_has_the_old_group(self, server, api):
        server.before = lambda request: server.failure(403, "no")
        assert Groups(api, "").choose(SOON) == V1

    def test_an_odd_group_is_no_new_one(self, server, api):
        server.before = lambda request: HttpAnswer(200, json.dumps({"groups": [7, {}, {"name": 7}]}).encode(), {})
        assert Groups(api, "").choose(SOON) == V1

    @pytest.mark.parametrize("groups", [None, 7])
    def test_what_is_no_list_of_groups_chooses_none(self, server, api, groups):
        server.before = lambda request: HttpAnswer(200, json.dumps({"groups": groups}).encode(), {})
        with pytest.raises(Unavailable, match="instead of the list of API groups"):
            Groups(api, "").choose(SOON)

    @pytest.mark.parametrize("status", [401, 503])
    def test_no_answer_is_no_choice(self, server, api, status):
        """A wrong choice would find nothing, and a DEL would believe that there is nothing to release."""
        groups = Groups(api, "")
        server.groups = [V3]
        server.before = lambda request: server.failure(status, "no")
        with pytest.raises((Unavailable, Unauthorized)):
            groups.choose(SOON)
        server.before = lambda request: None
        assert groups.choose(SOON) == V3

    def test_nothing_is_asked_for_records_of_no_group(self, server, api, clock, recorded):
        server.create("/api/v1/namespaces", {"metadata": {"name": "gold"}})
        store = KubernetesDatastore(api, clock)
        store.list(WorkloadEndpoints("gold", "node--a-k8s-web--0-"), SOON)
        assert recorded.log == [f"GET {PODS}/web-0"]
        store.get(HandleKey("h"), SOON)
        assert recorded.log[1:] == ["GET /apis", f"GET {HANDLES}/h"]


class TestNoIpam:
    """USE_POD_CIDR: the original registers no IPAM resources then."""

    @pytest.mark.parametrize(
        ("need", "text"),
        [
            (AllocationConfigKey(), "operation Get is not supported on IPAMConfigKey()"),
            (HandleKey("h"), "operation Get is not supported on IPAMHandleKey(id=h)"),
            (Blocks(), "operation List is not supported on Blocks("),
        ],
    )
    def test_its_records_are_refused_before_anything_is_asked(self, api, clock, recorded, need, text):
        store = KubernetesDatastore(api, clock, group=V1, no_ipam=True)
        with pytest.raises(Refused) as refused:
            store.fetch(IPPools(), need, deadline=SOON)
        assert str(refused.value).startswith(text)
        assert "usePodCidr" in refused.value.details
        assert recorded.log == []

    def test_none_is_written_and_others_are_read(self, api, clock, server):
        store = KubernetesDatastore(api, clock, group=V1, no_ipam=True)
        with pytest.raises(Refused, match=r"^operation Create is not supported on IPAMHandleKey\(id=h\)$") as refused:
            store.create(HandleKey("h"), Handle({}), SOON)
        assert refused.value.details == ""
        assert store.list(IPPools(), SOON) == ()


class TestCollections:
    @pytest.fixture
    def many(self, server):
        for number in range(1200):
            server.create(HANDLES, {"metadata": {"name": f"h{number:04}"}, "spec": {"handleID": f"h{number:04}"}})
        return server

    def test_a_collection_is_read_page_by_page(self, many, store, recorded):
        listed = store.list(Handles(), SOON)
        assert [one.key.handle for one in listed] == [f"h{number:04}" for number in range(1200)]
        assert [dict(request.query).get("limit") for request in recorded.requests] == ["500"] * 3

    def test_pages_of_several_collections_are_read_together(self, many, store, recorded):
        store.fetch(Handles(), IPPools(), HandleKey("h0000"), deadline=SOON)
        assert recorded.rounds == [3, 1, 1]

    def test_a_collection_whose_moment_is_forgotten_is_read_whole(self, many, store, recorded):
        """DATASTORE D.3: expired continuation."""
        many.tokens_expire = True
        meddled = []

        def meddle(request):
            if "continue" in dict(request.query) and not meddled:
                meddled.append(many.create(HANDLES, {"metadata": {"name": "a"}, "spec": {"handleID": "a"}}))

        many.before = meddle
        assert len(store.list(Handles(), SOON)) == 1201
        assert [dict(request.query).get("limit") for request in recorded.requests] == ["500", "500", None]

    def test_a_collection_that_may_lag_is_taken_from_what_the_server_remembers(self, server, store, recorded):
        """Its later pages, should the server not give it in one, are of the age of the first."""
        for number in range(600):
            cidr = Cidr(4, (10 << 24) + number * 64, 26)
            store.create(AffinityKey(Owner("host", "node-a"), cidr), Affinity("confirmed"), SOON)
        del recorded.requests[:]
        assert len(store.list(Affinities(Owner("host", "node-a"), may_lag=True), SOON)) == 600
        assert len(store.list(Affinities(Owner("host", "node-a")), SOON)) == 600
        store.fetch(IPPools(may_lag=True), IPReservations(may_lag=True), IPPools(), deadline=SOON)
        ages = [dict(request.query).get("resourceVersion") for request in recorded.requests]
        assert ages == ["0", None, None, None, "0", "0", None]

    def test_a_collection_that_is_not_served_is_empty(self, api, clock):
        """DATASTORE D.3: 404 on a list."""
        store = KubernetesDatastore(api, clock, group=V3)
        assert store.fetch(Handles(), IPPools(), HandleKey("h"), deadline=SOON) == ((), (), None)

    @pytest.mark.parametrize("request_", [one(f"{HANDLES}/h"), all_of(HANDLES)])
    def test_what_the_server_does_not_understand_is_told(self, server, api, request_):
        server.before = lambda request: server.failure(400, "cannot list that")
        with pytest.raises(Refused, match=r"^cannot list that$"):
            read_objects(api, [request_], SOON)

    @pytest.mark.parametrize("status", [409, 410, 422])
    @pytest.mark.parametrize("request_", [one(f"{HANDLES}/h"), all_of(HANDLES)])
    def test_what_only_a_write_can_be_answered_is_no_answer_to_a_read(self, server, api, status, request_):
        server.before = lambda request: server.failure(status, "what?")
        with pytest.raises(Unavailable, match=rf"{api.where}: the server answers with {status} to a read \(what\?\)$"):
            read_objects(api, [request_], SOON)

    @pytest.mark.parametrize("more", [{"items": None}, {"items": None, "metadata": None}])
    def test_a_collection_of_nothing_is_empty(self, server, api, more):
        body = {"kind": "IPAMHandleList", "apiVersion": V1, **more}
        server.before = lambda request: HttpAnswer(200, json.dumps(body).encode(), {})
        assert read_objects(api, [all_of(HANDLES)], SOON) == [[]]


CAUSE = "FieldValueInvalid"


@pytest.mark.parametrize(
    ("status", "reason", "message", "fields", "error"),
    [
        (409, "AlreadyExists", "x already exists", [], AlreadyExists),
        (409, "Conflict", "the object has been modified", [], Conflict),
        (409, "Conflict", "Precondition failed: UID in precondition: a, UID in object meta: b", [], Missing),
        (409, "Conflict", "the UID in the precondition (a) does not match the UID in record (b)", [], Missing),
        (404, "NotFound", "x not found", [], Missing),
        (422, "Invalid", "x", ["metadata.uid"], Missing),
        (422, "Invalid", "x", ["metadata.resourceVersion"], Conflict),
        (422, "Invalid", "x", ["metadata.uid", "spec.cidr"], Refused),
        (422, "Invalid", "x", [], Refused),
        (410, "Expired", "x", [], Refused),
        (400, "BadRequest", "x", [], Refused),
    ],
)
def test_a_servers_no_is_one_of_ours(status, reason, message, fields, error):
    """DATASTORE D.2."""
    causes = [{"reason": CAUSE, "field": field} for field in fields]
    found = refusal(
        Reply(status, {"message": message, "reason": reason, "details": {"causes": causes}}), HandleKey("h")
    )
    assert type(found) is error
    assert (message in str(found)) == (error is not Conflict)


class TestFaults:
    """What the datastore makes of failures that a real server has seldom."""

    def marked(self, server):
        spec = {"handleID": "h", "block": {}, "deleted": True}
        return server.create(HANDLES, {"kind": "IPAMHandle", "metadata": {"name": "h"}, "spec": spec})

    def test_a_clean_up_that_fails_is_told(self, server, store):
        """DATASTORE D.6."""
        self.marked(server)
        server.before = lambda request: server.failure(422, "no") if request.method == "DELETE" else None
        with pytest.raises(Refused, match=r"^no$"):
            store.get(HandleKey("h"), SOON)
        assert server.find(f"{HANDLES}/h")

    def test_a_clean_up_that_somebody_else_was_faster_with_is_done(self, server, store):
        self.marked(server)
        server.before = lambda request: server.objects.clear() if request.method == "DELETE" else None
        assert store.get(HandleKey("h"), SOON) is None

    def test_a_record_that_was_made_again_during_the_clean_up_is_found(self, server, store):
        self.marked(server)

        def rival(request):
            if request.method == "DELETE":
                server.before = lambda request: None
                server.delete(f"{HANDLES}/h")
                server.create(
                    HANDLES, {"kind": "IPAMHandle", "metadata": {"name": "h"}, "spec": {"handleID": "h", "block": {}}}
                )

        server.before = rival
        assert store.get(HandleKey("h"), SOON).record == Handle({})

    def test_a_record_that_is_changed_for_ever_during_the_clean_up_conflicts(self, server, store):
        self.marked(server)

        def rival(request):
            if request.method == "DELETE":
                server.patch(
                    f"{HANDLES}/h", {"metadata": {"annotations": {"n": str(len(server.objects) + id(request))}}}
                )

        server.before = rival
        with pytest.raises(Conflict):
            store.get(HandleKey("h"), SOON)

    def test_a_record_that_stands_in_the_way_and_goes_meanwhile_makes_way(self, server, store):
        server.create(
            HANDLES, {"kind": "IPAMHandle", "metadata": {"name": "h"}, "spec": {"handleID": "h", "block": {}}}
        )

        def rival(request):
            if request.method == "GET":
                server.objects.clear()

        server.before = rival
        assert store.create(HandleKey("h"), Handle({}), SOON).record == Handle({})

    def test_marks_that_come_back_for_ever_end_in_already_exists(self, server, store):
        self.marked(server)

        def mark_again(request):
            server.objects.clear()
            self.marked(server)

        server.before = mark_again
        with pytest.raises(AlreadyExists):
            store.create(HandleKey("h"), Handle({}), SOON)

    def test_only_the_kinds_that_the_original_marks_cost_a_look(self, server, store, recorded):
        server.create(f"/apis/{V1}/clusterinformations", {"metadata": {"name": "default"}})
        with pytest.raises(AlreadyExists):
            store.create(ClusterInformationKey("default"), ClusterInformation(Metadata("default")), SOON)
        assert [line.split()[0] for line in recorded.log] == ["POST"]

    def test_labels_are_given_as_often_as_others_interfere(self, server, store, clock, recorded):
        """IPAM 13.4."""
        spec = {"state": "confirmed", "node": "host-a", "cidr": "10.10.0.0/26", "deleted": "false"}
        path = f"/apis/{V1}/blockaffinities"
        server.create(path, {"kind": "BlockAffinity", "metadata": {"name": "host-a-10-10-0-0-26"}, "spec": spec})
        times = []

        def rival(request):
            if request.method == "PUT" and len(times) < 3:
                times.append(request)
                server.patch(f"{path}/host-a-10-10-0-0-26", {"metadata": {"annotations": {"n": str(len(times))}}})

        server.before = rival
        store.upgrade_affinities(Owner("host", "host-a"), SOON)
        assert clock.slept == [0.1, 0.2, 0.4]
        (listed,) = store.list(Affinities(Owner("host", "host-a"), 4), SOON)
        assert (type(listed.key), listed.record) == (AffinityKey, Affinity("confirmed"))

    def test_a_pod_that_is_busy_conflicts_at_once(self, server, store, recorded):
        """R07: how often to try is for the caller to say, who does so for every datastore."""
        server.create(PODS, pod_object("web-0"))
        server.before = lambda request: server.failure(409, "the object has been modified", reason="Conflict")
        with pytest.raises(Conflict):
            store.create(WEB, networked("10.0.0.65"), SOON)
        assert [line.split()[0] for line in recorded.log] == ["PATCH"]

    @pytest.mark.parametrize("revision", ["", "x", "0", "-1", "1/2", "١"])
    def test_a_revision_that_the_server_could_not_have_given_conflicts(self, server, store, recorded, revision):
        with pytest.raises(Conflict):
            store.update(HandleKey("h"), Handle({}), revision, SOON)
        with pytest.raises(Conflict):
            store.delete(HandleKey("h"), revision, SOON)
        assert recorded.log == []

    def test_a_lost_answer_to_a_write_is_unavailable(self, server, store):
        def lose(request, answer):
            server.after = lambda request, answer: None
            raise lost()

        server.after = lose
        with pytest.raises(Unavailable):
            store.create(HandleKey("h"), Handle({}), SOON)
        assert store.get(HandleKey("h"), SOON).record == Handle({})

    def test_closing_twice_is_safe(self, store):
        with store:
            pass
        store.close()
