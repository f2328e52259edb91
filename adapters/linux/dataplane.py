"""Containers connected by the kernel of this machine: the `Dataplane` port over netlink, namespaces and sysctls.

What to do is planned in domain/workload/plan, how is in the interpreter; here is only which namespace, what may be
replaced, and in what words the kernel's refusals leave.

Invariant: no namespace is made, no process started, and no thread but that of `begin_disconnect`; a failed `connect`
leaves no device of its own behind; and `disconnect` touches the named device alone.
"""

from __future__ import annotations

from adapters.linux.interpreter import Interpreter
from adapters.linux.kernel import Kernel
from adapters.linux.namespaces import NamespaceMissing, NotANamespace, Stranded
from adapters.linux.netlink.seam import KernelError, LinkMissing, delete_found, delete_named
from adapters.linux.netlink.transports import load_lean
from adapters.linux.spare_memory import give_back
from adapters.linux.steps import elsewhere_text, lives_elsewhere, other_end_is
from domain.ipam.address import V4, V6
from domain.linux.steps import CONTAINER, HOST, Device
from domain.workload.plan import plan_for
from ports.dataplane import Connected, Dataplane, Seen, nothing_left
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.linux.departure import Departure
    from adapters.linux.netlink.seam import Netlink
    from adapters.linux.netlink.transports import NetlinkLoader
    from domain.linux.link import Link
    from domain.workload.attachment import Attachment
    from ports.clock import Clock, Deadline
    from ports.log import Log

_FIRST_LOOK = 0.0005  # seconds after which a device is usually gone
_LONGEST_PAUSE = 0.05


