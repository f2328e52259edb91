"""Directories for our own files, readable by everybody and writable by their owner only.

The original makes them 0777 where the umask lets it, so that anybody may replace the files in them.
"""

from __future__ import annotations

import os

_MODE = 0o755


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
