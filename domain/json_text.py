"""JSON in and out, the way the original spells it, without loading `json` (14 ms: it imports `re` and `enum`).

Reading keeps numbers exact, in spelling too, replaces half a surrogate pair by U+FFFD, and rejects what Go's decoder
rejects (NaN, Infinity, trailing text), in its words. Writing gives Go's text: keys in the order given, `<`, `>`, `&`,
U+2028 and U+2029 escaped, everything else as itself.

Invariant: `parse(dumps(x)) == x` for every x made of dict, list, str, int, finite float, bool and None.
"""

from __future__ import annotations

from _json import encode_basestring, make_encoder, make_scanner  # the C core of `json`; no public module has it alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_WHITE = " \t\n\r"
_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


# How the C core begins its complaint, and how Go's decoder ends its own about the same character.
_COMPLAINTS = (
    ("Expecting property name", "looking for beginning of object key string"),
    ("Expecting ':'", "after object key"),
    ("Expecting ','", "after array element or object key:value pair"),
    ("Invalid control character", "in string literal"),
    ("Invalid \\escape", "in string escape code"),
    ("Invalid \\u", "in \\u hexadecimal character escape"),
)
_BAD_VALUE = "looking for beginning of value"


class JsonError(ValueError):
    """The text is not JSON; the message says why and at which character, in Go's words."""


class Fraction(float):
    """A number with a fraction or an exponent; it remembers its spelling, so that it is written back unchanged.

    The C encoder would write it as Python spells it, so it is used only while the process has met none (`met`).
    """

    __slots__ = ("_spelling",)
    _spelling: str
    met = False

    def __new__(cls, spelling: str) -> Fraction:
        self = super().__new__(cls, spelling)
        self._spelling = spelling
        cls.met = True
        return self

    def __repr__(self) -> str:
        return self._spelling


def kind_of(value: Json) -> str:
    """What Go's decoder calls a value in its errors: `string`, `number`, `bool`, `array`, `object` or `null`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "string", list: "array", dict: "object"}[type(value)]


def _refuse_constant(name: str) -> float:
    raise _unexpected(name[0], _BAD_VALUE)


def _unexpected(character: str, where: str) -> JsonError:
    shown = {"'": "'\\''", '"': "'\"'"}.get(character) or repr(character)
    return JsonError(f"invalid character {shown} {where}")


class _Rules:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = Fraction
    parse_int = int
    parse_constant = staticmethod(_refuse_constant)


_scan = make_scanner(_Rules())  # type: ignore[arg-type]  # typeshed wants another scanner, the code any such object


def _scanned(text: str, start: int) -> tuple[Json, int]:
    try:
        return _scan(text, start)
    except SystemError:  # pragma: no cover - CPython's scanner looks for its error class without importing it;
        # tests have `json` loaded, so a process of its own shows this
        import json.decoder  # noqa: F401 - only a text that is not JSON pays for it

        return _scan(text, start)


def _explained(text: str, error: ValueError) -> JsonError:
    """The C core's complaint in Go's words."""
    complaint, at = str(error), getattr(error, "pos", None)
    if at is None:  # what it says is advice for who writes Python
        return JsonError("a whole number has more digits than the 4300 that can be read")
    if at >= len(text.rstrip(_WHITE)) or complaint.startswith("Unterminated string"):
        return JsonError("unexpected end of JSON input")
    for beginning, where in _COMPLAINTS:
        if complaint.startswith(beginning):
            return _unexpected(text[at], where)
    return JsonError(complaint)


def whole_characters(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which no encoding could write."""
    if text.isascii():
        return text
    return "".join(["\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text])


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {whole_characters(key): _without_surrogates(item) for key, item in value.items()}
    return value


def parse(text: str) -> Json:
    """The value a JSON text spells. JsonError for anything else, an empty text included."""
    start = len(text) - len(text.lstrip(_WHITE))
    try:
        found, end = _scanned(text, start)
        if "\\ud" in text or "\\uD" in text:  # the C core has joined the pairs
            found = _without_surrogates(found)
    except RecursionError:
        raise JsonError("exceeded max depth") from None
    except StopIteration as error:
        at = int(error.value)
        if at >= len(text.rstrip(_WHITE)):
            raise JsonError("unexpected end of JSON input") from None
        raise _unexpected(text[at], _BAD_VALUE) from None
    except JsonError:
        raise
    except ValueError as error:
        raise _explained(text, error) from None
    rest = text[end:].lstrip(_WHITE)
    if rest:
        raise _unexpected(rest[0], "after top-level value")
    return found


def _refuse_value(value: object) -> Json:
    raise TypeError(f"{type(value).__name__} has no JSON form")


# Compact, members in the order given, NaN refused; a value has no cycles to be checked for.
_encode = make_encoder(None, _refuse_value, encode_basestring, None, ":", ",", False, False, False)


def _escaped(shown: str) -> str:
    """JSON text with Go's escapes; the characters concerned occur inside strings only."""
    for character, escape in _MARKUP.items():
        if character in shown:
            shown = shown.replace(character, escape)
    return whole_characters(shown)


def dumps(value: Json, indent: int = 0, _margin: str = "\n") -> str:
    """JSON text on one line without blanks, or indented by that many blanks a level as the CNI library prints it."""
    if isinstance(value, Fraction):
        return repr(value)
    if not isinstance(value, (dict, list)) or not (indent or Fraction.met):
        return _escaped("".join(_encode(value, 0)))
    inner = _margin + " " * indent if indent else ""
    outer = _margin if indent else ""
    colon = ": " if indent else ":"
    if isinstance(value, dict):
        members = [dumps(key) + colon + dumps(item, indent, inner) for key, item in value.items()]
        return "{" + inner + ("," + inner).join(members) + outer + "}" if members else "{}"
    items = [dumps(item, indent, inner) for item in value]
    return "[" + inner + ("," + inner).join(items) + outer + "]" if items else "[]"
