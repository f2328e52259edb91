"""A dataplane over plain dicts: the same plan as on Linux, made true in a `MemoryNetwork`.

Read this before the Linux one. Any kind of step can be told to fail (`fails`), and any device type to be unknown.

Invariant: it refuses what the kernel refuses, in the same words, as far as a plan can run into it; the contract suite
that the Linux adapter passes holds for it too.
"""

from __future__ import annotations

from adapters.memory.network import HOST_NAMESPACE, MemoryLink, MemoryNetwork
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
from domain.workload.plan import plan_for
from ports.dataplane import Connected, Dataplane, Seen
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from domain.linux.steps import Step
    from domain.workload.attachment import Attachment
    from ports.clock import Clock, Deadline
    from ports.log import Log

_FILE_SYSTEM = "ef53"  # the magic number of ext4, which is where plain files lie


class _Failed(Exception):
    """What the kernel would say."""


class MemoryDataplane(Dataplane):
    """`network` is the machine; `own` the paths that lead to the namespace we run in, the host's; `unknown_kinds` the
    device types that this kernel lacks; `connected` what succeeded, in order; `unfinished` what nobody has waited for.
    """

    def __init__(self, clock: Clock, log: Log) -> None:
        self._clock = clock
        self._log = log
        self._failures: dict[type, str | BaseException] = {}
        self.network = MemoryNetwork()
        self.unknown_kinds: set[str] = set()
        self.connected: list[Attachment] = []
        self.unfinished: list[tuple[str, str]] = []

    def fails(self, action: type, reason: str | BaseException | None) -> None:
        """Every step with that action fails for that reason, or raises it (None: works again)."""
        if reason is None:
            self._failures.pop(action, None)
        else:
            self._failures[action] = reason

    def examine(
        self, netns: str, ifname: str, deadline: Deadline, host_name: str = "", *, replace_host_link: bool = False
    ) -> None:
        self._check_time(deadline, netns)
        self._check_path(netns)
        leftover = self.network.link(HOST_NAMESPACE, host_name)
        present = self.network.link(netns, ifname)
        if present is not None and (leftover is None or leftover.peer is not present):
            raise Refused(f'device "{ifname}" in network namespace "{netns}": file exists')
        if leftover is not None and not replace_host_link and _lives_elsewhere(leftover, netns, ifname):
            raise Refused(_in_use(leftover, ifname))

    def connect(self, attachment: Attachment, deadline: Deadline) -> Connected:
        self._check_time(deadline, attachment.netns)
        self._check_path(attachment.netns)
        try:
            plan = plan_for(attachment)
        except ValueError as error:
            raise Refused(str(error)) from error
        run = _Run(self.network, attachment.netns, self.unknown_kinds)
        try:
            for step in plan:
                self._check_time(deadline, attachment.netns)
                self._apply(run, step)
        except BaseException:
            run.undo()
            raise
        self.connected.append(attachment)
        addresses = tuple([cidr.address.host_cidr for cidr in attachment.addresses])
        return Connected(attachment.host_name, run.find(Device(CONTAINER, attachment.ifname)).mac, addresses)

    def _apply(self, run: _Run, step: Step) -> None:
        try:
            told = self._failures.get(type(step.action))
            if isinstance(told, BaseException):
                raise told
            if told is not None:
                raise _Failed(told)
            run.verbs[type(step.action)](step.action)
        except _Failed as error:
            text = f"{step.failure}{error}"
            if step.fatal:
                raise Refused(text) from error
            self._log.warning(text)

    def disconnect(self, netns: str, ifname: str, deadline: Deadline) -> None:
        if not netns:
            return
        self._check_time(deadline, netns)
        link = self.network.namespaces.get(netns, {}).get(ifname)
        if link is not None:
            self.network.delete(link)

    def begin_disconnect(self, netns: str, ifname: str, deadline: Deadline) -> Callable[[Deadline], None]:
        self.disconnect(netns, ifname, deadline)
        self.unfinished.append((netns, ifname))
        return lambda _deadline: self.unfinished.remove((netns, ifname))

    def look(self, netns: str, name: str, deadline: Deadline) -> Seen:
        self._check_time(deadline, netns)
        self._check_path(netns)
        found = self.network.link(netns, name)
        if found is None:
            return Seen(None)
        return Seen(found.shown(), tuple(found.addresses), tuple(found.routes), None if netns else self._proxies(name))

    def _proxies(self, name: str) -> frozenset[int]:
        settings = {4: f"net/ipv4/conf/{name}/proxy_arp", 6: f"net/ipv6/conf/{name}/proxy_ndp"}
        written = self.network.sysctls
        return frozenset([version for version, path in settings.items() if written.get((HOST_NAMESPACE, path)) == "1"])

    def _check_path(self, netns: str) -> None:
        if netns in self.network.namespaces:
            return
        if netns in self.network.files:
            raise Refused(f'unknown FS magic on "{netns}": {_FILE_SYSTEM}')
        raise Refused(f'failed to Statfs "{netns}": no such file or directory')

    def _check_time(self, deadline: Deadline, netns: str) -> None:
        if deadline.passed(self._clock.monotonic()):
            raise Expired(f"network namespace {netns}")


