"""The two sides of one container, the host's and its own, as a place where things can be looked up and done; and what
the steps of one plan share while they are done there.

One netlink socket per side is opened when first needed. The container's is opened inside its namespace and then used
from outside. Its sysctls are written from inside, because /proc/sys shows what belongs to the calling thread.

Invariant: `close` leaves no descriptor behind; between verbs the thread is in its own namespace.
"""

from __future__ import annotations

import os

from adapters.linux.namespaces import Inside, open_namespace
from adapters.linux.netlink.seam import LinkMissing
from adapters.linux.sysctl import read_sysctl, write_sysctl
from domain.linux.steps import HOST
from ports.errors import Expired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from adapters.linux.netlink.seam import Netlink
    from adapters.linux.netlink.transports import NetlinkLoader
    from domain.ipam.address import Address
    from domain.linux.link import Link
    from domain.linux.steps import CreatePair, Device
    from ports.clock import Clock, Deadline
    from ports.log import Log


class Kernel:
    """`netns` is the container's path, or "" where only the host side is wanted. A context manager."""

    def __init__(self, netns: str, load_netlink: NetlinkLoader) -> None:
        self._load_netlink = load_netlink
        self._sockets: dict[str, Netlink] = {}
        self._pod = open_namespace(netns) if netns else -1

    @property
    def pod_namespace(self) -> int:
        """The open descriptor of the container's namespace."""
        return self._pod

    def netlink(self, side: str) -> Netlink:
        if side not in self._sockets:
            open_netlink = self._load_netlink()  # never from inside: loading may take long
            if side == HOST:
                self._sockets[side] = open_netlink()
            else:
                with Inside(self._pod):
                    self._sockets[side] = open_netlink()
        return self._sockets[side]

    def give_away(self, side: str) -> Netlink:
        """The side's netlink, for somebody who closes it. Whoever asks for that side next gets another one."""
        given = self.netlink(side)
        del self._sockets[side]
        return given

    def write_sysctl(self, side: str, path: str, value: str) -> None:
        if side == HOST:
            write_sysctl(path, value)
            return
        with Inside(self._pod):
            write_sysctl(path, value)

    def read_sysctl(self, side: str, path: str) -> str:
        if side == HOST:
            return read_sysctl(path)
        with Inside(self._pod):
            return read_sysctl(path)

    def close(self) -> None:
        while self._sockets:
            self._sockets.popitem()[1].close()
        if self._pod >= 0:
            os.close(self._pod)
            self._pod = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class StepFailed(Exception):
    """A step did not get what it needs though the kernel refused nothing. `str()` is the reason for the user."""


class PlanRun:
    """`made` is the pair that the run made, or may have; `named` are the devices whose names were chosen meanwhile,
    `link_local` the addresses that were awaited.
    """

    def __init__(self, kernel: Kernel, clock: Clock, log: Log, deadline: Deadline) -> None:
        self.kernel, self.clock, self.log = kernel, clock, log
        self._deadline = deadline
        self._links: dict[Device, Link] = {}
        self.made: CreatePair | None = None
        self.named: list[Device] = []
        self.link_local: dict[Device, Address] = {}

    def netlink(self, device: Device) -> Netlink:
        """The one of the device's side."""
        return self.kernel.netlink(device.side)

    def look_up(self, device: Device) -> Link:
        """LinkMissing if it is not there."""
        found = self.netlink(device).link(device.name)
        if found is None:
            raise LinkMissing
        self._links[device] = found
        return found

    def known(self, device: Device) -> Link | None:
        """As it was looked up last."""
        return self._links.get(device)

    def index(self, device: Device) -> int:
        """The kernel is asked once for each device."""
        return (self._links.get(device) or self.look_up(device)).index

    def check_time(self, waited_for: str) -> None:
        if self._deadline.passed(self.clock.monotonic()):
            raise Expired(waited_for)

    def pause(self, seconds: float, waited_for: str) -> None:
        self.clock.sleep(seconds)
        self.check_time(waited_for)
