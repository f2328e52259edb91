"""YAML as kubeconfigs are written in it, read without a YAML library: the usual one takes longer to load than an ADD.

What tools write is understood: block and flow collections, plain and quoted scalars over one or more lines, literal
and folded blocks, comments, one document. Tags, anchors, aliases, complex keys and a second document are not; they are
refused by line, never misread, and `whole_yaml` is asked then. A plain scalar is null, a boolean, or text: no field
here is a number.

Invariant: what is understood is what a YAML 1.1 reader would understand; errors show nothing of the text, which may
be secret.
"""

from __future__ import annotations

from adapters.kubernetes.credentials.yaml_scalars import (
    YamlError,
    block_scalar,
    colon_at,
    continued,
    end_of_key,
    end_of_quoted,
    is_blank,
    is_marker,
    plain,
    unfold,
    unquoted,
    without_comment,
)
from domain.json_text import JsonError
from domain.json_text import parse as parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

_ODD = {
    "&": "an anchor",
    "*": "an alias",
    "!": "a tag",
    "%": "a directive",
    "?": "a complex key",
    ":": "an empty key",
    "-": "a list here",
}


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
        if line.startswith("-") or not all(is_blank(after) for after in rest):
            raise self._error("a second document")
        return found

    def _prologue(self) -> None:
        while self._at < len(self._lines) and is_blank(self._lines[self._at]):
            self._at += 1
        line = self._lines[self._at] if self._at < len(self._lines) else ""
        if line.startswith("%"):
            raise self._error("a directive is not understood")
        if is_marker(line) and line[0] == ".":
            raise self._error("there is no document before its end")
        if is_marker(line):
            if is_blank(line[3:]):
                self._at += 1
            elif line[3:].lstrip(" ")[0] in "{[" and line[3] == " ":
                self._lines[self._at] = "   " + line[3:]
            else:
                raise self._error("text after a document's beginning is not understood")

    def _more(self) -> bool:
        """Go to the next line that says something; whether this document has one."""
        while self._at < len(self._lines) and is_blank(self._lines[self._at]):
            self._at += 1
        return self._at < len(self._lines) and not is_marker(self._lines[self._at])

    def _indent(self) -> int:
        line = self._lines[self._at]
        indent = len(line) - len(line.lstrip(" "))
        if line[indent] == "\t":
            raise self._error("a tab in the indentation")
        return indent

    def _error(self, why: str) -> YamlError:
        return YamlError(min(self._at, len(self._lines) - 1) + 1, why)

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _node(self, least: int) -> Json:
        """The collection or scalar that begins on this line, which is indented by `least` or more."""
        indent = self._indent()
        line = self._lines[self._at]
        if _is_item(line, indent):
            return self._sequence(indent)
        if end_of_key(line, indent) >= 0:
            return self._mapping(indent)
        return self._inline(indent, least - 1)

    def _sequence(self, indent: int) -> Json:
        found: list[Json] = []
        while self._more() and self._indent() == indent and _is_item(self._lines[self._at], indent):
            line = self._lines[self._at]
            rest = line[indent + 1 :]
            if is_blank(rest):
                self._at += 1
                found.append(self._node(indent + 1) if self._more() and self._indent() > indent else None)
                continue
            column = indent + 1 + len(rest) - len(rest.lstrip(" \t"))
            if "\t" in line[:column]:
                raise self._error("a tab in the indentation")
            if line[column] in "|>":
                found.append(self._block(column, indent))
                continue
            self._lines[self._at] = " " * column + line[column:]  # the item as a block of its own
            found.append(self._node(indent + 1))
        self._end_of(indent)
        return found

    def _mapping(self, indent: int) -> Json:
        found: dict[str, Json] = {}
        while self._more() and self._indent() == indent and not _is_item(self._lines[self._at], indent):
            line = self._lines[self._at]
            self._refuse_odd(indent)
            end = end_of_key(line, indent)
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
        return unquoted(text[1:-1], text[0], self._at) if text[0] in "\"'" else text

    def _member(self, column: int, indent: int) -> Json:
        """The value of a key; `column` is after its colon."""
        rest = self._lines[self._at][column:]
        if is_blank(rest):
            self._at += 1
            if not self._more():
                return None
            deeper = self._indent()
            if deeper > indent:
                return self._node(indent + 1)
            return self._sequence(indent) if deeper == indent and _is_item(self._lines[self._at], indent) else None
        column += len(rest) - len(rest.lstrip(" \t"))
        if self._lines[self._at][column] in "|>":
            return self._block(column, indent)
        return self._inline(column, indent)

    def _block(self, column: int, indent: int) -> str:
        found, self._at = block_scalar(self._lines, self._at, column, indent)
        return found

    # --- scalars and flows within lines ------------------------------------------------------------------------------

    def _inline(self, column: int, indent: int) -> Json:
        """A value that begins at `column` and is no block; its further lines are deeper than `indent`."""
        self._refuse_odd(column)
        line = self._lines[self._at]
        if line[column] in "{[\"'":
            value, column = self._flow_value(column)
            if not is_blank(self._lines[self._at][column:], after=self._lines[self._at][column - 1]):
                raise self._error("text after the end of a value")
            self._at += 1
            return value
        text, commented = without_comment(line[column:])
        if _is_item(text, 0) or colon_at(text, 0) >= 0:
            raise self._error("a collection cannot begin here")
        pieces = [text]
        self._at += 1
        while not commented and self._at < len(self._lines) and continued(self._lines[self._at], indent):
            text, commented = without_comment(self._lines[self._at].strip(" \t"))
            if colon_at(text, 0) >= 0:
                raise self._error("a key cannot be here")
            pieces.append(text)
            self._at += 1
        return plain(unfold(pieces))

    def _refuse_odd(self, column: int) -> None:
        first, second = self._lines[self._at][column], self._lines[self._at][column + 1 : column + 2]
        if first in "?-:" and second.strip(" \t") and second not in ",[]{}":
            return  # a text may begin like this
        if first in _ODD:
            raise self._error(f"{_ODD[first]} is not understood")
        if first in "@`,]}|>":
            raise self._error("a value cannot begin like this")

    def _flow_value(self, column: int) -> tuple[Json, int]:
        """The value that begins at `column` of this line, and the column after it, maybe of a later line."""
        self._refuse_odd(column)
        line = self._lines[self._at]
        if line[column] == "{":
            return self._flow_mapping(column + 1)
        if line[column] == "[":
            return self._flow_sequence(column + 1)
        if line[column] in "\"'":
            return self._quoted(column)
        text, column = self._flow_scalar(column)
        return plain(text), column

    def _flow_scalar(self, column: int) -> tuple[str, int]:
        """A text without quotes in a flow collection."""
        line = self._lines[self._at]
        end = _end_of_flow_scalar(line, column)
        text = line[column:end].rstrip(" \t")
        if not text or text[0] in ":#" or "? " in f"{text} ":
            raise self._error("a text here needs quotes")
        return text, end

    def _flow_mapping(self, column: int) -> tuple[Json, int]:
        found: dict[str, Json] = {}
        while True:
            column = self._skip(column)
            if self._lines[self._at][column] == "}":
                return found, column + 1
            key, column = self._flow_key(column)
            if key in found:
                raise self._error("a key that is there already")
            found[key] = None
            at = self._at
            column = self._skip(column)
            if self._lines[self._at][column] == ":":
                if self._at != at:
                    raise self._error("a colon on another line than its key")
                column = self._skip(column + 1)
                if self._lines[self._at][column] not in ",}":
                    found[key], column = self._flow_value(column)
            column = self._separator(column, "}")

    def _flow_key(self, column: int) -> tuple[str, int]:
        line = self._lines[self._at]
        if line[column] in "\"'":
            return self._quoted(column)
        self._refuse_odd(column)
        if line[column] in "{[":
            raise self._error("a key was expected here")
        return self._flow_scalar(column)

    def _flow_sequence(self, column: int) -> tuple[Json, int]:
        found: list[Json] = []
        while True:
            column = self._skip(column)
            if self._lines[self._at][column] == "]":
                return found, column + 1
            value, column = self._flow_value(column)
            found.append(value)
            column = self._separator(column, "]")

    def _separator(self, column: int, end: str) -> int:
        column = self._skip(column)
        if self._lines[self._at][column] == ",":
            return column + 1
        if self._lines[self._at][column] != end:
            raise self._error(f"a comma or {end} was expected here")
        return column

    def _skip(self, column: int) -> int:
        """To the next character that is neither white nor in a comment."""
        while True:
            line = self._lines[self._at]
            rest = line[column:]
            if not is_blank(rest, after=line[column - 1] if column else " "):
                return column + len(rest) - len(rest.lstrip(" \t"))
            self._at, column = self._at + 1, 0
            if self._at >= len(self._lines) or is_marker(self._lines[self._at]):
                raise self._error("the end of a value is missing")

    def _quoted(self, column: int) -> tuple[str, int]:
        """A text in quotes, over one or more lines."""
        quote, begun = self._lines[self._at][column], self._at
        pieces = []
        column += 1
        while (end := end_of_quoted(self._lines[self._at], column, quote)) < 0:
            pieces.append(self._lines[self._at][column:])
            self._at, column = self._at + 1, 0
            if self._at >= len(self._lines) or is_marker(self._lines[self._at]):
                raise YamlError(begun + 1, "the end of a text in quotes is missing")
        pieces.append(self._lines[self._at][column:end])
        return unquoted("\n".join(pieces), quote, begun), end + 1


def _is_item(line: str, indent: int) -> bool:
    return line[indent : indent + 1] == "-" and line[indent + 1 : indent + 2] in ("", " ", "\t")


def _end_of_flow_scalar(line: str, column: int) -> int:
    """The column after a plain scalar in a flow collection, which ends with its line."""
    for end in range(column, len(line)):
        character, after = line[end], line[end + 1 : end + 2]
        if character in ",[]{}" or (character == ":" and (after in ("", " ", "\t") or after in ",[]{}")):
            return end
        if character == "#" and line[end - 1 : end] in (" ", "\t"):
            return end
    return len(line)