class _Run:
    """One plan being made true. `verbs` says for each kind of action what it does to the network."""

    def __init__(self, network: MemoryNetwork, netns: str, unknown_kinds: set[str]) -> None:
        self._network = network
        self._places = {HOST: HOST_NAMESPACE, CONTAINER: netns}
        self._unknown_kinds = unknown_kinds
        self._made: MemoryLink | None = None
        self.verbs: dict[type, Callable[[Any], object]] = {
            RemoveLeftover: self._remove_leftover,
            CreatePair: self._create_pair,
            FindLink: lambda action: self.find(action.device),
            HoldMac: self._set_mac,
            SetMac: self._set_mac,
            SetUp: lambda action: self.find(action.device).set_up(),
            WriteSysctl: self._write_sysctl,
            KeepLearnedRoutes: self._network.keep_learned_routes,
            AwaitLinkLocal: self._await_link_local,
            AwaitUsable: lambda action: self.find(action.device),
            AddRoute: self._add_route,
            EnsureRoute: self._ensure_route,
            AddAddress: self._add_address,
        }

    def undo(self) -> None:
        if self._made is not None:
            self._network.delete(self._made)

    def find(self, device: Device) -> MemoryLink:
        found = self._network.link(self._places[device.side], device.name)
        if found is None:
            raise _Failed("Link not found")
        return found

    def _remove_leftover(self, action: RemoveLeftover) -> None:
        found = self._network.link(HOST_NAMESPACE, action.device.name)
        if found is None:
            return
        if not action.force and _lives_elsewhere(found, self._places[CONTAINER], action.other_end.name):
            raise _Failed(_in_use(found, action.other_end.name))
        self._network.delete(found)

    def _create_pair(self, action: CreatePair) -> None:
        kind = action.kind if action.kind not in self._unknown_kinds else action.fallback
        if not kind:
            raise _Failed("operation not supported")
        ends = [(self._places[device.side], device.name) for device in (action.host, action.container)]
        if any(self._network.link(*end) is not None for end in ends):
            raise _Failed("file exists")
        self._made = self._network.add_pair(ends[0], ends[1], kind)
        self._made.mac = action.mac
        for end in (self._made, self.find(action.container)):
            end.mtu = action.mtu or end.mtu
            end.queues = action.queues
        if action.tx_queue_length is not None and kind == "veth":
            self._made.tx_queue_length = action.tx_queue_length

    def _set_mac(self, action: HoldMac | SetMac) -> None:
        self.find(action.device).mac = action.mac

    def _write_sysctl(self, action: WriteSysctl) -> None:
        if action.path.startswith(tuple(self._network.missing_settings)):
            raise _Failed(f"open /proc/sys/{action.path}: no such file or directory")
        self._network.sysctls[self._places[action.side], action.path] = action.value

    def _await_link_local(self, action: AwaitLinkLocal) -> None:
        if self.find(action.device).link_local is None:
            raise _Failed("failed to get IPv6 addresses for host side of the pod interface")

    def _add_route(self, action: AddRoute) -> None:
        link = self.find(action.device)
        gateway = action.gateway
        if isinstance(gateway, Device):
            gateway = self.find(gateway).link_local
        if self._owner_of_route(link, action) is not None:
            raise _Failed("file exists")
        link.routes.append((action.destination, gateway))

    def _ensure_route(self, action: EnsureRoute) -> None:
        link = self.find(action.device)
        owner = self._owner_of_route(link, action)
        if owner is None:
            link.routes.append((action.destination, None))
        elif owner is not link:
            wanted = f"Dst: {action.destination}, Scope: {action.scope}"
            raise _Failed(
                f"route (Ifindex: {link.index}, {wanted}) already exists for an interface other than '{link.name}': "
                f"route (Ifindex: {owner.index}, {wanted}, Iface: {owner.name})"
            )

    def _owner_of_route(self, link: MemoryLink, action: AddRoute | EnsureRoute) -> MemoryLink | None:
        neighbours = self._network.namespaces[link.namespace].values()
        return next((one for one in neighbours if action.destination in [to for to, _ in one.routes]), None)

    def _add_address(self, action: AddAddress) -> None:
        link = self.find(action.device)
        if action.address in link.addresses:
            raise _Failed("file exists")
        link.addresses.append(action.address)


def _lives_elsewhere(link: MemoryLink, netns: str, other_name: str) -> bool:
    """Whether its other end is in a namespace, but not as that device of the container's."""
    peer = link.peer
    return peer is not None and peer.namespace != link.namespace and (peer.namespace, peer.name) != (netns, other_name)


def _in_use(link: MemoryLink, other_name: str) -> str:
    peer = link.peer
    return (
        f'device "{link.name}" is in use: its other end ("{peer.name}" in network namespace "{peer.namespace}") '
        if peer is not None
        else ""
    ) + f'is not "{other_name}" of this container'
