"""Hardware addresses: reading them as Go's `net.ParseMAC` does, and the IPv6 address that follows from one.

Invariant: what leaves here is lower-case hexadecimal octets joined by colons.
"""

from __future__ import annotations

from domain.ipam.address import V6, Address

_HEX = frozenset("0123456789abcdefABCDEF")
_OCTETS = (6, 8, 20)  # Ethernet, EUI-64, InfiniBand


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
    """Whether an Ethernet device can have a MAC that was read: not one of a group, nor none at all."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return len(octets) == 6 and any(octets) and not octets[0] & 1


def link_local(mac: str) -> Address:
    """The IPv6 link-local address that the kernel derives from an Ethernet address (modified EUI-64)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    identifier = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return Address(V6, 0xFE80 << 112 | int.from_bytes(identifier, "big"))
