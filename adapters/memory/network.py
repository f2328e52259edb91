"""Network namespaces, devices and routes as dicts: as much of a kernel as a plan can tell apart.

Invariant: a device is in exactly one namespace, and a pair loses both ends together.
"""

from __future__ import annotations

from domain.ipam.address import V6, Address, Cidr
from domain.linux.link import Link, PortVlan, link_local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.linux.steps import KeepLearnedRoutes

HOST_NAMESPACE = ""


class MemoryLink:
    """One end. `namespace` is a path, "" for the host's. `routes` are (destination, gateway or None), main table.

    `master` is the bridge whose port it is; `vlans` maps those that it is a member of to whether it is its own one.
    """

    def __init__(self, namespace: str, name: str, kind: str, index: int, mac: str) -> None:
        self.namespace = namespace
        self.name = name
        self.kind = kind
        self.index = index
        self.mac = mac
        self.mtu = 1500
        self.queues = 1
        self.tx_queue_length = 1000
        self.up = False
        self.peer: MemoryLink | None = None
        self.addresses: list[Cidr] = []
        self.routes: list[tuple[Cidr, Address | None]] = []
        self.alias = ""
        self.master: MemoryLink | None = None
        self.promiscuous = self.hairpin = self.isolated = self.filters_vlans = False
        self.vlans: dict[int, bool] = {}

    def __repr__(self) -> str:
        return f"MemoryLink({self.namespace!r}, {self.name!r}, {self.kind!r})"

    def set_up(self) -> None:
        self.up = True
        own = link_local(self.mac).host_cidr.replace(length=64)
        if own not in self.addresses:
            self.addresses.append(own)

    def shown(self) -> Link:
        """As the kernel would show it."""
        peer, master = self.peer, self.master
        return Link(
            index=self.index,
            name=self.name,
            kind=self.kind,
            up=self.up,
            mtu=self.mtu,
            mac=self.mac,
            peer_index=peer.index if peer is not None else 0,
            master=master.index if master is not None else 0,
            state="up" if self.up and (peer is None or peer.up) else "down",
            alias=self.alias,
            promiscuous=self.promiscuous,
            hairpin=self.hairpin,
            isolated=self.isolated,
            vlans=self._memberships() if master is not None else (),
        )

    def _memberships(self) -> tuple[PortVlan, ...]:
        return tuple([PortVlan(number, pvid=own, untagged=own) for number, own in sorted(self.vlans.items())])

    @property
    def link_local(self) -> Address | None:
        return next((cidr.address for cidr in self.addresses if cidr.version == V6 and cidr.length == 64), None)


class MemoryNetwork:
    """`namespaces` maps a path to its devices by name; `sysctls` maps (path, setting) to what was written last.

    `learned_over` are the host's devices with routes that routers have advertised.
    `files` are paths at which something else lies; `missing_settings` prefixes of settings that this kernel lacks.
    """

    def __init__(self) -> None:
        self.namespaces: dict[str, dict[str, MemoryLink]] = {HOST_NAMESPACE: {}}
        self.sysctls: dict[tuple[str, str], str] = {}
        self.files: set[str] = set()
        self.missing_settings: set[str] = set()
        self.learned_over: set[str] = set()
        self._made = 0

    def add_namespace(self, path: str) -> None:
        """It has a loopback device, as the kernel's own do."""
        self.namespaces[path] = {}
        self.add_link(path, "lo", "")

    def remove_namespace(self, path: str) -> None:
        """Its devices go with it, and their other ends."""
        for link in list(self.namespaces.pop(path).values()):
            if link.peer is not None:
                self.namespaces[link.peer.namespace].pop(link.peer.name, None)

    def link(self, namespace: str, name: str) -> MemoryLink | None:
        return self.namespaces[namespace].get(name)

    def add_link(self, namespace: str, name: str, kind: str = "dummy") -> MemoryLink:
        self._made += 1
        link = MemoryLink(
            namespace, name, kind, self._made, f"02:00:00:00:{self._made >> 8:02x}:{self._made & 255:02x}"
        )
        self.namespaces[namespace][name] = link
        return link

    def add_pair(self, one: tuple[str, str], other: tuple[str, str], kind: str = "veth") -> MemoryLink:
        """Each end is (namespace, name); the first one is returned."""
        first, second = self.add_link(*one, kind), self.add_link(*other, kind)
        first.peer, second.peer = second, first
        return first

    def keep_learned_routes(self, action: KeepLearnedRoutes) -> None:
        if action.path and self.sysctls.get((HOST_NAMESPACE, action.path)) == "1":
            return
        for name in self.learned_over:
            path = f"net/ipv6/conf/{name}/accept_ra"
            if self.sysctls.get((HOST_NAMESPACE, path), "1") == "1":
                self.sysctls[HOST_NAMESPACE, path] = "2"

    def delete(self, link: MemoryLink) -> None:
        """Whoever deletes a loopback device is told that it cannot be, and has not made it."""
        if not link.kind:
            return
        for end in (link, link.peer):
            if end is not None:
                self.namespaces[end.namespace].pop(end.name, None)
