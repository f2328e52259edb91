"""What Kubernetes' own objects are to us: pods are endpoints, nodes Calico's nodes, namespaces and accounts profiles.

Derive a class named `Test…` and give it: `group` (a key of `fake_apiserver.GROUPS`); `client`, an administrator of an
empty server that serves it, and KubeVirt for the cluster's contract (KubeClient or FakeApiserver); `recorded`, a
Recorded transport to it; `clock`.
"""

from __future__ import annotations

import pytest

from adapters.kubernetes.api import Api
from adapters.kubernetes.cluster import KubernetesCluster
from adapters.kubernetes.datastore import KubernetesDatastore
from contracts.cluster import ClusterContract
from contracts.datastore import SOON, endpoint, keys
from domain.ipam.address import Address
from domain.resource import Metadata
from domain.workload.endpoint import Profile, WorkloadEndpoint
from ports.cluster import NoSuchObject
from ports.datastore import (
    NodeKey,
    Nodes,
    ProfileKey,
    Profiles,
    WorkloadEndpointKey,
    WorkloadEndpoints,
)
from ports.errors import AlreadyExists, Conflict, Missing, Refused
from services.fake_apiserver import GROUPS

PODS = "/api/v1/namespaces/gold/pods"
WEB = WorkloadEndpointKey("gold", "node--a-k8s-web--0-eth0")
ADDRESSES = "cni.projectcalico.org/podIP", "cni.projectcalico.org/podIPs"


def pod_object(name: str, *, node: str = "node-a", annotations: dict | None = None, **spec) -> dict:
    containers = [{"name": "web", "image": "web", "ports": [{"name": "http", "containerPort": 80}]}]
    scheduled = {"nodeName": node} if node else {}
    metadata = {"name": name, "namespace": "gold", "labels": {"app": "web"}, "annotations": annotations or {}}
    spec = {"containers": containers, "serviceAccountName": "default", **scheduled, **spec}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def networked(*addresses: str) -> WorkloadEndpoint:
    """The endpoint that an ADD writes to the pod web-0."""
    networks = tuple(Address.parse(text).host_cidr for text in addresses)
    return WorkloadEndpoint(Metadata(WEB.name, "gold"), container_id="c1", ip_networks=networks)


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


class PodEndpointContract(OnKubernetes):
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

    def test_pods_of_one_node_are_asked_for_alone(self, store, gold, recorded):
        """A large cluster has a hundred thousand of them."""
        gold.create(PODS, pod_object("other", node="node-b"))
        assert keys(store.list(WorkloadEndpoints(node="node-a"), SOON)) == [str(WEB)]
        assert keys(store.list(WorkloadEndpoints("gold", node="node-a"), SOON)) == [str(WEB)]
        assert store.list(WorkloadEndpoints(node="node"), SOON) == ()
        asked = [dict(request.query).get("fieldSelector") for request in recorded.requests]
        assert asked == ["spec.nodeName=node-a", "spec.nodeName=node-a", "spec.nodeName=node"]

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
        written = store.create(WEB, networked("10.0.0.65", "fd00::41"), SOON)
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

    def test_an_endpoint_is_not_written_into_a_pod_that_was_made_again(self, store, gold):
        held = store.get(WEB, SOON)
        gold.delete(f"{PODS}/web-0")
        gold.create(PODS, pod_object("web-0"))
        with pytest.raises(Missing, match=r"(?i)uid"):
            store.update(WEB, networked("10.0.0.65"), held.revision, SOON)
        assert self.annotations(gold) == {}

    def test_writing_an_endpoint_does_not_mind_other_changes_of_the_pod(self, store, gold):
        """R07."""
        held = store.get(WEB, SOON)
        gold.patch(f"{PODS}/web-0", {"metadata": {"labels": {"x": "1"}}})
        written = store.update(WEB, networked("10.0.0.65"), held.revision, SOON)
        assert written.record.metadata.labels["x"] == "1"
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == "10.0.0.65/32"

    def test_an_endpoint_of_a_pod_that_is_gone_cannot_be_written(self, store, gold):
        gold.delete(f"{PODS}/web-0")
        with pytest.raises(Missing, match='pods "web-0" not found'):
            store.create(WEB, networked("10.0.0.65"), SOON)
        with pytest.raises(Missing):
            store.delete(WEB, None, SOON)

    def test_deleting_an_endpoint_takes_its_addresses_away(self, store, gold):
        written = store.create(WEB, networked("10.0.0.65"), SOON)
        store.delete(WEB, written.revision, SOON)
        annotations = self.annotations(gold)
        assert [annotations[name] for name in ADDRESSES] == ["", ""]
        assert annotations["cni.projectcalico.org/containerID"] == "c1"

    def test_deleting_an_endpoint_at_any_version(self, store, gold, clock):
        store.create(WEB, networked("10.0.0.65"), SOON)
        store.delete(WEB, None, SOON)
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == ""
        clock.advance(3)
        store.delete(WEB, None, SOON)

    def test_an_endpoint_that_has_changed_since_is_not_deleted(self, store, gold):
        written = store.create(WEB, networked("10.0.0.65"), SOON)
        gold.patch(f"{PODS}/web-0", {"metadata": {"labels": {"x": "1"}}})
        with pytest.raises(Conflict):
            store.delete(WEB, written.revision, SOON)
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == "10.0.0.65/32"
        store.delete(WEB, store.get(WEB, SOON).revision, SOON)
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == ""

    def test_the_endpoint_of_a_later_pod_of_that_name_is_not_deleted(self, store, gold, clock):
        written = store.create(WEB, networked("10.0.0.65"), SOON)
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
        written = store.create(WEB, networked("10.0.0.65"), SOON)
        store.delete(WEB, written.revision, SOON)
        blank = store.get(WEB, SOON)
        asked = len(recorded.log)
        store.delete(WEB, blank.revision, SOON)
        assert len(recorded.log) == asked

    def test_an_address_that_only_the_status_tells_of_is_taken_away(self, store, gold):
        """An annotation that is explicitly empty tells others that what the status says is no longer so."""
        gold.patch(f"{PODS}/web-0/status", {"status": {"podIP": "10.0.0.65", "podIPs": [{"ip": "10.0.0.65"}]}})
        held = store.get(WEB, SOON)
        assert str(held.record.ip_networks[0]) == "10.0.0.65/32"
        store.delete(WEB, held.revision, SOON)
        assert self.annotations(gold)["cni.projectcalico.org/podIP"] == ""

    @pytest.mark.parametrize("name", ["floatingIPs", "allowedSourcePrefixes", "podIPs"])
    def test_a_pod_whose_annotations_cannot_be_read_keeps_its_endpoint(self, store, gold, name):
        """Anybody who may annotate a pod could make others believe that its addresses are free."""
        store.create(WEB, networked("10.0.0.65"), SOON)
        gold.patch(f"{PODS}/web-0", {"metadata": {"annotations": {f"cni.projectcalico.org/{name}": "["}}})
        if name != "podIPs":
            gold.patch(f"{PODS}/web-0/status", {"status": {"podIP": "10.0.0.65", "podIPs": [{"ip": "10.0.0.65"}]}})
        found = store.get(WEB, SOON)
        assert store.list(WorkloadEndpoints("gold"), SOON) == (found,)
        assert found.record.container_id == "c1"
        assert [str(one) for one in found.record.ip_networks] == ([] if name == "podIPs" else ["10.0.0.65/32"])
        store.delete(WEB, found.revision, SOON)
        assert [self.annotations(gold)[one] for one in ADDRESSES] == ["", ""]


