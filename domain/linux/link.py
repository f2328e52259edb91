"""Devices and routes as the kernel shows them: what a look at it gives, as `steps` are what is done to it.

The ports, the memory adapters and both netlink transports use these very values; nobody copies them field by field.

Invariant: a field that nobody asked the kernel about has its default.
"""

from __future__ import annotations

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address, Cidr


class PortVlan(Value):
    """A VLAN that a port is a member of: as its own (`pvid`), and without a tag on the way out."""

    number: int
    pvid: bool = False
    untagged: bool = False


class Link(Value):
    """A device. `peer_index` is the other end's index, 0 without one; `peer_namespace` the id that this namespace has
    for the other end's, or None where that is in this one too.

    The rest is of interest to bridges alone. `master` is the bridge's index, 0 without one; `state` is as `ip` prints
    it; `vlans` are empty for what is no port of a bridge.
    """

    index: int
    name: str
    kind: str
    up: bool
    mtu: int
    mac: str
    peer_index: int = 0
    peer_namespace: int | None = None
    master: int = 0
    state: str = ""
    alias: str = ""
    promiscuous: bool = False
    hairpin: bool = False
    isolated: bool = False
    vlans: tuple[PortVlan, ...] = ()


class Route(Value):
    """A unicast route; `link` is the outgoing device's index, `scope` the kernel's number.

    0 leaves a property to the kernel where a route is wanted; table 0 then is the main one.
    """

    link: int
    destination: Cidr
    gateway: Address | None = None
    priority: int = 0
    table: int = 0
    scope: int = 0
    mtu: int = 0
    advmss: int = 0
