"""YAML as tools write kubeconfigs in it, read without a YAML library: the usual one takes longer to load than an ADD.

What kubectl, kubeadm, k3s, minikube and Calico's installer write is understood: collections in block style, plain and
quoted scalars of one line, `{}` and `[]`, comments, one document; and JSON. All else is refused by line, never misread,
and `whole_yaml` is asked then. A plain scalar is null, a boolean, or text: no field here is a number.

Invariant: what is understood is what a YAML 1.1 reader would understand; errors show nothing of the text, which may
be secret. Lines are counted from 0, in errors from 1.
"""

from __future__ import annotations

from domain.json_text import JsonError
from domain.json_text import parse as parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"))
_ESCAPES = dict(zip('0abt\tnvfre "/\\N_LP', '\0\a\b\t\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029'))
_LENGTHS = {"x": 2, "u": 4, "U": 8}
_HEX = frozenset("0123456789abcdefABCDEF")


_ODD = {
    "&": "an anchor",
    "*": "an alias",
    "!": "a tag",
    "%": "a directive",
    "?": "a complex key",
    ":": "an empty key",
    "-": "a list here",
}


class YamlError(ValueError):
    """`line 3: <why>`."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")


class Beyond(YamlError):
    """It may be YAML, but is more of it than is understood here."""


def parse_yaml(text: str) -> Json:
    """YamlError `line 3: …` for what is not understood. JSON is YAML, too. An empty text is None."""
    text = text.removeprefix("\ufeff")
    if text.lstrip(" \t\r\n").startswith("{"):
        try:
            return parse_json(text)
        except JsonError:
            pass  # it may be a flow mapping
    try:
        return _Document(text).value()
    except RecursionError:
        raise YamlError(1, "it is nested too deeply") from None


class _Document:
    """Recursive descent; `_at` is the index of the line that is being read."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._at = 0

    def value(self) -> Json:
        self._prologue()
        found = self._node(0) if self._more() else None
        if self._more():
            raise self._error("this is not indented as what is before it")
        line = self._lines[self._at] if self._at < len(self._lines) else ""
        rest = [line[3:], *self._lines[self._at + 1 :]]
        if line.startswith("-") or not all(_is_blank(after) for after in rest):
            raise self._error("a second document", Beyond)
        return found

    def _prologue(self) -> None:
        while self._at < len(self._lines) and _is_blank(self._lines[self._at]):
            self._at += 1
        line = self._lines[self._at] if self._at < len(self._lines) else ""
        if line.startswith("%"):
            raise self._error("a directive is not understood", Beyond)
        if _is_marker(line) and line[0] == ".":
            raise self._error("there is no document before its end")
        if _is_marker(line):
            if not _is_blank(line[3:]):
                raise self._error("text after a document's beginning is not understood", Beyond)
            self._at += 1

    def _more(self) -> bool:
        """Go to the next line that says something; whether this document has one."""
        while self._at < len(self._lines) and _is_blank(self._lines[self._at]):
            self._at += 1
        return self._at < len(self._lines) and not _is_marker(self._lines[self._at])

    def _indent(self) -> int:
        line = self._lines[self._at]
        indent = len(line) - len(line.lstrip(" "))
        if line[indent] == "\t":
            raise self._error("a tab in the indentation")
        return indent

    def _error(self, why: str, kind: type[YamlError] = YamlError) -> YamlError:
        return kind(min(self._at, len(self._lines) - 1) + 1, why)

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _node(self, least: int) -> Json:
        """The collection or scalar that begins on this line, which is indented by `least` or more."""
        indent = self._indent()
        line = self._lines[self._at]
        if _is_item(line, indent):
            return self._sequence(indent)
        if _end_of_key(line, indent) >= 0:
            return self._mapping(indent)
        return self._inline(indent, least - 1)

    def _sequence(self, indent: int) -> Json:
        found: list[Json] = []
        while self._more() and self._indent() == indent and _is_item(self._lines[self._at], indent):
            line = self._lines[self._at]
            rest = line[indent + 1 :]
            if _is_blank(rest):
                self._at += 1
                found.append(self._node(indent + 1) if self._more() and self._indent() > indent else None)
                continue
            column = indent + 1 + len(rest) - len(rest.lstrip(" \t"))
            if "\t" in line[:column]:
                raise self._error("a tab in the indentation")
            self._lines[self._at] = " " * column + line[column:]  # the item as a block of its own
            found.append(self._node(indent + 1))
        self._end_of(indent)
        return found

    def _mapping(self, indent: int) -> Json:
        found: dict[str, Json] = {}
        while self._more() and self._indent() == indent and not _is_item(self._lines[self._at], indent):
            line = self._lines[self._at]
            self._refuse_odd(indent)
            end = _end_of_key(line, indent)
            if end <= indent:
                raise self._error("a key was expected here, and a colon after it")
            key = self._key(line[indent:end].rstrip(" \t"))
            if key in found:
                raise self._error("a key that is there already")
            found[key] = self._member(end + 1, indent)
        self._end_of(indent)
        return found

    def _end_of(self, indent: int) -> None:
        if self._more() and self._indent() > indent:
            raise self._error("this is not indented as what is before it")

    def _key(self, text: str) -> str:
        return _unquoted(text[1:-1], text[0], self._at) if text[0] in "\"'" else text

    def _member(self, column: int, indent: int) -> Json:
        """The value of a key; `column` is after its colon."""
        rest = self._lines[self._at][column:]
        if _is_blank(rest):
            self._at += 1
            if not self._more():
                return None
            deeper = self._indent()
            if deeper > indent:
                return self._node(indent + 1)
            return self._sequence(indent) if deeper == indent and _is_item(self._lines[self._at], indent) else None
        column += len(rest) - len(rest.lstrip(" \t"))
        return self._inline(column, indent)

    # --- scalars ------------------------------------------------------------------------------

    def _inline(self, column: int, indent: int) -> Json:
        """A scalar or an empty collection that begins at `column`; a line deeper than `indent` would go on with it."""
        self._refuse_odd(column)
        line = self._lines[self._at]
        if line[column] in "{[":
            return self._empty(column)
        if line[column] in "\"'":
            end = _end_of_quoted(line, column + 1, line[column])
            if end < 0:
                raise self._error("a text in quotes over several lines is not understood", Beyond)
            self._require_end(end + 1)
            return _unquoted(line[column + 1 : end], line[column], self._at - 1)
        text, commented = _without_comment(line[column:])
        if _is_item(text, 0) or _colon_at(text, 0) >= 0:
            raise self._error("a collection cannot begin here")
        self._at += 1
        if not commented:
            self._refuse_more(indent)
        return _plain(text)

    def _empty(self, column: int) -> Json:
        line = self._lines[self._at]
        if line[column : column + 2] not in ("{}", "[]"):
            raise self._error("a collection within a line is not understood", Beyond)
        self._require_end(column + 2)
        return {} if line[column] == "{" else []

    def _require_end(self, column: int) -> None:
        line = self._lines[self._at]
        if not _is_blank(line[column:], after=line[column - 1]):
            raise self._error("text after the end of a value")
        self._at += 1

    def _refuse_more(self, indent: int) -> None:
        """A plain scalar goes on with lines that are deeper, empty ones between them included."""
        at = self._at
        while at < len(self._lines) and not self._lines[at].strip(" \t"):
            at += 1
        line = self._lines[at] if at < len(self._lines) else ""
        deeper = len(line) - len(line.lstrip(" ")) > indent and not _is_marker(line)
        if line and deeper and line.strip(" \t")[0] != "#":
            self._at = at
            if _colon_at(_without_comment(line)[0], 0) >= 0:
                raise self._error("a key cannot be here")
            raise self._error("a text over several lines is not understood", Beyond)

    def _refuse_odd(self, column: int) -> None:
        first, second = self._lines[self._at][column], self._lines[self._at][column + 1 : column + 2]
        if first in "?-:" and second.strip(" \t") and second not in ",[]{}":
            return  # a text may begin like this
        if first in _ODD:
            raise self._error(f"{_ODD[first]} is not understood", Beyond)
        if first in "|>":
            raise self._error("a block of text is not understood", Beyond)
        if first in "@`,]}":
            raise self._error("a value cannot begin like this")


