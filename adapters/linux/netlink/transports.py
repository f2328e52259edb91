"""The two ways to speak netlink, each loaded when it is first needed.

What they return opens one for the network namespace of the calling thread.

Invariant: a call loads one of the two.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from adapters.linux.netlink.bridge_seam import BridgeNetlink
    from adapters.linux.netlink.seam import Netlink

    NetlinkLoader: TypeAlias = Callable[[], Callable[[], Netlink]]
    BridgeNetlinkLoader: TypeAlias = Callable[[], Callable[[], BridgeNetlink]]


def load_lean() -> Callable[[], Netlink]:
    """Our own, which costs a plugin next to nothing."""
    from adapters.linux.netlink.lean import LeanNetlink

    return LeanNetlink


def load_pyroute2() -> Callable[[], Netlink]:
    """By the library."""
    from adapters.linux.netlink.on_pyroute2 import Pyroute2Netlink

    return Pyroute2Netlink


def load_lean_bridge() -> Callable[[], BridgeNetlink]:
    """Our own, with what the bridge plugin needs."""
    from adapters.linux.netlink.bridge_lean import LeanBridgeNetlink

    return LeanBridgeNetlink


def load_pyroute2_bridge() -> Callable[[], BridgeNetlink]:
    """The same by the library."""
    from adapters.linux.netlink.bridge_pyroute2 import Pyroute2BridgeNetlink

    return Pyroute2BridgeNetlink
