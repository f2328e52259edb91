"""Bridges of this machine's kernel: the `Bridges` port over netlink, namespaces and sysctls.

Invariant: what is held open for a call is closed with it, and nothing is changed but by a plan, or by deleting a device
that was named.
"""

from __future__ import annotations

from adapters.linux.files import reason
from adapters.linux.interpreter import Interpreter
from adapters.linux.kernel import Kernel
from adapters.linux.namespaces import NamespaceMissing, NotANamespace
from adapters.linux.netlink.bridge_seam import BridgeNetlink
from adapters.linux.netlink.seam import KernelError, delete_named
from adapters.linux.netlink.transports import load_lean_bridge
from adapters.linux.node_files import is_own_namespace
from domain.cni.errors import NOT_AVAILABLE
from domain.ipam.address import V4, V6
from domain.linux.steps import CONTAINER, HOST, Device
from ports.bridge import Bridges, NamespaceGone, Sides
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.linux.netlink.transports import BridgeNetlinkLoader
    from domain.ipam.address import Cidr
    from domain.linux.link import Link, Route
    from domain.linux.steps import Step
    from ports.clock import Clock, Deadline
    from ports.log import Log

_STATUS, _CAPABILITIES, _NET_ADMIN = "/proc/thread-self/status", "CapEff:", 12


class LinuxBridges(Bridges):
    """`load_netlink` is called when netlink is first needed; what it returns opens one for the thread's namespace."""

    def __init__(
        self,
        clock: Clock,
        log: Log,
        load_netlink: BridgeNetlinkLoader = load_lean_bridge,
    ) -> None:
        self._clock = clock
        self._log = log
        self._load_netlink = load_netlink

    def is_own_namespace(self, netns: str) -> bool:
        return is_own_namespace(netns)

    def enter(self, netns: str, deadline: Deadline) -> Sides:
        if deadline.passed(self._clock.monotonic()):
            raise Expired(f"network namespace {netns}")
        try:
            kernel = Kernel(netns, self._load_netlink)
        except (NamespaceMissing, NotANamespace) as error:
            raise NamespaceGone(netns, str(error)) from error
        except KernelError as error:
            raise Refused(f'failed to open netns "{netns}": {error}') from error
        return LinuxSides(kernel, self._clock, self._log, deadline)

    def require_privilege(self) -> None:
        try:
            with open(_STATUS, "rb") as file:
                lines = file.read().decode("ascii", "replace").splitlines()
        except OSError as error:
            self._log.warning("Cannot tell our own capabilities", path=_STATUS, error=reason(error))
            return
        held = next((int(line.split()[1], 16) for line in lines if line.startswith(_CAPABILITIES)), 0)
        if not held >> _NET_ADMIN & 1:
            raise Refused("this process may not change the network: CAP_NET_ADMIN is missing", NOT_AVAILABLE)


class LinuxSides(Sides):
    def __init__(self, kernel: Kernel, clock: Clock, log: Log, deadline: Deadline) -> None:
        self._kernel = kernel
        self._interpreter = Interpreter(kernel, clock, log, deadline)

    def _netlink(self, side: str) -> BridgeNetlink:
        netlink = self._kernel.netlink(side)
        assert isinstance(netlink, BridgeNetlink)  # noqa: S101 - `load_netlink` says so
        return netlink

    def apply(self, plan: tuple[Step, ...]) -> tuple[Device, ...]:
        return self._interpreter.run(plan)

    def link(self, device: Device) -> Link | None:
        try:
            netlink = self._netlink(device.side)
            found = netlink.port(device.name)
            if found is None:
                return None
            return found.replace(vlans=tuple(netlink.port_vlans(found.index))) if found.master else found
        except KernelError as error:
            raise Refused(f'failed to lookup "{device.name}": {error}') from error

    def host_links(self) -> tuple[Link, ...]:
        try:
            return tuple(self._netlink(HOST).ports())
        except KernelError as error:
            raise Refused(f"failed to list devices: {error}") from error

    def addresses(self, device: Device, *, link_local: bool = False) -> tuple[Cidr, ...]:
        try:
            netlink = self._netlink(device.side)
            found = netlink.link(device.name)
            if found is None:
                return ()
            known = [one for version in (V4, V6) for one in netlink.known_addresses(found.index, version)]
            return tuple([one.address for one in known if one.wide or link_local])
        except KernelError as error:
            raise Refused(f'failed to get IP addresses for "{device.name}": {error}') from error

    def routes(self, version: int) -> tuple[Route, ...]:
        try:
            return tuple(self._netlink(CONTAINER).known_routes(version))
        except KernelError as error:
            raise Refused(f"failed to list routes: {error}") from error

    def remove(self, device: Device) -> None:
        try:
            delete_named(self._netlink(device.side), device.name)
        except KernelError as error:
            raise Refused(f'failed to delete "{device.name}": {error}') from error

    def close(self) -> None:
        self._kernel.close()
