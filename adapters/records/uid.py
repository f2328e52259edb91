"""Random UUIDs as text, without the `uuid` module, which would load a dozen others for these few lines."""

from __future__ import annotations


def uuid4_text(random: bytes) -> str:
    """The UUID of version 4 that sixteen random bytes make."""
    octets = bytearray(random)
    octets[6] = octets[6] & 0x0F | 0x40
    octets[8] = octets[8] & 0x3F | 0x80
    digits = octets.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
