"""Doing to bridges and their ports what the words of domain/linux/bridge_steps say.

Several calls may do so at once with one bridge: what is there already is as good as what was made here.

Invariant: nothing that another call may rely on is deleted, but for an address that is in a gateway's way.
"""

from __future__ import annotations

import os
from errno import EACCES, EEXIST, EOPNOTSUPP

from adapters.linux.kernel import StepFailed
from adapters.linux.namespaces import open_namespace
from adapters.linux.netlink.bridge_seam import BridgeNetlink
from adapters.linux.netlink.seam import KernelError, LinkMissing, PairRequest, Unanswered, delete_named
from domain.bridge.addressing import in_the_way
from domain.ipam.address import V6
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
from domain.linux.link import PortVlan, Route
from domain.linux.steps import HOST, Device
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from adapters.linux.kernel import PlanRun
    from domain.linux.link import Link

_OWN_NAMESPACE = "/proc/thread-self/ns/net"
_NAME_TRIES = 10


def _random_name() -> str:
    """For a host's end of a pair: `veth` and eight hexadecimal digits."""
    return "veth" + os.urandom(4).hex()


class BridgeSteps:
    """`doings` is for each word what it does."""

    def __init__(self, run: PlanRun) -> None:
        self._run = run
        self.doings: dict[type, Callable[[Any], None]] = {
            EnsureBridge: self._ensure_bridge,
            MakePair: self._make_pair,
            Enslave: self._enslave,
            JoinVlans: self._join_vlans,
            EnsureVlanDevice: self._ensure_vlan_device,
            AssignAddress: self._assign_address,
            AwaitSettled: self._await_settled,
            EnsureAddress: self._ensure_address,
            PinMac: self._pin_mac,
            EnsureSysctl: self._ensure_sysctl,
            AppendRoute: self._append_route,
            AwaitPort: self._await_port,
            SetAlias: self._set_alias,
        }

    def _bridges(self, side: str = HOST) -> BridgeNetlink:
        netlink = self._run.kernel.netlink(side)
        assert isinstance(netlink, BridgeNetlink)  # noqa: S101 - who opens it decides: adapters/linux/bridges
        return netlink

    def _port(self, device: Device) -> Link:
        found = self._bridges(device.side).port(device.name)
        if found is None:
            raise LinkMissing
        return found

    def _ensure_bridge(self, action: EnsureBridge) -> None:
        try:
            self._bridges().create_bridge(action.name, action.mtu, filters_vlans=action.filters_vlans)
        except KernelError as error:
            if error.errno != EEXIST:
                lacking = action.filters_vlans and error.errno == EOPNOTSUPP
                hint = " (the kernel has no VLAN filtering in bridges)" if lacking else ""
                raise StepFailed(f'could not add "{action.name}": {error}{hint}') from error
        bridge = self._port(Device(HOST, action.name))
        if bridge.kind != "bridge":
            raise StepFailed(f'"{action.name}" already exists but is not a bridge')
        if action.promiscuous:
            self._bridges().set_promiscuous(bridge.index)

    def _make_pair(self, action: MakePair) -> None:
        """Asked for from inside the container, so that its end can be given a MAC; the host's is born on the host."""
        container, netlink = action.device, self._bridges(action.device.side)
        host_namespace = open_namespace(_OWN_NAMESPACE)
        try:
            for name in (action.wanted or _random_name(), *[_random_name() for _ in range(_NAME_TRIES)]):
                request = PairRequest(
                    kind="veth",
                    name=container.name,
                    peer_name=name,
                    peer_namespace=host_namespace,
                    mtu=action.mtu,
                    mac=action.mac,
                )
                try:
                    netlink.create_pair(request)
                except KernelError as error:
                    if isinstance(error, Unanswered):
                        self._remove_pair(container, name)
                    if error.errno != EEXIST:
                        raise
                    if netlink.link(container.name) is not None:
                        break
                else:
                    self._run.named.append(Device(HOST, name))
                    return
        finally:
            os.close(host_namespace)
        raise Refused(f'container veth name ("{container.name}") peer provided ("{name}") already exists')

    def _remove_pair(self, container: Device, name: str) -> None:
        """One that may have been made although nobody said so."""
        inside, outside = self._run.netlink(container).link(container.name), self._bridges().link(name)
        if inside is not None and outside is not None and inside.peer_index == outside.index:
            delete_named(self._run.netlink(container), container.name)

    def _enslave(self, action: Enslave) -> None:
        netlink, index = self._bridges(), self._run.index(action.device)
        netlink.enslave(index, self._port(Device(HOST, action.bridge)).index)
        if action.hairpin or action.isolated:
            netlink.set_port(index, hairpin=action.hairpin, isolated=action.isolated)

    def _join_vlans(self, action: JoinVlans) -> None:
        self._join(self._run.index(action.device), action.untagged, action.tagged, only=action.only)

    def _join(self, index: int, untagged: int, tagged: tuple[int, ...], *, only: bool) -> None:
        """What has just become a port is a member of the bridge's default VLAN."""
        netlink = self._bridges()
        wanted = [PortVlan(number) for number in tagged if number != untagged]
        wanted.append(PortVlan(untagged, pvid=True, untagged=True))
        try:
            if only:
                kept = {vlan.number for vlan in wanted}
                netlink.remove_vlans(index, [one.number for one in netlink.port_vlans(index) if one.number not in kept])
            netlink.add_vlans(index, wanted)
        except KernelError as error:
            if error.errno == EOPNOTSUPP:
                raise StepFailed(f"the kernel has no VLAN filtering in bridges: {error}") from error
            raise

    def _ensure_vlan_device(self, action: EnsureVlanDevice) -> None:
        device = Device(HOST, action.name)
        netlink = self._bridges()
        bridge = self._port(Device(HOST, action.bridge))
        if netlink.link(action.name) is None:
            other = _random_name()
            self._make_host_pair(action.name, other, bridge.mtu)
            port = self._run.index(Device(HOST, other))
            netlink.enslave(port, bridge.index)
            self._join(port, action.vlan, (), only=action.only)
            netlink.set_up(port, up=True)
        netlink.set_up(self._run.index(device), up=True)

    def _make_host_pair(self, name: str, other: str, mtu: int) -> None:
        here = open_namespace(_OWN_NAMESPACE)
        try:
            self._bridges().create_pair(
                PairRequest(kind="veth", name=name, peer_name=other, peer_namespace=here, mtu=mtu)
            )
        finally:
            os.close(here)

    def _assign_address(self, action: AssignAddress) -> None:
        netlink = self._bridges(action.device.side)
        netlink.assign_address(self._run.index(action.device), action.address, settled=action.settled)

    def _await_settled(self, action: AwaitSettled) -> None:
        index, netlink = self._run.index(action.device), self._bridges(action.device.side)
        give_up = self._run.clock.monotonic() + action.limit
        while True:
            waiting = [one for one in netlink.known_addresses(index, V6) if one.tentative]
            taken = [one for one in waiting if one.duplicate]
            if taken:
                raise StepFailed(f"{taken[0].address} is in use elsewhere on the link")
            if not [one for one in waiting if one.wide]:  # a link-local one may go on settling by itself
                return
            if self._run.clock.monotonic() >= give_up:
                raise StepFailed(
                    f"link {action.device.name} still has tentative addresses after {action.limit:g} seconds"
                )
            self._run.pause(action.pause, f"the addresses of {action.device.name} to settle")

    def _ensure_address(self, action: EnsureAddress) -> None:
        netlink, index = self._bridges(), self._run.index(action.device)
        present = [one.address for one in netlink.known_addresses(index, action.address.version)]
        if action.address in present:
            return
        for other in present:
            if not in_the_way(other, action.address):
                continue
            if not action.force:
                raise StepFailed(f'"{action.device.name}" already has an IP address different from {action.address}')
            netlink.remove_address(index, other)
        try:
            netlink.assign_address(index, action.address, settled=True)
        except KernelError as error:
            if error.errno != EEXIST:  # another call was faster
                off = " (IPv6 is switched off: disable_ipv6)" if error.errno == EACCES else ""
                raise StepFailed(f'could not add IP address to "{action.device.name}": {error}{off}') from error

    def _pin_mac(self, action: PinMac) -> None:
        found = self._port(action.device)
        self._bridges().set_mac(found.index, found.mac)

    def _ensure_sysctl(self, action: EnsureSysctl) -> None:
        if self._run.kernel.read_sysctl(action.side, action.path) != action.value:
            self._run.kernel.write_sysctl(action.side, action.path, action.value)

    def _append_route(self, action: AppendRoute) -> None:
        self._bridges(action.device.side).append_route(
            Route(
                link=self._run.index(action.device),
                destination=action.destination,
                gateway=action.gateway,
                priority=action.priority,
                table=action.table,
                scope=action.scope,
                mtu=action.mtu,
                advmss=action.advmss,
            )
        )

    def _await_port(self, action: AwaitPort) -> None:
        state = self._port(action.device).state
        for pause in action.pauses:
            if state == "up":
                return
            self._run.pause(pause, f"{action.device.name} to be operational")
            state = self._port(action.device).state
        if state != "up":
            raise StepFailed(state)

    def _set_alias(self, action: SetAlias) -> None:
        self._bridges().set_alias(self._run.index(action.device), action.alias)
