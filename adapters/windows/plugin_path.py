"""Where in CNI_PATH a plugin is on Windows: folders are separated by semicolons, and a program's name ends in `.exe`.

Whether it is this very program is found out as on Linux: it is the same file, or a copy with the same build stamp.

Invariant: when in doubt it is another one; an exec then does the same work, only later.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from domain.cni.go_quote import go_quoted
from ports.errors import Refused

_TAIL = 200
_STAMP = b"# build-stamp: "
_EXTENSIONS = (".exe", "")


def find_plugin(type: str, path: tuple[str, ...]) -> str:
    """`path` is CNI_PATH as it was split for Linux. `Refused`, in the CNI library's words, without a plugin."""
    if not type:
        raise Refused("no plugin name provided")
    if "/" in type or "\\" in type:
        raise Refused(f"invalid plugin name: {type}")
    folders = [folder for folder in ":".join(path).split(";") if folder]
    if not folders:
        raise Refused("no paths provided")
    for folder in folders:
        for extension in _EXTENSIONS:
            candidate = os.path.join(folder, type + extension)
            if _is_file(candidate):
                return candidate
    raise Refused(f"failed to find plugin {go_quoted(type)} in path [{' '.join(folders)}]")


def _is_file(path: str) -> bool:
    try:
        return S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_this_program(candidate_path: str, own_path: str) -> bool:
    """What cannot be read is another program."""
    try:
        candidate, own = os.stat(candidate_path), os.stat(own_path)
        if os.path.samestat(candidate, own):
            return True
        if candidate.st_size != own.st_size:
            return False
        tail = _tail(candidate_path)
        return tail.rstrip(b"\n").rpartition(b"\n")[2].startswith(_STAMP) and tail == _tail(own_path)
    except (OSError, ValueError):
        return False


def _tail(path: str) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        return file.read()
