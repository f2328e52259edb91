"""Whether a file holds certificates as a client would load them.

Invariant: pure; a text is accepted if it has at least one certificate and each of them is whole.
"""

from __future__ import annotations

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_SEQUENCE = b"\x30"  # what a certificate is in DER


def fault_of_certificates(pem: bytes) -> str:
    """Why they cannot be used, "" if they can."""
    from binascii import Error, a2b_base64

    parts = pem.decode("utf-8", "replace").split(_BEGIN)[1:]
    if not parts:
        return "data does not contain any valid RSA or ECDSA certificates"
    for part in parts:
        encoded, end, _ = part.partition(_END)
        try:
            octets = a2b_base64("".join(encoded.split()).encode("ascii"), strict_mode=True)
        except (Error, UnicodeEncodeError):
            octets = b""
        if not end or octets[:1] != _SEQUENCE:
            return "x509: malformed certificate"
    return ""
