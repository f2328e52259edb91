"""Fetches Debian's source packages, with the patches that Debian puts on them, from where this machine's packages come.

Nothing is installed, and the machine's package configuration is only read.

Invariant: what is unpacked has been verified by APT against the keys of Debian's archive.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path


def say(text: str) -> None:
    print(text, flush=True)


def call(*words: str | Path, folder: Path | None = None, **environment: str) -> str:
    """The output of a command that has to succeed."""
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **environment}, text=True, capture_output=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


class Apt:
    """APT with a configuration of its own: the sources that belong to the packages which the machine may install."""

    def __init__(self, folder: Path) -> None:
        self._list = folder / "sources.list"
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._list.write_text("".join(sorted(source_lines())))
        places = {
            "Dir::Etc::SourceList": self._list,
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "",
        }
        self._options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
        call("apt-get", *self._options, "-q", "update")

    def versions(self, package: str) -> list[str]:
        """Newest first."""
        shown = call("apt-cache", *self._options, "showsrc", package)
        return list(dict.fromkeys(re.findall(r"^Version: (\S+)$", shown, flags=re.MULTILINE)))

    def unpack(self, package: str, folder: Path) -> str:
        """Fetch and unpack the newest that is to be had into `folder/package`, patched as Debian does; its version."""
        offered = self.versions(package)
        for version in offered:
            place = folder / f"{package}.fetched"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            words = ["apt-get", *self._options, "-q", "--only-source", "source", f"{package}={version}"]
            done = subprocess.run(words, cwd=place, text=True, capture_output=True, check=False)
            unpacked = [path for path in place.iterdir() if path.is_dir()]
            if done.returncode == 0 and len(unpacked) == 1:
                unpacked[0].rename(folder / package)
                return version
            say(f"   {package} {version} is announced but not to be had")
        sys.exit(f"The sources of {package} are not to be had: {', '.join(offered) or 'no version is offered'}")


def source_lines() -> list[str]:
    """Where this machine's packages come from, as lines for their sources."""
    form = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    found = call("apt-get", "indextargets", "--format", form, "Created-By: Packages").split()
    keyrings = sorted(Path("/usr/share/keyrings").glob("debian-archive-keyring.*"))
    options = f"[signed-by={keyrings[0]}] " if keyrings else ""
    lines = {f"deb-src {options}{' '.join(line.split('|')[1:])}\n" for line in found if line.startswith("Debian|")}
    if not lines:
        sys.exit(
            "`make dist` takes its sources from Debian's repositories, and APT knows none here (`apt-get update`?)"
        )
    return sorted(lines)
