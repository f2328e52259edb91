"""JSON in and out, the way the original spells it, without loading `json` (14 ms: it imports `re` and `enum`).

Reading keeps integers exact and rejects what Go's decoder rejects (NaN, Infinity, trailing text). Writing gives Go's
text: keys in the order given, `<`, `>`, `&`, U+2028 and U+2029 escaped, everything else as itself.

Invariant: `parse(dumps(x)) == x` for every x made of dict, list, str, int, float, bool and None.
"""

from __future__ import annotations

from _json import encode_basestring, make_scanner  # the C core of `json`; no public module exposes it alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_WHITE = " \t\n\r"
_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class JsonError(ValueError):
    """The text is not JSON; the message says why and, where known, at which character."""


def _refuse_constant(name: str) -> float:
    raise JsonError(f"invalid character {name[0]!r} looking for beginning of value")


class _Rules:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_refuse_constant)


_scan = make_scanner(_Rules())  # type: ignore[arg-type]  # typeshed wants another scanner, the code any such object


def _scanned(text: str, start: int) -> tuple[Json, int]:
    try:
        return _scan(text, start)
    except SystemError:  # CPython 3.11's scanner looks for its error class without importing it
        import json.decoder  # noqa: F401 - only a text that is not JSON pays for it

        return _scan(text, start)


def parse(text: str) -> Json:
    """The value a JSON text spells. JsonError for anything else, an empty text included."""
    start = len(text) - len(text.lstrip(_WHITE))
    end_of_text = len(text.rstrip(_WHITE))
    try:
        found, end = _scanned(text, start)
    except RecursionError:
        raise JsonError("exceeded max depth") from None
    except (StopIteration, ValueError) as error:
        if isinstance(error, JsonError):
            raise
        at = int(error.value) if isinstance(error, StopIteration) else getattr(error, "pos", 0)
        if at >= end_of_text:
            raise JsonError("unexpected end of JSON input") from None
        why = "looking for beginning of value" if isinstance(error, StopIteration) else f"({error})"
        raise JsonError(f"invalid character {text[at]!r} at offset {at + 1} {why}") from None
    rest = text[end:].strip(_WHITE)
    if rest:
        raise JsonError(f"invalid character {rest[0]!r} after top-level value")
    return found


def _quoted(text: str) -> str:
    shown: str = encode_basestring(text)
    for character, escape in _MARKUP.items():
        if character in shown:
            shown = shown.replace(character, escape)
    if not shown.isascii():  # a lone surrogate cannot be written as UTF-8; Go has replaced it on reading
        shown = "".join("\ufffd" if "\ud800" <= one <= "\udfff" else one for one in shown)
    return shown


def dumps(value: Json, indent: int = 0, _margin: str = "\n") -> str:
    """JSON text on one line without blanks, or indented by that many blanks a level as the CNI library prints it."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    inner = _margin + " " * indent if indent else ""
    outer = _margin if indent else ""
    colon = ": " if indent else ":"
    if isinstance(value, dict):
        members = [_quoted(key) + colon + dumps(item, indent, inner) for key, item in value.items()]
        return "{" + inner + ("," + inner).join(members) + outer + "}" if members else "{}"
    items = [dumps(item, indent, inner) for item in value]
    return "[" + inner + ("," + inner).join(items) + outer + "]" if items else "[]"