class DerivedContract(OnKubernetes):
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
            with pytest.raises(Refused, match=r"^operation Delete is not supported on Node\(node-a\)$") as refused:
                store.delete(stored.key, None, SOON)
            assert refused.value.details.endswith("change these, with kubectl")
        finally:
            client.delete("/api/v1/nodes/node-a")

    def test_of_a_node_the_address_of_its_tunnel_is_written(self, store, client):
        """Into the annotation that the original has it in, over the version that was read."""
        annotations = {"projectcalico.org/IPv4Address": "192.0.2.1/24", "other": "x"}
        client.create("/api/v1/nodes", {"metadata": {"name": "node-a", "annotations": annotations}})
        try:
            first = store.get(NodeKey("node-a"), SOON)
            written = store.update(first.key, first.record.with_tunnel_address("10.0.0.1"), first.revision, SOON)
            assert store.get(first.key, SOON) == written
            assert written.record.tunnel_address == "10.0.0.1"
            assert client.get("/api/v1/nodes/node-a")["metadata"]["annotations"] == {
                **annotations,
                "projectcalico.org/IPv4IPIPTunnelAddr": "10.0.0.1",
            }
            with pytest.raises(Conflict):
                store.update(first.key, first.record.with_tunnel_address("10.0.0.2"), first.revision, SOON)
            overlay = ("10.0.0.129", "00:15:5d:aa:bb:cc")
            again = store.update(first.key, written.record.with_vxlan_tunnel(*overlay), written.revision, SOON)
            assert store.get(first.key, SOON) == again
            assert (again.record.tunnel_address, again.record.vxlan_tunnel) == ("10.0.0.1", overlay)
        finally:
            client.delete("/api/v1/nodes/node-a")

    def test_a_node_that_cannot_be_read_is_told(self, store, client):
        """Else it would be taken for one that is gone, and what it has for left over."""
        spoilt = {"name": "node-a", "annotations": {"projectcalico.org/labels": "["}}
        client.create("/api/v1/nodes", {"metadata": spoilt})
        try:
            assert store.list(Nodes(), SOON) == ()
            assert [one.key for one in store.unreadable(SOON)] == [NodeKey("node-a")]
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

    def test_pods_of_a_node(self, cluster, gold):
        """The web pods are of node-a; what is elsewhere, or nowhere yet, is not asked for."""
        gold.create(PODS, pod_object("elsewhere", node="node-ab"))
        gold.create(PODS, pod_object("nowhere", node=""))
        assert {pod.name for pod in cluster.pods_on("node-a", SOON)} >= {"web-0"}
        assert [pod.name for pod in cluster.pods_on("node-ab", SOON)] == ["elsewhere"]

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
        written = store.create(WEB, networked("10.0.0.65"), SOON)
        assert cluster.pod("gold", "web-0", SOON).revision == written.revision.split("/")[0]
        assert len(recorded.log) == 3
