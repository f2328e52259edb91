"""Containers connected by the kernel of this machine: the `Dataplane` port over netlink, namespaces and sysctls.

What to do is planned in domain/workload/plan, how is in the interpreter; here is only which namespace, what may be
replaced, and in what words the kernel's refusals leave.

Invariant: no namespace is made, no process started; a failed `connect` leaves no device of its own behind; and
`disconnect` touches the named device alone.
"""

from __future__ import annotations

from adapters.linux.interpreter import Interpreter
from adapters.linux.kernel import Kernel
from adapters.linux.namespaces import NamespaceMissing, NotANamespace, Stranded
from adapters.linux.netlink.seam import KernelError, LinkMissing, delete_named
from adapters.linux.netlink.transports import load_lean
from adapters.linux.spare_memory import give_back
from adapters.linux.steps import elsewhere_text, lives_elsewhere, other_end_is
from domain.ipam.address import V4, V6
from domain.linux.steps import CONTAINER, HOST, Device
from domain.workload.plan import plan_for
from ports.dataplane import Connected, Dataplane, Seen
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.linux.netlink.seam import Netlink
    from adapters.linux.netlink.transports import NetlinkLoader
    from domain.workload.attachment import Attachment
    from ports.clock import Clock, Deadline
    from ports.log import Log


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
        if not netns:
            return
        self._check_time(deadline, netns)
        try:
            kernel = Kernel(netns, self._load_netlink)
        except NamespaceMissing:
            return
        except NotANamespace as error:
            self._log.warning("Nothing to disconnect: not a network namespace", netns=netns, error=error)
            return
        except KernelError as error:
            raise Refused(f"failed to enter netns: {error}") from error
        with kernel:
            try:
                delete_named(kernel.netlink(CONTAINER), ifname)
            except KernelError as error:
                text = f"failed to clean up workload's pod interface inside netns: {error}"
                raise Refused(text) from error

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
