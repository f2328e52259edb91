"""Text quoted as Go's `%q` quotes it: errors and log lines of the original are full of such texts.

Invariant: the quoted form has no line break and no control character, so that one record stays one line.
"""

from __future__ import annotations

_SHORT = {
    "\\": "\\\\",
    '"': '\\"',
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, as Python reads it from the environment
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_quoted(text: str) -> str:
    r"""`a"b` gives `"a\"b"`."""
    return '"' + "".join([_escaped(character) for character in text]) + '"'


def printable(text: str) -> str:
    """The text with everything that is not printable escaped in Go's way: what moves a cursor, rings a bell, turns the
    direction of writing or ends a line shows as what it is. A backslash stays as it is.
    """
    if text.isprintable():
        return text
    return "".join([character if character.isprintable() else _escaped(character) for character in text])


def go_quoted_list(texts: list[str] | tuple[str, ...]) -> str:
    """`["a" "b"]`: a slice of texts as Go prints it."""
    return "[" + " ".join([go_quoted(text) for text in texts]) + "]"
