"""Where in CNI_PATH a plugin is on Windows: folders are separated by semicolons, and a program's name ends in `.exe`.

Invariant: a name leads to no other folder, by either kind of slash.
"""

from __future__ import annotations

from adapters import plugin_path
from ports.errors import Refused

_EXTENSIONS = (".exe", "")


def find_plugin(type: str, path: tuple[str, ...]) -> str:
    """`path` is CNI_PATH as it was split for Linux. `Refused`, in the CNI library's words, without a plugin."""
    if "\\" in type:
        raise Refused(f"invalid plugin name: {type}")
    folders = [folder for folder in ":".join(path).split(";") if folder]
    return plugin_path.find_plugin(type, tuple(folders), _EXTENSIONS)
