"""Devices, their addresses of the link layer, and routes as the kernel shows them: what a look at it gives, as `steps`
are what is done to it.

The ports, the memory adapters and both netlink transports use these very values; nobody copies them field by field.

Invariant: a field that nobody asked the kernel about has its default; a MAC that was read is lower-case hexadecimal
octets joined by colons.
"""

from __future__ import annotations

from domain.ipam.address import V6, Address
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr

_HEX = frozenset("0123456789abcdefABCDEF")
_OCTETS = (6, 8, 20)  # Ethernet, EUI-64, InfiniBand


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


class BadMac(ValueError):
    """A text that is no MAC address. `str()` is Go's text."""


def parse_mac(text: str) -> str:
    """Octets joined by `:` or `-`, or pairs of octets joined by `.`.

    BadMac `address <text>: invalid MAC address`, Go's wording, for anything else.
    """
    separator, width = (text[2:3], 2) if text[2:3] in {":", "-"} else (".", 4)
    parts = text.split(separator)
    digits = "".join(parts).lower()
    even = all(len(part) == width and _HEX.issuperset(part) for part in parts)
    if not even or len(digits) // 2 not in _OCTETS:
        raise BadMac(f"address {text}: invalid MAC address" if text else "invalid MAC address")
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def is_device_mac(mac: str) -> bool:
    """Whether an Ethernet device can have a MAC that was read: neither a group's nor all zeros."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return len(octets) == 6 and any(octets) and not octets[0] & 1


def link_local(mac: str) -> Address:
    """The IPv6 link-local address that the kernel derives from an Ethernet address (modified EUI-64)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    identifier = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return Address(V6, 0xFE80 << 112 | int.from_bytes(identifier, "big"))
