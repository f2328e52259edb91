"""This host, or one whose root is mounted somewhere, as `tortie doctor` looks at it.

Symbolic links of another root lead to places in that root: `/var/run` of a host is a link to its `/run`, and not to the
container's. So each path is walked here, a component at a time.

Invariant: nothing is opened that could block, and no path leaves the root.
"""

from __future__ import annotations

import os
from errno import ENOENT, ENOTDIR
from stat import S_IMODE

from adapters.linux.alarm import within
from adapters.linux.files import kind_of, reason
from adapters.linux.kernel_trial import lacking
from adapters.linux.netlink.bridge_lean import LeanBridgeNetlink
from adapters.linux.netlink.seam import KernelError
from adapters.linux.node_files import NodeFiles
from adapters.linux.process.child import ChildCommand, run
from adapters.linux.sysctl import read_sysctl
from domain.doctor.seen import FileSeen, Uplink
from domain.ipam.address import V4, V6
from ports.errors import Refused, Unavailable
from ports.host_view import HostView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from domain.linux.link import Link
    from ports.clock import Clock, Deadline

    T = TypeVar("T")

_MOST_LINKS = 40  # as the kernel's own
_GONE = (ENOENT, ENOTDIR)


class LinuxHost(NodeFiles, HostView):
    """`root` is where the host's root is, "" or `/` for this one."""

    def __init__(self, clock: Clock, root: str = "") -> None:
        self._clock = clock
        self._root = root.rstrip("/")

    def place(self, path: str) -> str:
        if not self._root:
            return path
        left, walked, links = path.split("/")[::-1], "", 0
        while left:
            part = left.pop()
            if part in ("", "."):
                continue
            if part == "..":
                walked = walked.rpartition("/")[0]
                continue
            try:
                target = os.readlink(f"{self._root}{walked}/{part}")
            except (OSError, ValueError):  # no link, or not there
                walked += f"/{part}"
                continue
            links += 1
            if links > _MOST_LINKS:
                return f"{self._root}{walked}/{part}"
            walked = "" if target.startswith("/") else walked
            left += target.split("/")[::-1]
        return f"{self._root}{walked}" or "/"

    def read(self, path: str) -> str:
        return super().read(self.place(path))

    def exists(self, path: str) -> bool:
        return super().exists(self.place(path))

    def file(self, path: str) -> FileSeen | None:
        try:
            found = os.stat(self.place(path))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _GONE:
                return self._dangling(path)
            raise Refused(f"stat {path}: {reason(error)}") from error
        return FileSeen(kind_of(found.st_mode), S_IMODE(found.st_mode), found.st_uid, found.st_size)

    def _dangling(self, path: str) -> FileSeen | None:
        """A symbolic link to nothing is there, too."""
        folder, _, name = path.rpartition("/")
        is_link = os.path.islink(f"{self.place(folder)}/{name}")
        return FileSeen("a symbolic link to nothing") if is_link else None

    def names(self, folder: str) -> tuple[str, ...] | None:
        try:
            return tuple(sorted(os.listdir(self.place(folder))))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _GONE:
                return None
            raise Refused(f"open {folder}: {reason(error)}") from error

    def links(self) -> tuple[Link, ...]:
        netlink = _open()
        try:
            return tuple(netlink.ports())
        except KernelError as error:
            raise Unavailable(f"cannot list devices: {error}") from error
        finally:
            netlink.close()

    def uplinks(self) -> tuple[Uplink, ...]:
        netlink = _open()
        try:
            found: list[Uplink] = []
            for version in (V4, V6):
                for route in netlink.routes(version):
                    link = netlink.link_by_index(route.link) if route.destination.length == 0 else None
                    if link is not None and link.name != "lo":
                        found.append(Uplink(version, link.name, link.mtu))
            return tuple(found)
        except KernelError as error:
            raise Unavailable(f"cannot list routes: {error}") from error
        finally:
            netlink.close()

    def setting(self, name: str) -> str:
        try:
            return read_sysctl(name.replace(".", "/"))
        except KernelError:
            return ""

    def lacking(self) -> Mapping[str, str]:
        return lacking()

    def version_of(self, program: str, deadline: Deadline) -> str:
        """The original answers only with the variable set. A link keeps its name, which says what the program is."""
        folder, _, name = program.rpartition("/")
        real, named = self.place(program), f"{self.place(folder)}/{name}"
        same = os.path.realpath(named) == os.path.realpath(real)
        command = ChildCommand(named if same else real, {"CNI_COMMAND": "VERSION"}, b"", program, ("-v",))
        try:
            finished = run(command, deadline, self._clock)
        except OSError as error:
            raise Refused(f"cannot run it: {reason(error)}") from error
        said = finished.stdout.decode("utf-8", "replace").strip()
        if finished.status or not said:
            told = finished.stderr.decode("utf-8", "replace").strip().splitlines()
            raise Refused(told[-1] if told else f"it ends with status {finished.status} and says nothing")
        return said.splitlines()[0]

    def within(self, seconds: float, waited_for: str, look: Callable[[], T]) -> T:
        return within(seconds, waited_for, look)


def _open() -> LeanBridgeNetlink:
    try:
        return LeanBridgeNetlink()
    except KernelError as error:
        raise Unavailable(str(error)) from error
