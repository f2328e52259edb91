"""How many requests a call costs the API server, whatever the size of the cluster (P01).

The numbers are those that the product promises; the original needs 20, 25 and 18.
"""

from __future__ import annotations

import pytest

from adapters.kubernetes.cluster import KubernetesCluster
from contracts_kubernetes_pods import PODS, pod_object
from domain.cni.netconf import IpamSettings, PolicySettings
from domain.cni.request import CniArgs
from domain.usecases.add_workload import add_workload
from domain.usecases.delete_workload import delete_workload
from fake_apiserver import GROUPS, FakeApiserver, Recorded
from kubernetes_world import Administered
from one_node import NODE, OneNode

ADD, FIRST_ADD, DEL, EMPTYING_DEL = 12, 17, 8, 10
FIELDS = {
    "name": "k8s-pod-network",
    "policy": PolicySettings(type="k8s"),
    "ipam": IpamSettings(type="calico-ipam"),
}


class Kept(Administered):
    """The datastore with the hooks that OneNode sets."""

    before = after = staticmethod(lambda _verb, _key: None)


class KubernetesNode(OneNode):
    def __init__(self, group: str) -> None:
        self.server = FakeApiserver(group)
        self.recorded = Recorded(self.server.transport())
        self.group = group
        self._datastore: Kept | None = None
        super().__init__(pools=("10.244.0.0/16",))
        self.root = f"/apis/{GROUPS[group]}"
        config = {"strictAffinity": False, "autoAllocateBlocks": True, "kubeVirtVMAddressPersistence": "Enabled"}
        plural, kind = ("ipamconfigs", "IPAMConfig") if group == "v1" else ("ipamconfigurations", "IPAMConfiguration")
        self.server.create(f"{self.root}/{plural}", {"kind": kind, "metadata": {"name": "default"}, "spec": config})
        self.server.create("/api/v1/namespaces", {"metadata": {"name": "gold"}})
        for number in (1, 2, 3):
            self.server.create(PODS, pod_object(f"web-{number}", node=NODE))

    @property
    def datastore(self) -> Kept:
        """A call of its own each: nothing is remembered from one to the next."""
        if self._datastore is None:
            self._datastore = Kept(self.recorded, self.clock, self.server, self.group)
            self.cluster = KubernetesCluster(self._datastore._api)
        return self._datastore

    @datastore.setter
    def datastore(self, _given: object) -> None:
        """OneNode's own is not used."""

    @property
    def cluster(self) -> KubernetesCluster:
        assert self.datastore
        return self._cluster

    @cluster.setter
    def cluster(self, given: object) -> None:
        self._cluster = given

    def cost(self, verb: str, number: int) -> list[str]:
        """What a call about one of the pods asks of the server."""
        self._datastore = None
        self.recorded.requests.clear()
        args = CniArgs(pod_name=f"web-{number}", pod_namespace="gold")
        call = self.call(verb, f"c{number}", args=args, **FIELDS)
        call = call.replace(request=call.request.replace(args=f"K8S_POD_NAMESPACE=gold;K8S_POD_NAME=web-{number}"))
        if verb == "ADD":
            add_workload(call, self.runtime(), self.undo())
        else:
            delete_workload(call, self.runtime())
        return self.recorded.log


@pytest.fixture(params=["v1", "v3"])
def node(request):
    return KubernetesNode(request.param)


def lists(log: list[str]) -> set[str]:
    """The plurals of the collections that were read."""
    return {path.rpartition("/")[2] for verb, path in (line.split() for line in log) if verb == "GET"} & {
        "ipamblocks", "ipamhandles", "blockaffinities", "pods", "ippools", "ipreservations",
    }  # fmt: skip


def test_the_first_call_of_a_node_claims_a_block(node):
    assert len(node.cost("ADD", 1)) <= FIRST_ADD


def test_a_call_on_a_node_with_room(node):
    node.cost("ADD", 1)
    assert len(node.cost("ADD", 2)) <= ADD


def test_taking_an_address_back(node):
    node.cost("ADD", 1)
    node.cost("ADD", 2)
    assert len(node.cost("DEL", 2)) <= DEL
    assert node.server.find(f"{PODS}/web-2")["metadata"]["annotations"]["cni.projectcalico.org/podIP"] == ""


def test_taking_the_last_address_of_a_block_back(node):
    node.cost("ADD", 1)
    assert len(node.cost("DEL", 1)) <= EMPTYING_DEL


def test_a_repeated_del_costs_less(node):
    node.cost("ADD", 1)
    first = len(node.cost("DEL", 1))
    assert len(node.cost("DEL", 1)) < first


def test_nothing_grows_with_the_cluster(node):
    """P01: with 5,000 affinities and blocks of other nodes the same requests are made, of which none lists these."""
    node.cost("ADD", 1)
    small = [node.cost("ADD", 2), node.cost("DEL", 2)]
    labels = {"projectcalico.org/affinity-type": "host", "projectcalico.org/ip-version": "4"}
    for number in range(5000):
        name = f"10-240-{number // 250}-{number % 250}-32"
        other = labels | {"projectcalico.org/hostname-hash": f"H{number}"}
        node.server.create(f"{node.root}/blockaffinities", {"metadata": {"name": f"x-{name}", "labels": other}})
        node.server.create(f"{node.root}/ipamblocks", {"metadata": {"name": name}})
    assert [node.cost("ADD", 2), node.cost("DEL", 2)] == small
    assert lists(small[0]) == {"blockaffinities", "ippools", "ipreservations"}
    assert lists(small[1]) == set()
