"""What can be told of a bearer token without its issuer: whether a header can hold it, and when it expires.

Invariant: a token never gets into an error or a text to show.
"""

from __future__ import annotations

from domain.json_text import parse
from domain.moment import SECOND, rfc3339
from ports.errors import BadConfiguration


def header_text(token: str, shown: str) -> str:
    """The token, if it can stand in a header."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadConfiguration(f"{shown}: the token has characters that no token has")
    return token


def expiry(token: str) -> int | None:
    """When a token in JSON Web Token form expires, in nanoseconds since the epoch; None for others."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    from binascii import a2b_base64

    encoded = parts[1].replace("-", "+").replace("_", "/")
    try:
        claims = parse(a2b_base64(encoded + "=" * (-len(encoded) % 4)).decode("utf-8"))
    except ValueError:
        return None
    at = claims.get("exp") if isinstance(claims, dict) else None
    return int(at) * SECOND if isinstance(at, (int, float)) and 0 <= at < 253402300800 else None


def shown_expiry(at: int | None, now: int) -> str:
    """`, expired at …` or `, valid until …`, to put behind what expires; "" when that is not known."""
    if at is None:
        return ""
    return f", {'expired at' if at <= now else 'valid until'} {rfc3339(at)}"
