"""Where in CNI_PATH a plugin is, by the CNI library's rules and with its words."""

from __future__ import annotations

import os
from stat import S_ISREG

from domain.cni.go_quote import go_quoted
from ports.errors import Refused


def find_plugin(type: str, path: tuple[str, ...]) -> str:
    """The first regular file of that name in the directories of `path`; links are followed. `Refused` without one."""
    if not type:
        raise Refused("no plugin name provided")
    if "/" in type:
        raise Refused(f"invalid plugin name: {type}")
    if not path:
        raise Refused("no paths provided")
    for directory in path:
        candidate = os.path.join(directory, type)
        if directory and _is_file(candidate):  # an empty entry is a mistake, not the working directory
            return candidate
    raise Refused(f"failed to find plugin {go_quoted(type)} in path [{' '.join(path)}]")


def _is_file(path: str) -> bool:
    try:
        return S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
