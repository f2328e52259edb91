"""Where in CNI_PATH a plugin is, by the CNI library's rules and with its words; and whether it is this very program.

It is when it is the same file (a hard or symbolic link), or a copy: same size and the same build stamp, which the
build writes as the last line of the executable. Then its work can be done without a second process.

Invariant: when in doubt it is another one; an exec then does the same work, only later.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from domain.cni.go_quote import go_quoted
from ports.errors import Refused

_TAIL = 200
_STAMP = b"# build-stamp: "
# On Windows there is only the last one, and Python itself closes what it opens in programs that are started.
_OPEN = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def find_plugin(type: str, path: tuple[str, ...], extensions: tuple[str, ...] = ("",)) -> str:
    """The first regular file of that name in the directories of `path`; links are followed. `Refused` without one."""
    if not type:
        raise Refused("no plugin name provided")
    if "/" in type:
        raise Refused(f"invalid plugin name: {type}")
    if not path:
        raise Refused("no paths provided")
    for directory in path:
        for extension in extensions:
            candidate = os.path.join(directory, type + extension)
            if directory and _is_file(candidate):  # an empty entry is a mistake, not the working directory
                return candidate
    raise Refused(f"failed to find plugin {go_quoted(type)} in path [{' '.join(path)}]")


def _is_file(path: str) -> bool:
    try:
        return S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_this_program(candidate_path: str, own_path: str) -> bool:
    """Links are followed; what cannot be read is another program."""
    try:
        candidate, own = os.stat(candidate_path), os.stat(own_path)
        if not S_ISREG(candidate.st_mode):
            return False
        if os.path.samestat(candidate, own):
            return True
        if candidate.st_size != own.st_size:
            return False
        tail = _tail(candidate_path)
        return tail.rstrip(b"\n").rpartition(b"\n")[2].startswith(_STAMP) and tail == _tail(own_path)
    except (OSError, ValueError):
        return False


def _tail(path: str) -> bytes:
    descriptor = os.open(path, _OPEN)
    try:
        os.lseek(descriptor, max(0, os.fstat(descriptor).st_size - _TAIL), os.SEEK_SET)
        return os.read(descriptor, _TAIL)
    finally:
        os.close(descriptor)
