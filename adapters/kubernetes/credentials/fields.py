"""What stands in credentials: members of a kubeconfig's objects and of a credential plugin's answer, by name and type;
and what can be told of a bearer token without its issuer.

Invariant: an error (`Malformed`, of a token `BadConfiguration`) names the member and never shows its value.
"""

from __future__ import annotations

from domain.json_text import parse, whole_characters
from domain.moment import SECOND, rfc3339
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

    Object = dict[str, Json]


class Malformed(ValueError):
    """A member is not of the type that it has to be of."""


def member(entry: Object, name: str) -> Object:
    """The object under a name; {} when there is none."""
    found = entry.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Malformed(f"{name} is not a map")
    return found


def items(entry: Object, name: str) -> list[Object]:
    """The list of objects under a name; [] when there is none."""
    found = entry.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise Malformed(f"{name} is not a list of maps")
    return [item for item in found if isinstance(item, dict)]


def text(entry: Object, name: str) -> str:
    """The text under a name; "" when there is none. A number counts as its spelling, of which YAML makes no text."""
    found = entry.get(name)
    if found is None:
        return ""
    if isinstance(found, (bool, dict, list)):
        raise Malformed(f"{name} is not a text")
    return whole_characters(str(found))


def texts(entry: Object, name: str) -> tuple[str, ...]:
    found = entry.get(name)
    if found is None:
        return ()
    if not isinstance(found, list):
        raise Malformed(f"{name} is not a list of texts")
    return tuple([text({name: item}, name) for item in found])


def flag(entry: Object, name: str) -> bool:
    found = entry.get(name)
    if found is not None and not isinstance(found, bool):
        raise Malformed(f"{name} is neither true nor false")
    return bool(found)


def octets(entry: Object, name: str) -> bytes:
    """What a text in base64 stands for; b"" when there is none."""
    encoded = "".join(text(entry, name).split())
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(encoded.encode("ascii"), strict_mode=bool(encoded))
    except (Error, UnicodeEncodeError):
        raise Malformed(f"{name} is not base64") from None


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
