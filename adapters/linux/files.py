"""Files and directories of this machine: what is at a path, why a system call refused it, and folders for our own.

Go spells an errno as the C library does, but with a small first letter: `open /x: permission denied`. Operators of the
original know and search for these words.

Invariant: a folder made here can be read by everybody and written by its owner only, whatever the umask. (The original
makes them 0777 where the umask lets it, so that anybody may replace the files in them.)
"""

from __future__ import annotations

import os
from os import strerror
from stat import S_IFMT, S_ISBLK, S_ISCHR, S_ISDIR, S_ISFIFO, S_ISLNK, S_ISREG, S_ISSOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Failure = OSError | ValueError

_INVALID = 22  # EINVAL
_MODE = 0o755
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (S_ISREG, "a regular file"),
    (S_ISLNK, "a symbolic link"),
    (S_ISDIR, "a folder"),
    (S_ISFIFO, "a named pipe"),
    (S_ISSOCK, "a socket"),
    (S_ISCHR, "a character device"),
    (S_ISBLK, "a block device"),
)


def go_text(number: int) -> str:
    """What an errno means. Only a word gets a small letter, no acronym: `RFS specific error`."""
    text = strerror(number)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def reason(error: Failure) -> str:
    """Why a system call failed. A path that cannot be handed to the kernel (a NUL in it) is an invalid argument."""
    return go_text(error.errno if isinstance(error, OSError) and error.errno else _INVALID)


def kind_of(mode: int) -> str:
    """`a symbolic link`, say. The mode is that of the path itself (`lstat`)."""
    for is_it, words in _KINDS:
        if is_it(mode):
            return words
    return f"a file of an unknown type ({S_IFMT(mode):o})"


def make_directory(path: str) -> None:
    """Make the directory and those above it as far as they are missing, each 0755 whatever the umask. OSError."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        try:
            os.mkdir(each, _MODE)
        except FileExistsError:
            continue  # another process was faster
        os.chmod(each, _MODE)