def _is_item(line: str, indent: int) -> bool:
    return line[indent : indent + 1] == "-" and line[indent + 1 : indent + 2] in ("", " ", "\t")


def _plain(text: str) -> str | bool | None:
    """What a scalar without quotes means."""
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    return False if text in _FALSE else text


def _is_blank(text: str, after: str = " ") -> bool:
    """Nothing, white space or a comment. A comment begins after white space; `after` is the character before."""
    stripped = text.lstrip(" \t")
    if not stripped:
        return True
    return stripped[0] == "#" and (len(stripped) < len(text) or after in " \t")


def _is_marker(line: str) -> bool:
    """Whether a document begins or ends with this line."""
    return line[:3] in ("---", "...") and line[3:4] in ("", " ", "\t")


def _without_comment(text: str) -> tuple[str, bool]:
    """The text before a comment, and whether there was one."""
    for mark in (" #", "\t#"):
        at = text.find(mark)
        if at >= 0:
            return _without_comment(text[:at])[0], True
    return text.strip(" \t"), False


def _end_of_key(line: str, column: int) -> int:
    """The column of the colon after a key that begins at `column`, or -1 where none does."""
    if line[column : column + 1] in ("{", "[", ""):
        return -1
    if line[column] in "\"'":
        end = _end_of_quoted(line, column + 1, line[column])
        if end < 0:
            return -1
        after = line[end + 1 :]
        at = end + 1 + len(after) - len(after.lstrip(" \t"))
        return at if line[at : at + 1] == ":" and line[at + 1 : at + 2] in ("", " ", "\t") else -1
    at = _colon_at(line, column)
    return -1 if at < 0 or _without_comment(line[column:at])[1] else at


