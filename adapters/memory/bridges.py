"""Bridges over plain dicts: the same plans as on Linux, made true in a `MemoryNetwork`.

Read this before the Linux one. Any kind of step can be told to fail (`fails`).

Invariant: it refuses what the kernel refuses as far as a plan can run into it, in the Linux adapter's words.
"""

from __future__ import annotations

from adapters.memory.network import HOST_NAMESPACE, MemoryLink, MemoryNetwork
from domain.bridge.addressing import LINK_LOCAL, in_the_way
from domain.linux.bridge_steps import (
    AppendRoute,
    AssignAddress,
    AwaitPort,
    AwaitSettled,
    Enslave,
    EnsureAddress,
    EnsureBridge,
    EnsureSysctl,
    EnsureVlanDevice,
    JoinVlans,
    MakePair,
    PinMac,
    SetAlias,
)
from domain.linux.link import Link, Route
from domain.linux.steps import CONTAINER, HOST, Device, KeepLearnedRoutes, SetUp, WriteSysctl
from ports.bridge import Bridges, NamespaceGone, Sides
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from domain.ipam.address import Cidr
    from domain.linux.steps import Step
    from ports.clock import Clock, Deadline
    from ports.log import Log

_FIRST_RANDOM_NAME = 0x1000_0000
_MAIN = 254


class _BridgeStepFailed(Exception):
    """What the kernel would say."""


class MemoryBridges(Bridges):
    """`network` is the machine; `own` the paths of the host's own namespace; `unreadable` those that cannot be opened.

    `privileged` is whether we may change the network; `routes` are those that `AppendRoute` made, in order.
    """

    def __init__(self, clock: Clock, log: Log) -> None:
        self.clock, self.log = clock, log
        self.network = MemoryNetwork()
        self.own = {"/proc/self/ns/net"}
        self.unreadable: set[str] = set()
        self.privileged = True
        self.routes: list[tuple[MemoryLink, AppendRoute]] = []
        self.failures: dict[object, str | BaseException] = {}
        self.named = 0

    def fails(self, what: object, reason: str | BaseException | None) -> None:
        """Every step with that action, or that verb of `Sides`, fails for that reason (None: works again)."""
        if reason is None:
            self.failures.pop(what, None)
        else:
            self.failures[what] = reason

    def is_own_namespace(self, netns: str) -> bool:
        return netns in self.own

    def enter(self, netns: str, deadline: Deadline) -> Sides:
        if deadline.passed(self.clock.monotonic()):
            raise Expired(f"network namespace {netns}")
        if netns in self.unreadable:
            raise Refused(f'failed to open netns "{netns}": permission denied')
        if netns not in self.network.namespaces:
            raise NamespaceGone(netns, f'failed to Statfs "{netns}": no such file or directory')
        return MemorySides(self, netns)

    def require_privilege(self) -> None:
        if not self.privileged:
            raise Refused("this process may not change the network: CAP_NET_ADMIN is missing", 50)


