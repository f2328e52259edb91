"""The scalars of the YAML that kubeconfigs are written in: plain, quoted, literal and folded.

Invariant: pure functions on lines of text, which are counted from 0; errors count them from 1.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"))
_ESCAPES = dict(zip('0abt\tnvfre "/\\N_LP', '\0\a\b\t\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029'))
_LENGTHS = {"x": 2, "u": 4, "U": 8}
_HEX = frozenset("0123456789abcdefABCDEF")
_SEAM = "\0"  # keeps blanks at the end of a line from being trimmed; cannot stand in a YAML text


class YamlError(ValueError):
    """`line 3: <why>`."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")


def plain(text: str) -> str | bool | None:
    """What a scalar without quotes means."""
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    return False if text in _FALSE else text


def is_blank(text: str, after: str = " ") -> bool:
    """Nothing, white space or a comment. A comment begins after white space; `after` is the character before."""
    stripped = text.lstrip(" \t")
    if not stripped:
        return True
    return stripped[0] == "#" and (len(stripped) < len(text) or after in " \t")


def is_marker(line: str) -> bool:
    """Whether a document begins or ends with this line."""
    return line[:3] in ("---", "...") and line[3:4] in ("", " ", "\t")


def without_comment(text: str) -> tuple[str, bool]:
    """The text before a comment, and whether there was one."""
    for mark in (" #", "\t#"):
        at = text.find(mark)
        if at >= 0:
            return without_comment(text[:at])[0], True
    return text.strip(" \t"), False


def end_of_key(line: str, column: int) -> int:
    """The column of the colon after a key that begins at `column`, or -1 where none does."""
    if line[column : column + 1] in ("{", "[", ""):
        return -1
    if line[column] in "\"'":
        end = end_of_quoted(line, column + 1, line[column])
        if end < 0:
            return -1
        after = line[end + 1 :]
        at = end + 1 + len(after) - len(after.lstrip(" \t"))
        return at if line[at : at + 1] == ":" and line[at + 1 : at + 2] in ("", " ", "\t") else -1
    at = colon_at(line, column)
    return -1 if at < 0 or without_comment(line[column:at])[1] else at


def colon_at(line: str, column: int) -> int:
    """The first colon from `column` on that separates, or -1."""
    at = line.find(":", column)
    while at >= 0 and line[at + 1 : at + 2] not in ("", " ", "\t"):
        at = line.find(":", at + 1)
    return at


def continued(line: str, indent: int) -> bool:
    """Whether a line that follows a plain scalar's is part of it."""
    stripped = line.strip(" \t")
    if not stripped:
        return True
    return len(line) - len(line.lstrip(" ")) > indent and stripped[0] != "#" and not is_marker(line)


def unfold(pieces: Sequence[str]) -> str:
    """Lines of a scalar as one text: a break is a space, n empty lines are n breaks."""
    text, breaks = "", 0
    for number, piece in enumerate(pieces):
        if number and not piece:
            breaks += 1
            continue
        if number:
            text += "\n" * breaks if breaks else " "
        text, breaks = text + piece, 0
    return text


def end_of_quoted(line: str, column: int, quote: str) -> int:
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


def unquoted(text: str, quote: str, line: int) -> str:
    """What stands between two quotes, lines joined by breaks, as it is meant."""
    lines = text.split("\n")
    if quote == "'":
        return _folded_quoted(lines).replace("''", "'")
    for number in range(len(lines) - 1, 0, -1):
        before = lines[number - 1]
        if (len(before) - len(before.rstrip("\\"))) % 2:  # an escaped break: the lines belong together
            after = number
            while after + 1 < len(lines) and not lines[after].strip(" \t"):
                after += 1  # an empty line behind it is still a break
            lines[number - 1 : after + 1] = [
                before[:-1] + _SEAM + "\\n" * (after - number) + lines[after].lstrip(" \t")
            ]
    return _unescaped(_folded_quoted(lines), line)


def _folded_quoted(lines: list[str]) -> str:
    if len(lines) == 1:
        return lines[0]
    first, *middle, last = lines
    pieces = [first.rstrip(" \t"), *[one.strip(" \t") for one in middle], _SEAM + last.lstrip(" \t")]
    return unfold(pieces).replace(_SEAM, "")


def _unescaped(text: str, line: int) -> str:
    text = text.replace(_SEAM, "")
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


def block_scalar(lines: Sequence[str], at: int, column: int, parent: int) -> tuple[str, int]:
    """The text of the literal (`|`) or folded (`>`) scalar whose header is at `column`, and the next line's index.

    Its lines are indented by more than `parent`.
    """
    header, _ = without_comment(lines[at][column:])
    marks = header[1:]
    chomping = marks.strip("123456789")
    digits = marks.strip("+-")
    if chomping not in ("", "+", "-") or len(digits) > 1 or len(chomping) + len(digits) != len(marks):
        raise YamlError(at + 1, "the header of a block of text is not understood")
    start = at + 1
    indent = parent + int(digits) if digits else _indent_of_block(lines, start, parent)
    end = start
    while end < len(lines) and (not lines[end][:indent].strip(" ") if indent else not is_marker(lines[end])):
        end += 1
    body = [line[indent:] for line in lines[start:end]]
    ends_with_break = end < len(lines)
    if not ends_with_break and body and not body[-1]:
        body.pop()  # what follows the last break is no line
        ends_with_break = True
    text, tail = _chomped(body, folded=header[0] == ">")
    last = "\n" if text and ends_with_break else ""
    return text + {"": last, "-": "", "+": last + "\n" * tail}[chomping], end


def _indent_of_block(lines: Sequence[str], start: int, parent: int) -> int:
    deepest = parent + 1
    for line in lines[start:]:
        deepest = max(deepest, len(line) - len(line.lstrip(" ")))
        if line.strip(" "):
            break
    return deepest


def _chomped(body: Sequence[str], *, folded: bool) -> tuple[str, int]:
    """The text without its last break, and the number of empty lines after it."""
    last = len(body)
    while last and not body[last - 1]:
        last -= 1
    kept = body[:last]
    if not folded:
        return "\n".join(kept), len(body) - last
    text = ""
    for number, line in enumerate(kept):
        text += line
        if number + 1 < last:
            text += _break_after(kept, number)
    return text, len(body) - last


def _break_after(lines: Sequence[str], number: int) -> str:
    """What a folded scalar has between two lines: nothing of a break between two that are not indented further."""
    before, after = lines[number], lines[number + 1]
    if not before or before[0] in " \t":
        return "\n"
    following = next(line for line in lines[number + 1 :] if line)
    if following[0] in " \t":
        return "\n"
    return "" if not after else " "
