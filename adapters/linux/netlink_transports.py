"""The two ways to speak netlink, each loaded when it is first needed.

What they return opens one for the network namespace of the calling thread.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from adapters.linux.netlink import Netlink

    NetlinkLoader: TypeAlias = Callable[[], Callable[[], Netlink]]


def load_lean() -> Callable[[], Netlink]:
    """Our own, which costs a plugin next to nothing."""
    from adapters.linux.netlink_lean import LeanNetlink

    return LeanNetlink


def load_pyroute2() -> Callable[[], Netlink]:
    """By the library."""
    from adapters.linux.netlink_pyroute2 import Pyroute2Netlink

    return Pyroute2Netlink
