"""What is handed out: which files of a built executable, under which names, with which modes.

Invariant: nothing of the machine that it is made on gets in: neither owners nor times, modes nor the order of a folder.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "calico"
NAMES = ("calico-ipam", "my-custom-cni", "tortie")  # links to it: which of them a process is, its name says


class Entry(NamedTuple):
    """A file, or with `link` a symbolic link; `name` is relative to the top."""

    name: str
    content: bytes = b""
    mode: int = 0o644
    link: str = ""


def programs(made: Path, folder: str = "") -> list[Entry]:
    """The executable under its names."""
    program = Entry(f"{folder}{PROGRAM}", (made / PROGRAM).read_bytes(), 0o755)
    return [program, *[Entry(f"{folder}{name}", link=PROGRAM) for name in NAMES]]


def texts(source: Path, folder: str, pattern: str = "*") -> list[Entry]:
    """The files right in a folder, readable for all."""
    found = [path for path in source.glob(pattern) if path.is_file()]
    return [Entry(f"{folder}{path.name}", path.read_bytes()) for path in found]


def commit_time() -> int:
    """Seconds since 1970 of what is handed out: SOURCE_DATE_EPOCH, else those of the last commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    words = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"Set SOURCE_DATE_EPOCH: no commit tells the time of this release ({done.stderr.strip()})")
    return int(done.stdout)


def tarball(entries: list[Entry], top: str, when: int) -> bytes:
    """A gzipped tar of the entries below a folder of their own."""
    octets = io.BytesIO()
    with tarfile.open(fileobj=octets, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        folders = {parent for one in entries for parent in Path(one.name).parents if str(parent) != "."}
        for folder in sorted({top, *[f"{top}/{folder}" for folder in folders]}):
            tar.addfile(_member(folder, when, tarfile.DIRTYPE, 0o755))
        for one in sorted(entries):
            kind = tarfile.SYMTYPE if one.link else tarfile.REGTYPE
            member = _member(f"{top}/{one.name}", when, kind, 0o777 if one.link else one.mode)
            member.linkname, member.size = one.link, len(one.content)
            tar.addfile(member, io.BytesIO(one.content))
    return gzip.compress(octets.getvalue(), mtime=0)


def _member(name: str, when: int, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime = kind, mode, when
    member.uname = member.gname = "root"
    return member


def lay_out(entries: list[Entry], folder: Path, when: int) -> None:
    """The entries as files in an empty folder."""
    for one in sorted(entries):
        path = folder / one.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if one.link:
            path.symlink_to(one.link)
        else:
            path.write_bytes(one.content)
            path.chmod(one.mode)
        os.utime(path, (when, when), follow_symlinks=False)
    for place in sorted(folder.rglob("*"), reverse=True):
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o755)
            os.utime(place, (when, when))
