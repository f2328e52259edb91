"""Members of the objects in a kubeconfig and in a credential plugin's answer, by name and type.

Invariant: an error (`Malformed`) names the member and never shows its value.
"""

from __future__ import annotations

from domain.json_text import whole_characters

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
