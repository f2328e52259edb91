"""Making a plan true in the kernel, step by step, and taking back what could not be finished.

It knows the vocabulary of domain/linux/steps and nothing of who planned, so any plugin's plan runs here.

Invariant: after `run` has raised, `undo` removes the pair that this run made and nothing that was there before.
"""

from __future__ import annotations

from errno import EEXIST

from adapters.linux.netlink.seam import KernelError, KernelRoute, LinkMissing, PairRequest, Unanswered, unsupported
from domain.ipam.address import V6, Address, Cidr
from domain.linux.mac import link_local
from domain.linux.steps import (
    HOST,
    POD,
    AddAddress,
    AddRoute,
    AwaitLinkLocal,
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
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from adapters.linux.kernel import Kernel
    from adapters.linux.netlink.seam import Netlink
    from domain.linux.link import Link
    from domain.linux.steps import Step
    from ports.clock import Clock
    from ports.deadline import Deadline
    from ports.log import Log

_LINK_LOCAL = Cidr(V6, 0xFE80 << 112, 10)


class StepFailed(Exception):
    """A step did not get what it needs though the kernel refused nothing. `str()` is the reason for the user."""


class Interpreter:
    """Runs one plan in one container's namespace."""

    def __init__(self, kernel: Kernel, clock: Clock, log: Log, deadline: Deadline) -> None:
        self._kernel = kernel
        self._clock = clock
        self._log = log
        self._deadline = deadline
        self._made: CreatePair | None = None
        self._links: dict[Device, Link] = {}
        self._held: set[Device] = set()
        self._link_local: dict[Device, Address] = {}
        self._verbs: dict[type, Callable[[Any], None]] = {
            RemoveLeftover: self._remove_leftover,
            CreatePair: self._create_pair,
            FindLink: self._find_link,
            HoldMac: self._hold_mac,
            SetMac: self._set_mac,
            SetUp: self._set_up,
            WriteSysctl: self._write_sysctl,
            KeepLearnedRoutes: self._keep_learned_routes,
            AwaitLinkLocal: self._await_link_local,
            AddRoute: self._add_route,
            EnsureRoute: self._ensure_route,
            AddAddress: self._add_address,
        }

    def run(self, plan: Iterable[Step]) -> None:
        """Errors: `Refused` with the step's text and the kernel's reason, `Expired` between two steps."""
        for step in plan:
            self._check_time(f"the kernel (next: {step.action})")
            try:
                self._verbs[type(step.action)](step.action)
            except (KernelError, StepFailed) as error:
                text = self._text(step, error)
                if isinstance(error, KernelError) and error.explanation:
                    self._log.info("The kernel explains a refusal", step=text, explanation=error.explanation)
                if step.fatal:
                    raise Refused(text) from error
                self._log.warning(text)

    def undo(self, kernel: Kernel) -> None:
        """Delete the pair that this run made, if any; the other end goes with it. `kernel` shows the host."""
        if self._made is None:
            return
        netlink, device = kernel.netlink(HOST), self._made.host
        known = self._links.get(device) or netlink.link(device.name)
        if known is not None:
            netlink.delete_link(known.index)

    def _text(self, step: Step, error: Exception) -> str:
        failure = step.failure
        if isinstance(step.action, AddRoute) and isinstance(step.action.gateway, Device):
            failure = failure.replace("{gateway}", str(self._link_local.get(step.action.gateway)))
        return failure + (": " if failure[-1:].isalnum() and str(error) else "") + str(error)

    def _check_time(self, waited_for: str) -> None:
        if self._deadline.passed(self._clock.monotonic()):
            raise Expired(waited_for)

    def _side(self, device: Device) -> Netlink:
        return self._kernel.netlink(device.side)

    def _look_up(self, device: Device) -> Link:
        found = self._side(device).link(device.name)
        if found is None:
            raise LinkMissing
        self._links[device] = found
        return found

    def _index(self, device: Device) -> int:
        return (self._links.get(device) or self._look_up(device)).index

    def _remove_leftover(self, action: RemoveLeftover) -> None:
        host = self._side(action.device)
        found = host.link(action.device.name)
        if found is None:
            return
        if not action.force and lives_elsewhere(self._kernel, found, action.other_end):
            raise StepFailed(elsewhere_text(found, action.other_end))
        host.delete_link(found.index)

    def _create_pair(self, action: CreatePair) -> None:
        self._made = action  # before the request: a signal may come between the kernel's deed and its answer
        try:
            self._request_pair(action, action.kind)
        except Unanswered:  # it may be there
            raise
        except KernelError as error:
            if not action.fallback or not unsupported(error):
                self._made = None
                raise
            self._log.warning("The kernel has no such device type", wanted=action.kind, taken=action.fallback)
            self._create_pair(action.replace(kind=action.fallback, fallback=""))

    def _request_pair(self, action: CreatePair, kind: str) -> None:
        self._side(action.host).create_pair(
            PairRequest(
                kind=kind,
                name=action.host.name,
                peer_name=action.pod.name,
                peer_namespace=self._kernel.pod_namespace,
                mtu=action.mtu,
                queues=action.queues,
                mac=action.mac,
                tx_queue_length=action.tx_queue_length if kind == "veth" else None,
            )
        )

    def _find_link(self, action: FindLink) -> None:
        self._look_up(action.device)

    def _hold_mac(self, action: HoldMac) -> None:
        netlink, index = self._side(action.device), self._index(action.device)
        give_up = self._clock.monotonic() + action.limit
        while True:
            found = self._look_up(action.device)
            if found.mac == action.mac:
                self._held.add(action.device)
                return
            if self._clock.monotonic() >= give_up:
                raise StepFailed
            try:
                netlink.set_mac(index, action.mac)
            except KernelError as error:
                self._log.warning("Cannot set a device's MAC", device=action.device.name, mac=action.mac, error=error)
                return
            if self._look_up(action.device).mac != action.mac:
                self._pause(action.pause, f"{action.device.name} to accept MAC {action.mac}")

    def _set_mac(self, action: SetMac) -> None:
        self._side(action.device).set_mac(self._index(action.device), action.mac)

    def _set_up(self, action: SetUp) -> None:
        self._side(action.device).set_up(self._index(action.device), up=True)

    def _write_sysctl(self, action: WriteSysctl) -> None:
        self._kernel.write_sysctl(action.side, action.path, action.value)

    def _keep_learned_routes(self, action: KeepLearnedRoutes) -> None:
        if action.path and self._kernel.read_sysctl(HOST, action.path) == "1":
            return
        netlink = self._kernel.netlink(HOST)
        for index in netlink.learned_over():
            found = netlink.link_by_index(index)
            path = f"net/ipv6/conf/{found.name}/accept_ra" if found is not None else ""
            if path and self._kernel.read_sysctl(HOST, path) == "1":
                self._kernel.write_sysctl(HOST, path, "2")
                self._log.warning("The host goes on heeding routers though it forwards", setting=path, value="2")

    def _await_link_local(self, action: AwaitLinkLocal) -> None:
        index = self._index(action.device)
        expected = link_local(action.mac) if action.device in self._held else None
        give_up = self._clock.monotonic() + action.limit
        while True:
            found = [cidr.address for cidr in self._side(action.device).addresses(index, V6)]
            own = [address for address in found if address in _LINK_LOCAL]
            if own and expected in {None, own[0]}:
                self._link_local[action.device] = own[0]
                return
            if self._clock.monotonic() >= give_up:
                raise StepFailed(_no_link_local(own))
            if own:
                self._restart(action, index)
            self._pause(action.pause, f"the IPv6 link-local address of {action.device.name}")

    def _restart(self, action: AwaitLinkLocal, index: int) -> None:
        """Down and up again makes the kernel derive the address anew."""
        netlink = self._side(action.device)
        netlink.set_up(index, up=False)
        try:
            netlink.set_mac(index, action.mac)
        except KernelError as error:
            self._log.warning("Cannot set a device's MAC", device=action.device.name, mac=action.mac, error=error)
        self._pause(action.settle, f"{action.device.name} to settle")
        netlink.set_up(index, up=True)

    def _pause(self, seconds: float, waited_for: str) -> None:
        self._clock.sleep(seconds)
        self._check_time(waited_for)

    def _add_route(self, action: AddRoute) -> None:
        gateway = action.gateway
        if isinstance(gateway, Device):
            gateway = self._link_local[gateway]
        self._side(action.device).add_route(self._index(action.device), action.destination, gateway, action.scope)

    def _ensure_route(self, action: EnsureRoute) -> None:
        netlink, index = self._side(action.device), self._index(action.device)
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
        self._side(action.device).add_address(self._index(action.device), action.address)


def other_end_is(kernel: Kernel, found: Link, other_end: Device) -> bool:
    """Whether a host device's other end is that device in the pod's namespace.

    Indexes alone do not say so, since namespaces count from the same start.
    """
    if found.peer_namespace is None or found.peer_namespace != kernel.netlink(HOST).namespace_id(kernel.pod_namespace):
        return False
    there = kernel.netlink(POD).link(other_end.name)
    return there is not None and there.index == found.peer_index


def lives_elsewhere(kernel: Kernel, found: Link, other_end: Device) -> bool:
    """Whether a host device has its other end in a namespace, but not as that device of the pod's."""
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