class MemorySides(Sides):
    def __init__(self, machine: MemoryBridges, netns: str) -> None:
        self._machine, self._network = machine, machine.network
        self._places = {HOST: HOST_NAMESPACE, CONTAINER: netns}
        self._named: list[Device] = []
        self._verbs: dict[type, Callable[[Any], object]] = {
            SetUp: lambda action: self._find(action.device).set_up(),
            WriteSysctl: self._write_sysctl,
            EnsureSysctl: self._write_sysctl,
            KeepLearnedRoutes: self._network.keep_learned_routes,
            EnsureBridge: self._ensure_bridge,
            MakePair: self._make_pair,
            Enslave: self._enslave,
            JoinVlans: self._join_vlans,
            EnsureVlanDevice: self._ensure_vlan_device,
            AssignAddress: lambda action: self._assign(self._find(action.device), action.address),
            AwaitSettled: lambda action: self._find(action.device),
            EnsureAddress: self._ensure_address,
            PinMac: lambda action: self._find(action.device),
            AppendRoute: lambda action: self._machine.routes.append((self._find(action.device), action)),
            AwaitPort: lambda action: self._find(action.device),
            SetAlias: self._set_alias,
        }

    def _fail_as_told(self, what: object) -> None:
        told = self._machine.failures.get(what)
        if isinstance(told, BaseException):
            raise told
        if told is not None:
            raise _BridgeStepFailed(told)

    def apply(self, plan: tuple[Step, ...]) -> tuple[Device, ...]:
        self._named = []
        for step in plan:
            try:
                self._fail_as_told(type(step.action))
                self._verbs[type(step.action)](step.action)
            except _BridgeStepFailed as error:
                if step.fatal:
                    raise Refused(f"{step.failure}{error}") from error
                self._machine.log.warning(f"{step.failure}{error}")
        return tuple(self._named)

    def link(self, device: Device) -> Link | None:
        found = self._network.link(self._places[device.side], device.name)
        return None if found is None else found.shown()

    def host_links(self) -> tuple[Link, ...]:
        return tuple([link.shown() for link in self._network.namespaces[HOST_NAMESPACE].values()])

    def addresses(self, device: Device, *, link_local: bool = False) -> tuple[Cidr, ...]:
        found = self._network.link(self._places[device.side], device.name)
        if found is None:
            return ()
        return tuple([cidr for cidr in found.addresses if link_local or cidr.address not in LINK_LOCAL])

    def routes(self, version: int) -> tuple[Route, ...]:
        """Those to the subnets of addresses, too, which the kernel makes by itself."""
        inside = self._network.namespaces[self._places[CONTAINER]].values()
        connected = [
            Route(link.index, cidr.network, table=_MAIN, scope=253) for link in inside for cidr in link.addresses
        ]
        made = [
            Route(link.index, one.destination, one.gateway, one.priority, one.table or _MAIN, one.scope)
            for link, one in self._machine.routes
            if link in inside
        ]
        return tuple([route for route in (*connected, *made) if route.destination.version == version])

    def remove(self, device: Device) -> None:
        try:
            self._fail_as_told("remove")
        except _BridgeStepFailed as error:
            raise Refused(f'failed to delete "{device.name}": {error}') from error
        found = self._network.link(self._places[device.side], device.name)
        if found is not None:
            self._network.delete(found)

    def close(self) -> None:
        """Nothing is held."""

    def _find(self, device: Device) -> MemoryLink:
        found = self._network.link(self._places[device.side], device.name)
        if found is None:
            raise _BridgeStepFailed("Link not found")
        return found

    def _write_sysctl(self, action: WriteSysctl | EnsureSysctl) -> None:
        self._network.sysctls[self._places[action.side], action.path] = action.value

    def _ensure_bridge(self, action: EnsureBridge) -> None:
        bridge = self._network.link(HOST_NAMESPACE, action.name)
        if bridge is None:
            bridge = self._network.add_link(HOST_NAMESPACE, action.name, "bridge")
            bridge.mtu = action.mtu or bridge.mtu
            bridge.filters_vlans = action.filters_vlans
        if bridge.kind != "bridge":
            raise _BridgeStepFailed(f'"{action.name}" already exists but is not a bridge')
        bridge.promiscuous = bridge.promiscuous or action.promiscuous

    def _make_pair(self, action: MakePair) -> None:
        name = action.wanted
        if not name or self._network.link(HOST_NAMESPACE, name) is not None:
            self._machine.named += 1
            name = f"veth{_FIRST_RANDOM_NAME + self._machine.named:08x}"
        inside = self._network.add_pair((self._places[CONTAINER], action.device.name), (HOST_NAMESPACE, name))
        inside.mac = action.mac or inside.mac
        for end in (inside, self._find(Device(HOST, name))):
            end.mtu = action.mtu or end.mtu
        self._named.append(Device(HOST, name))

    def _enslave(self, action: Enslave) -> None:
        port = self._find(action.device)
        port.master = self._find(Device(HOST, action.bridge))
        port.vlans = {1: True}
        port.hairpin, port.isolated = action.hairpin, action.isolated

    def _join_vlans(self, action: JoinVlans) -> None:
        self._join(self._find(action.device), action.untagged, action.tagged, only=action.only)

    def _join(self, port: MemoryLink, untagged: int, tagged: tuple[int, ...], *, only: bool) -> None:
        before = {} if only else dict.fromkeys(port.vlans, False)
        port.vlans = {**before, **dict.fromkeys(tagged, False), untagged: True}

    def _ensure_vlan_device(self, action: EnsureVlanDevice) -> None:
        device = self._network.link(HOST_NAMESPACE, action.name)
        if device is None:
            device = self._network.add_pair((HOST_NAMESPACE, action.name), (HOST_NAMESPACE, f"{action.name}-port"))
            port = self._find(Device(HOST, f"{action.name}-port"))
            port.master = self._find(Device(HOST, action.bridge))
            self._join(port, action.vlan, (), only=action.only)
            port.set_up()
        device.set_up()

    def _assign(self, link: MemoryLink, address: Cidr) -> None:
        if address in link.addresses:
            raise _BridgeStepFailed("file exists")
        link.addresses.append(address)

    def _ensure_address(self, action: EnsureAddress) -> None:
        link, wanted = self._find(action.device), action.address
        if wanted in link.addresses:
            return
        same_family = [cidr for cidr in link.addresses if cidr.version == wanted.version]
        for other in same_family:
            if not in_the_way(other, wanted):
                continue
            if not action.force:
                raise _BridgeStepFailed(f'"{link.name}" already has an IP address different from {wanted}')
            link.addresses.remove(other)
        link.addresses.append(wanted)

    def _set_alias(self, action: SetAlias) -> None:
        self._find(action.device).alias = action.alias
