"""One node of a cluster whose API server is a fake: pods networked by the very use cases, and what each call asks.

Invariant: each call has a connection of its own, so from one to the next only notes in the host's lock are kept.
"""

from __future__ import annotations

from adapters.kubernetes.cluster import KubernetesCluster
from contracts.kubernetes_pods import PODS, pod_object
from domain.cni.netconf import IpamSettings, PolicySettings
from domain.cni.request import CniArgs
from domain.ipam.address import Cidr
from domain.ipam.block import Attribute
from ports.datastore import BlockKey
from services.fake_apiserver import GROUPS, FakeApiserver, Recorded
from usecases.add_workload import add_workload
from usecases.check_workload import check_workload
from usecases.delete_workload import delete_workload
from worlds.kubernetes_world import Administered
from worlds.one_node import NODE, OneNode

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
        self.fields = dict(FIELDS)
        self._datastore: Kept | None = None
        super().__init__(pools=("10.244.0.0/16",))
        self.lock.left = ""
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

    def cost(self, verb: str, number: int, **more: object) -> list[str]:
        """What a call about one of the pods asks of the server."""
        self.recorded.requests.clear()
        self.recorded.rounds.clear()
        self.pod_call(verb, number, **more)
        return self.recorded.log

    def rounds(self, verb: str, number: int) -> list[int]:
        """How many requests each of its round trips had."""
        self.cost(verb, number)
        return list(self.recorded.rounds)

    def fill_all_but(self, cidr: str, *, left: int) -> None:
        """Somebody takes the addresses of a block."""
        key = BlockKey(Cidr.parse(cidr))
        free = self.get(key).free(())
        taken = self.get(key).take(free[: len(free) - left], Attribute("x", {"node": "elsewhere"}))
        self.put(key, taken.replace(sequence=taken.sequence + 1))

    def forget(self) -> None:
        """What follows is another process."""
        self._datastore = None

    def pod_call(self, verb: str, number: int, **more: object) -> None:
        """A call about one of the pods, undone on failure."""
        self.forget()
        args = CniArgs(pod_name=f"web-{number}", pod_namespace="gold")
        call = self.call(verb, f"c{number}", args=args, **{**self.fields, **more})
        call = call.replace(request=call.request.replace(args=f"K8S_POD_NAMESPACE=gold;K8S_POD_NAME=web-{number}"))
        if verb == "ADD":
            self.undoing(lambda undo: add_workload(call, self.runtime(), undo))
        else:
            {"DEL": delete_workload, "CHECK": check_workload}[verb](call, self.runtime())
