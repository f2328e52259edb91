"""Errors of the operating system in Go's words, which operators of the original know and search for.

Go spells an errno as the C library does, but with a small first letter: `open /x: permission denied`.
"""

from __future__ import annotations

from os import strerror

TYPE_CHECKING = False
if TYPE_CHECKING:
    Failure = OSError | ValueError

_INVALID = 22  # EINVAL


def reason(error: Failure) -> str:
    """Why a system call failed. A path that cannot be handed to the kernel (a NUL in it) is an invalid argument."""
    number = error.errno if isinstance(error, OSError) and error.errno else _INVALID
    text = strerror(number)
    return text[:1].lower() + text[1:]


def quoted(text: str) -> str:
    """Go's `%q`: printable characters as they are, the others escaped."""
    return '"' + "".join([_spelled(character) for character in text]) + '"'


_SHORT = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
    "\t": "\\t", "\v": "\\v", '"': '\\"', "\\": "\\\\",
}  # fmt: skip


def _spelled(character: str) -> str:
    number = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8, as Python carries it
        return f"\\x{number - 0xDC00:02x}"
    if character.isprintable():
        return character
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