def _colon_at(line: str, column: int) -> int:
    """The first colon from `column` on that separates, or -1."""
    at = line.find(":", column)
    while at >= 0 and line[at + 1 : at + 2] not in ("", " ", "\t"):
        at = line.find(":", at + 1)
    return at


def _end_of_quoted(line: str, column: int, quote: str) -> int:
    """The column of the quote that ends a text which begins, or goes on, at `column`; -1 if it is not on this line."""
    while column < len(line):
        if line[column] == "\\" and quote == '"':
            column += 2
        elif line[column] != quote:
            column += 1
        elif quote == "'" and line[column + 1 : column + 2] == "'":
            column += 2
        else:
            return column
    return -1


def _unescaped(text: str, line: int) -> str:
    at = text.find("\\")
    if at < 0:
        return text
    pieces, done = [], 0
    while at >= 0:
        pieces.append(text[done:at])
        character = text[at + 1 : at + 2]
        length = _LENGTHS.get(character, 0)
        if length:
            pieces.append(_character(text[at + 2 : at + 2 + length], length, line))
        elif character in _ESCAPES and character:
            pieces.append(_ESCAPES[character])
        else:
            raise YamlError(line + 1, "an escape that does not exist")
        done = at + 2 + length
        at = text.find("\\", done)
    return "".join([*pieces, text[done:]])


def _character(digits: str, length: int, line: int) -> str:
    if len(digits) != length or not _HEX.issuperset(digits) or int(digits, 16) > 0x10FFFF:
        raise YamlError(line + 1, "an escape without its digits")
    return chr(int(digits, 16))


def _unquoted(text: str, quote: str, line: int) -> str:
    """What stands between two quotes, as it is meant."""
    return text.replace("''", "'") if quote == "'" else _unescaped(text, line)
