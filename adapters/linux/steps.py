"""Doing to devices, addresses, routes and sysctls what the words of domain/linux/steps say: each word's doing, once.

Invariant: a step asks the kernel only about the device that it names; what it waits for ends with the call's deadline.
"""

from __future__ import annotations

from errno import EEXIST

from adapters.linux.kernel import StepFailed
from adapters.linux.netlink.seam import KernelError, PairRequest, Unanswered, unsupported
from domain.ipam.address import V6, Address, Cidr
from domain.linux.link import link_local
from domain.linux.steps import (
    CONTAINER,
    HOST,
    AddAddress,
    AddRoute,
    AwaitLinkLocal,
    AwaitUsable,
    CreatePair,
    Device,
    EnsureRoute,
    FindLink,
    HoldMac,
    KeepLearnedRoutes,
    RemoveLeftover,
    SetMac,
    SetUp,
    WriteSysctl,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from adapters.linux.kernel import Kernel, PlanRun
    from adapters.linux.netlink.seam import KernelRoute, Netlink
    from domain.linux.link import Link

_LINK_LOCAL = Cidr(V6, 0xFE80 << 112, 10)


class Steps:
    """`doings` is for each word what it does."""

    def __init__(self, run: PlanRun) -> None:
        self._run = run
        self._held: set[Device] = set()
        self.doings: dict[type, Callable[[Any], None]] = {
            RemoveLeftover: self._remove_leftover,
            CreatePair: self._create_pair,
            FindLink: self._find_link,
            HoldMac: self._hold_mac,
            SetMac: self._set_mac,
            SetUp: self._set_up,
            WriteSysctl: self._write_sysctl,
            KeepLearnedRoutes: self._keep_learned_routes,
            AwaitLinkLocal: self._await_link_local,
            AwaitUsable: self._await_usable,
            AddRoute: self._add_route,
            EnsureRoute: self._ensure_route,
            AddAddress: self._add_address,
        }

    def _remove_leftover(self, action: RemoveLeftover) -> None:
        host = self._run.netlink(action.device)
        found = host.link(action.device.name)
        if found is None:
            return
        if not action.force and lives_elsewhere(self._run.kernel, found, action.other_end):
            raise StepFailed(elsewhere_text(found, action.other_end))
        host.delete_link(found.index)

    def _create_pair(self, action: CreatePair) -> None:
        self._run.made = action  # before the request: a signal may come between the kernel's deed and its answer
        try:
            self._request_pair(action, action.kind)
        except Unanswered:  # it may be there
            raise
        except KernelError as error:
            if not action.fallback or not unsupported(error):
                self._run.made = None
                raise
            self._run.log.warning("The kernel has no such device type", wanted=action.kind, taken=action.fallback)
            self._create_pair(action.replace(kind=action.fallback, fallback=""))

    def _request_pair(self, action: CreatePair, kind: str) -> None:
        self._run.netlink(action.host).create_pair(
            PairRequest(
                kind=kind,
                name=action.host.name,
                peer_name=action.container.name,
                peer_namespace=self._run.kernel.pod_namespace,
                mtu=action.mtu,
                queues=action.queues,
                mac=action.mac,
                tx_queue_length=action.tx_queue_length if kind == "veth" else None,
            )
        )

    def _find_link(self, action: FindLink) -> None:
        self._run.look_up(action.device)

    def _hold_mac(self, action: HoldMac) -> None:
        netlink, index = self._run.netlink(action.device), self._run.index(action.device)
        give_up = self._run.clock.monotonic() + action.limit
        while True:
            found = self._run.look_up(action.device)
            if found.mac == action.mac:
                self._held.add(action.device)
                return
            if self._run.clock.monotonic() >= give_up:
                raise StepFailed
            try:
                netlink.set_mac(index, action.mac)
            except KernelError as error:
                self._run.log.warning(
                    "Cannot set a device's MAC", device=action.device.name, mac=action.mac, error=error
                )
                return
            if self._run.look_up(action.device).mac != action.mac:
                self._run.pause(action.pause, f"{action.device.name} to accept MAC {action.mac}")

    def _set_mac(self, action: SetMac) -> None:
        self._run.netlink(action.device).set_mac(self._run.index(action.device), action.mac)

    def _set_up(self, action: SetUp) -> None:
        self._run.netlink(action.device).set_up(self._run.index(action.device), up=True)

    def _write_sysctl(self, action: WriteSysctl) -> None:
        self._run.kernel.write_sysctl(action.side, action.path, action.value)

    def _keep_learned_routes(self, action: KeepLearnedRoutes) -> None:
        if action.path and self._run.kernel.read_sysctl(HOST, action.path) == "1":
            return
        netlink = self._run.kernel.netlink(HOST)
        for index in netlink.learned_over():
            found = netlink.link_by_index(index)
            path = f"net/ipv6/conf/{found.name}/accept_ra" if found is not None else ""
            if path and self._run.kernel.read_sysctl(HOST, path) == "1":
                self._run.kernel.write_sysctl(HOST, path, "2")
                self._run.log.warning("The host goes on heeding routers though it forwards", setting=path, value="2")

    def _await_link_local(self, action: AwaitLinkLocal) -> None:
        index = self._run.index(action.device)
        expected = link_local(action.mac) if action.device in self._held else None
        give_up = self._run.clock.monotonic() + action.limit
        while True:
            found = [cidr.address for cidr in self._run.netlink(action.device).addresses(index, V6)]
            own = [address for address in found if address in _LINK_LOCAL]
            if own and expected in {None, own[0]}:
                self._run.link_local[action.device] = own[0]
                return
            if self._run.clock.monotonic() >= give_up:
                raise StepFailed(_no_link_local(own))
            if own:
                self._restart(action, index)
            self._run.pause(action.pause, f"the IPv6 link-local address of {action.device.name}")

    def _await_usable(self, action: AwaitUsable) -> None:
        index, netlink = self._run.index(action.device), self._run.netlink(action.device)
        give_up = self._run.clock.monotonic() + action.limit
        while netlink.has_tentative(index):
            if self._run.clock.monotonic() >= give_up:
                raise StepFailed(f"{action.device.name} has a tentative IPv6 address after {action.limit:g} seconds")
            self._run.pause(action.pause, f"the addresses of {action.device.name} to settle")

    def _restart(self, action: AwaitLinkLocal, index: int) -> None:
        """Down and up again makes the kernel derive the address anew."""
        netlink = self._run.netlink(action.device)
        netlink.set_up(index, up=False)
        try:
            netlink.set_mac(index, action.mac)
        except KernelError as error:
            self._run.log.warning("Cannot set a device's MAC", device=action.device.name, mac=action.mac, error=error)
        self._run.pause(action.settle, f"{action.device.name} to settle")
        netlink.set_up(index, up=True)

    def _add_route(self, action: AddRoute) -> None:
        gateway = action.gateway
        if isinstance(gateway, Device):
            gateway = self._run.link_local[gateway]
        self._run.netlink(action.device).add_route(
            self._run.index(action.device), action.destination, gateway, action.scope
        )

    def _ensure_route(self, action: EnsureRoute) -> None:
        netlink, index = self._run.netlink(action.device), self._run.index(action.device)
        wanted = f"route (Ifindex: {index}, Dst: {action.destination}, Scope: {action.scope}"
        try:
            netlink.add_route(index, action.destination, None, action.scope)
        except KernelError as error:
            if error.errno != EEXIST:
                text = f"failed to add {wanted}, Iface: {action.device.name}): {error}"
                raise StepFailed(text) from error
        else:
            return
        there = [one for one in netlink.routes(action.destination.version) if one.destination == action.destination]
        # IPv6 routes have no scope of their own; the kernel shows them all as universe.
        same_scope = {action.scope} if action.destination.version != V6 else {action.scope, "universe"}
        if any(one.link == index and one.scope in same_scope for one in there):
            return
        raise StepFailed(
            f"{wanted}) already exists for an interface other than '{action.device.name}': "
            + (_describe(netlink, there[0]) if there else "it cannot be found any more")
        )

    def _add_address(self, action: AddAddress) -> None:
        self._run.netlink(action.device).add_address(self._run.index(action.device), action.address)


def other_end_is(kernel: Kernel, found: Link, other_end: Device) -> bool:
    """Whether a host device's other end is that device in the container's namespace.

    Indexes alone do not say so, since namespaces count from the same start.
    """
    if found.peer_namespace is None or found.peer_namespace != kernel.netlink(HOST).namespace_id(kernel.pod_namespace):
        return False
    there = kernel.netlink(CONTAINER).link(other_end.name)
    return there is not None and there.index == found.peer_index


def lives_elsewhere(kernel: Kernel, found: Link, other_end: Device) -> bool:
    """Whether a host device has its other end in a namespace, but not as that device of the container's."""
    return found.peer_namespace is not None and not other_end_is(kernel, found, other_end)


def elsewhere_text(found: Link, other_end: Device) -> str:
    return (
        f'device "{found.name}" is in use: its other end (index {found.peer_index} in the network namespace with '
        f'id {found.peer_namespace}) is not "{other_end.name}" of this container'
    )


def _no_link_local(own: list[Address]) -> str:
    if own:
        return f"host-side interface got wrong link-local IP address: {own[0]}"
    return "failed to get IPv6 addresses for host side of the pod interface"


def _describe(netlink: Netlink, route: KernelRoute) -> str:
    link = netlink.link_by_index(route.link)
    name = link.name if link else "unknown"
    return f"route (Ifindex: {route.link}, Dst: {route.destination}, Scope: {route.scope}, Iface: {name})"
