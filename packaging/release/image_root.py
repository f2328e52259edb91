#!/usr/bin/env python3
"""Lays out what is in the image, for the Dockerfile to copy as it is.

    image_root.py MADE TARGET [--plugins DIR]    from MADE, which `make dist` has filled

/usr/bin has the executable under its names, /opt/cni/bin the plugins of DIR (the CNI project's, say), which the
installer puts beside ours; /usr/share/doc/tortie has the terms of all that is inside.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from layout import ROOT, Entry, commit_time, lay_out, programs, texts

DOCUMENTS = "usr/share/doc/tortie/"


def plugins(folder: Path | None) -> list[Entry]:
    """Other plugins, as they are, but for ours: those are in /usr/bin."""
    if folder is None:
        return []
    ours = {"calico", "calico-ipam"}
    found = [path for path in folder.iterdir() if path.is_file() and path.name not in ours]
    return [Entry(f"opt/cni/bin/{path.name}", path.read_bytes(), 0o755) for path in found]


def main() -> None:
    parser = argparse.ArgumentParser(description="Lay out what is in the image.")
    parser.add_argument("made", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--plugins", type=Path, help="a folder of other plugins to install beside ours")
    asked = parser.parse_args()
    os.umask(0o022)
    entries = [
        *programs(asked.made, "usr/bin/"),
        *texts(asked.made / "LICENSES", f"{DOCUMENTS}LICENSES/"),
        *texts(ROOT, DOCUMENTS, "LICENSE"),
        Entry(f"{DOCUMENTS}versions", (asked.made / "versions").read_bytes()),
        *plugins(asked.plugins),
    ]
    shutil.rmtree(asked.target, ignore_errors=True)
    asked.target.mkdir(parents=True)
    lay_out(entries, asked.target, commit_time())


if __name__ == "__main__":
    main()
