"""Errors of the operating system in Go's words, which operators of the original know and search for.

Go spells an errno as the C library does, but with a small first letter: `open /x: permission denied`.
"""

from __future__ import annotations

from os import strerror

TYPE_CHECKING = False
if TYPE_CHECKING:
    Failure = OSError | ValueError

_INVALID = 22  # EINVAL


def go_text(number: int) -> str:
    """What an errno means. Only a word gets a small letter, no acronym: `RFS specific error`."""
    text = strerror(number)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def reason(error: Failure) -> str:
    """Why a system call failed. A path that cannot be handed to the kernel (a NUL in it) is an invalid argument."""
    return go_text(error.errno if isinstance(error, OSError) and error.errno else _INVALID)
