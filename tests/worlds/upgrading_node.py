"""A node whose containers have addresses of host-local, all in memory, and its upgrade to calico-ipam.

Invariant: what an upgrade leaves is looked at through the ports alone.
"""

from __future__ import annotations

from adapters.memory.reservation_files import MemoryReservationFiles
from domain.ipam.address import Address
from domain.ipam.block import Attribute
from domain.ipam.pools import AllocationConfig
from domain.ipam.upgrade import LOCK, NETWORK, Placement
from domain.workload.pod import Pod
from ports.datastore import Affinities, AffinityKey, ClusterInformationKey, NodeKey
from ports.runtime import UpgradeRuntime
from usecases.ipam.take_over import take_over
from usecases.upgrade_ipam import Wish, foresee_upgrade, upgrade_ipam, upgrade_until_done
from worlds.one_node import NEVER, NODE, OWNER, OneNode

POD_CIDR = "10.244.0.0/25"
PROGRAMS = ("/host/opt/cni/bin/calico", "/host/opt/cni/bin/host-local")
TUNNEL = f"ipip-tunnel-addr-{NODE}"


class UpgradingNode(OneNode):
    """`wish` is what is upgraded; `outside`, if set, is between an upgrade and every port."""

    def __init__(self, texts=None, **more) -> None:
        super().__init__(**more)
        self.cluster.namespaces = {}
        self.cluster.nodes[NODE] = (POD_CIDR,)
        self.files = MemoryReservationFiles(self.clock, texts)
        self.node.files.update(dict.fromkeys(PROGRAMS, "old"))
        self.wish = Wish(NODE, PROGRAMS)

    def upgrade_runtime(self, outside=None) -> UpgradeRuntime:
        return UpgradeRuntime(
            datastore=lambda: outside.store if outside else self.datastore,
            cluster=lambda: outside.cluster if outside else self.cluster,
            reservations=lambda: Outer(outside, self.files) if outside else self.files,
            node=lambda: Outer(outside, self.node) if outside else self.node,
            clock=self.clock,
            log=self.log,
        )

    def add_pod(self, address: str, name: str = "", **more) -> Pod:
        name = name or f"pod-{address}"
        pod = Pod(name, "web", **{"node": NODE, "ips": (address,), "phase": "Running", **more})
        self.cluster.pods["web", name] = pod
        return pod

    def reserve(self, address: str, container: str = "", **more) -> str:
        """A pod that has the address, and its reservation; the container's ID."""
        container = container or f"c{address}".replace(":", "-")
        self.add_pod(address, **more)
        self.files.texts = {LOCK: "", **(self.files.texts or {}), address: f"{container}\r\neth0"}
        return container

    def hold(self, address: str, handle: str) -> None:
        """Somebody else has it in IPAM."""
        where = Address.parse(address)
        block = where.host_cidr.replace(length=26).network
        placement = Placement(where, Attribute(handle, {"node": NODE}))
        assert take_over(self.work(), OWNER, block, [placement], AllocationConfig()).taken

    def upgrade(self, outside=None, undo=None):
        return upgrade_ipam(self.upgrade_runtime(outside), self.wish, undo or self.undo())

    def upgrade_until_done(self, undo=None):
        return upgrade_until_done(self.upgrade_runtime(), self.wish, undo or self.undo())

    def foresee(self):
        return foresee_upgrade(self.upgrade_runtime(), self.wish)

    def is_ready(self) -> bool | None:
        return self.get(ClusterInformationKey("default")).datastore_ready

    def tunnel(self) -> str:
        return self.get(NodeKey(NODE)).tunnel_address

    def moved(self) -> dict[str, str]:
        """Address → container, as recorded."""
        mine = f"{NETWORK}."
        return {
            address: handle.removeprefix(mine)
            for address, handle in self.holders().items()
            if handle and handle.startswith(mine)
        }

    def is_upgraded(self, containers: dict[str, str]) -> None:
        """Everything is as after an upgrade of these (address → container) that nothing has disturbed."""
        assert self.moved() == containers
        assert self.counts_match()
        assert self.files.texts is None
        assert self.is_ready() is True
        assert not set(PROGRAMS) & set(self.node.files)
        states = {self.get(AffinityKey(one.key.owner, one.key.cidr)).state for one in self.affinity_records()}
        assert states <= {"confirmed"}

    def affinity_records(self):
        return self.datastore.list(Affinities(OWNER), NEVER)


class Outer:
    """A port each of whose verbs is one step of the outside."""

    def __init__(self, outside, port) -> None:
        self._outside, self._port = outside, port

    def __getattr__(self, verb):
        if verb == "held":
            return self._port.held
        return lambda *about: self._outside.step(lambda: getattr(self._port, verb)(*about))
