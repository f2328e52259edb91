"""What is at a path where a regular file should be, in an operator's words.

Invariant: pure; the mode is that of the path itself (`lstat`), so that a symbolic link is one.
"""

from __future__ import annotations

from stat import S_IFMT, S_ISBLK, S_ISCHR, S_ISDIR, S_ISFIFO, S_ISLNK, S_ISREG, S_ISSOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (S_ISREG, "a regular file"),
    (S_ISLNK, "a symbolic link"),
    (S_ISDIR, "a folder"),
    (S_ISFIFO, "a named pipe"),
    (S_ISSOCK, "a socket"),
    (S_ISCHR, "a character device"),
    (S_ISBLK, "a block device"),
)


def kind_of(mode: int) -> str:
    """`a symbolic link`, say."""
    for is_it, words in _KINDS:
        if is_it(mode):
            return words
    return f"a file of an unknown type ({S_IFMT(mode):o})"
