"""The two sides of one container, host and pod, as a place where things can be looked up and done.

One netlink socket per side is opened when first needed; the pod's is opened inside its namespace and then used from
outside. Sysctls of the pod are written from inside, because /proc/sys shows what belongs to the calling thread.

Invariant: `close` leaves no descriptor behind; between verbs the thread is in its own namespace.
"""

from __future__ import annotations

import os

from adapters.linux.namespaces import Inside, open_namespace
from adapters.linux.sysctl import read_sysctl, write_sysctl
from domain.linux.steps import HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from adapters.linux.netlink.seam import Netlink
    from adapters.linux.netlink.transports import NetlinkLoader


class Kernel:
    """`netns` is the pod's path, or "" where only the host side is wanted. A context manager."""

    def __init__(self, netns: str, load_netlink: NetlinkLoader) -> None:
        self._load_netlink = load_netlink
        self._sockets: dict[str, Netlink] = {}
        self._pod = open_namespace(netns) if netns else -1

    @property
    def pod_namespace(self) -> int:
        """The open descriptor of the pod's namespace."""
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
