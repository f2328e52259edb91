"""Wine for building and trying Windows programs: a prefix of its own, without a display, apart from all others.

Invariant: nothing outside of the prefix is written, and whoever is started has pipes for its standard descriptors,
since a file there is nothing that CPython can use under Wine.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tortie" / "windows"
_PREFIX = CACHE / "prefix"
_QUIET = {"WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=;powershell.exe=n", "WINEARCH": "win64"}
_LONG = 300.0  # seconds; much more than anything here takes


def windows_path(path: Path) -> str:
    """Wine has the root directory as drive Z."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


class Wine:
    """A prefix: a drive C, and a registry. What Windows needs running runs while a block does.

    The first program of a prefix starts all of that, and it inherits its pipes, whose readers would wait for its end.
    """

    def __init__(self, prefix: Path = _PREFIX) -> None:
        self.prefix = prefix
        self.drive_c = prefix / "drive_c"

    def __enter__(self) -> Wine:
        self.prefix.mkdir(parents=True, exist_ok=True)
        self._aside("wineserver", "-p")
        self._aside(*(("wine", "cmd", "/c", "exit") if (self.prefix / "system.reg").exists() else ("wineboot", "-i")))
        return self

    def __exit__(self, *_: object) -> None:
        self._aside("wineserver", "-k")
        self._aside("wineserver", "-w")

    def _aside(self, *words: str) -> None:
        nothing = subprocess.DEVNULL
        environment = self.environment({})
        subprocess.run(
            words, env=environment, stdin=nothing, stdout=nothing, stderr=nothing, timeout=_LONG, check=False
        )

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, **_QUIET, "WINEPREFIX": str(self.prefix), **more}

    def start(self, *words: str | Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A program that goes on for a while."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            ["wine", *words], env=self.environment(environment), stdin=pipe, stdout=pipe, stderr=pipe
        )

    def run(
        self,
        *words: str | Path,
        given: bytes = b"",
        environment: Mapping[str, str] | None = None,
        at: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """The first word is a program of Windows."""
        everything = self.environment(environment or {})
        return subprocess.run(
            ["wine", *words], env=everything, cwd=at, input=given, capture_output=True, timeout=_LONG, check=False
        )