class LinuxDataplane(Dataplane):
    """`load_netlink` is called when netlink is first needed; what it returns opens one for the thread's namespace."""

    def __init__(
        self,
        clock: Clock,
        log: Log,
        load_netlink: NetlinkLoader = load_lean,
    ) -> None:
        self._clock = clock
        self._log = log
        self._load_netlink = load_netlink

    def examine(
        self, netns: str, ifname: str, deadline: Deadline, host_name: str = "", *, replace_host_link: bool = False
    ) -> None:
        self._check_time(deadline, netns)
        try:
            with Kernel(netns, self._load_netlink) as kernel:
                leftover = kernel.netlink(HOST).link(host_name) if host_name else None
                container = Device(CONTAINER, ifname)
                present = kernel.netlink(CONTAINER).link(ifname)
                if present is not None and not (leftover is not None and other_end_is(kernel, leftover, container)):
                    raise Refused(f'device "{ifname}" in network namespace "{netns}": file exists')
                if leftover is not None and not replace_host_link and lives_elsewhere(kernel, leftover, container):
                    raise Refused(elsewhere_text(leftover, container))
        except KernelError as error:
            raise Refused(str(error)) from error

    def connect(self, attachment: Attachment, deadline: Deadline) -> Connected:
        self._check_time(deadline, attachment.netns)
        try:
            plan = plan_for(attachment)
            with Kernel(attachment.netns, self._load_netlink) as kernel:
                interpreter = Interpreter(kernel, self._clock, self._log, deadline)
                try:
                    interpreter.run(plan)
                    made = kernel.netlink(CONTAINER).link(attachment.ifname)
                    if made is None:
                        raise LinkMissing
                except Stranded:  # whatever would be deleted now would be the container's
                    raise
                except BaseException:
                    give_back()
                    self._undo(attachment.netns, interpreter)
                    raise
        except (ValueError, KernelError) as error:
            raise Refused(str(error)) from error
        addresses = tuple([cidr.address.host_cidr for cidr in attachment.addresses])
        return Connected(attachment.host_name, made.mac, addresses)

    def _undo(self, netns: str, interpreter: Interpreter) -> None:
        """Over sockets of its own: a signal may have interrupted a conversation on the others."""
        try:
            with Kernel("", self._load_netlink) as kernel:
                interpreter.undo(kernel)
        except KernelError as error:
            self._log.error("Cannot remove the device pair of a failed call", netns=netns, error=error)

    def disconnect(self, netns: str, ifname: str, deadline: Deadline) -> None:
        kernel = self._enter(netns, deadline)
        if kernel is None:
            return
        with kernel:
            try:
                delete_named(kernel.netlink(CONTAINER), ifname)
            except KernelError as error:
                raise _not_cleaned_up(error) from error

    def begin_disconnect(self, netns: str, ifname: str, deadline: Deadline) -> Callable[[Deadline], None]:
        kernel = self._enter(netns, deadline)
        if kernel is None:
            return nothing_left
        with kernel:
            try:
                netlink = kernel.netlink(CONTAINER)
                found = netlink.link(ifname)
                if found is None:
                    return nothing_left
                if not netlink.may_change_threads:
                    delete_found(netlink, found)
                    return nothing_left
                departure = self._depart(kernel, found, deadline)
            except KernelError as error:
                raise _not_cleaned_up(error) from error
        return lambda until: self._await_end(departure, netns, until)

    def _depart(self, kernel: Kernel, found: Link, deadline: Deadline) -> Departure:
        """Begun, and so far that nobody sees the device any more, or answered."""
        from adapters.linux.departure import Departure

        departure = Departure(kernel.give_away(CONTAINER), found)
        pause = _FIRST_LOOK
        while not departure.wait(pause):
            if _is_gone(kernel, found):
                return departure
            if deadline.passed(self._clock.monotonic()):
                raise Expired(f'the kernel to remove device "{found.name}"')
            pause = min(pause * 2, _LONGEST_PAUSE)
        if departure.failure is not None:
            raise departure.failure
        return departure

    def _await_end(self, departure: Departure, netns: str, until: Deadline) -> None:
        """What the kernel says is of no interest any more."""
        if not departure.wait(until.left(self._clock.monotonic())):
            self._log.warning("The kernel has not finished with a removed device", netns=netns)

    def _enter(self, netns: str, deadline: Deadline) -> Kernel | None:
        """None where there is nothing to disconnect from."""
        if not netns:
            return None
        self._check_time(deadline, netns)
        try:
            return Kernel(netns, self._load_netlink)
        except NamespaceMissing:
            return None
        except NotANamespace as error:
            self._log.warning("Nothing to disconnect: not a network namespace", netns=netns, error=error)
            return None
        except KernelError as error:
            raise Refused(f"failed to enter netns: {error}") from error

    def look(self, netns: str, name: str, deadline: Deadline) -> Seen:
        self._check_time(deadline, netns)
        try:
            with Kernel(netns, self._load_netlink) as kernel:
                seen = _see(kernel.netlink(CONTAINER if netns else HOST), name)
                return seen if netns or seen.link is None else seen.replace(proxies=_proxies(kernel, name))
        except KernelError as error:
            raise Refused(str(error)) from error

    def _check_time(self, deadline: Deadline, netns: str) -> None:
        if deadline.passed(self._clock.monotonic()):
            raise Expired(f"network namespace {netns}")


def _not_cleaned_up(error: KernelError) -> Refused:
    return Refused(f"failed to clean up workload's pod interface inside netns: {error}")


def _is_gone(kernel: Kernel, found: Link) -> bool:
    """Whether neither namespace shows its end. False where the kernel cannot be asked; its answer is to come.

    Where the other end lives in a third namespace, an unrelated device of the host may have its index. Then only the
    answer tells.
    """
    try:
        if kernel.netlink(CONTAINER).link_by_index(found.index) is not None:
            return False
        return not found.peer_index or kernel.netlink(HOST).link_by_index(found.peer_index) is None
    except KernelError:
        return False


def _proxies(kernel: Kernel, name: str) -> frozenset[int]:
    """A version that the kernel lacks has no such setting, and answers for nobody."""
    settings = {V4: f"net/ipv4/conf/{name}/proxy_arp", V6: f"net/ipv6/conf/{name}/proxy_ndp"}
    answering = []
    for version, path in settings.items():
        try:
            if kernel.read_sysctl(HOST, path) == "1":
                answering.append(version)
        except KernelError:
            continue
    return frozenset(answering)


def _see(netlink: Netlink, name: str) -> Seen:
    found = netlink.link(name)
    if found is None:
        return Seen(None)
    addresses = [cidr for version in (V4, V6) for cidr in netlink.addresses(found.index, version)]
    routes = [
        (route.destination, route.gateway)
        for version in (V4, V6)
        for route in netlink.routes(version)
        if route.link == found.index
    ]
    return Seen(found, tuple(addresses), tuple(routes))
