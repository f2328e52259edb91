"""A Docker engine of a test's own, which changes nothing outside of its folder: no bridge, no rules, no forwarding.

    with engine_or_skip("the image") as engine:
        engine.docker("build", "--tag", "tortie:test", ".")
        engine.docker("run", "--rm", "--network", "host", "tortie:test", "version")

Where there is none, or it cannot be started (in a container without privileges), the test is skipped with the reason.
Invariant: the daemon, its containers, mounts and data go with the `with` block.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import pytest

_LONGEST_START, _LONGEST_COMMAND = 60.0, 300.0


@contextmanager
def engine_or_skip(what: str) -> Iterator[ContainerEngine]:
    """`what` is not tried without one."""
    if reason := lacking():
        pytest.skip(f"NOT TRIED, {what}: {reason}")
    with ExitStack() as undo:
        try:
            engine = undo.enter_context(ContainerEngine())
        except CannotStart as error:
            pytest.skip(f"NOT TRIED, {what}: {error}")
        yield engine


def lacking() -> str:
    """Why there can be no engine here; "" if there can."""
    if os.geteuid() != 0:
        return "a container engine needs root"
    absent = [name for name in ("docker", "dockerd") if not shutil.which(name)]
    return f"there is no {' and no '.join(absent)} here (Debian's docker.io)" if absent else ""


class CannotStart(Exception):
    """With the last of what the daemon has said."""


class ContainerEngine:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tortie-engine-"))  # short: paths of sockets end at 107 octets
        self._socket = f"unix://{self.folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        switched_off = ("--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false")
        places = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        words = ["dockerd", *switched_off, *[f"--{name}={self.folder}/{place}" for name, place in places.items()]]
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen([*words, "-H", self._socket], stdout=log, stderr=log)
        ends = time.monotonic() + _LONGEST_START
        while self.docker("version", check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > ends:
                said = (self.folder / "log").read_text(errors="replace")
                self.__exit__()
                raise CannotStart(f"dockerd does not start: {said[-1000:]}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_exc: object) -> None:
        assert self._process is not None
        self._process.terminate()  # it ends its containers first
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._unmount()
        shutil.rmtree(self.folder)

    def _unmount(self) -> None:
        """The daemon leaves a network namespace mounted, and after a kill whatever its containers had."""
        within = f"{self.folder.resolve()}/"
        places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in sorted((place for place in places if place.startswith(within)), reverse=True):
            subprocess.run(["umount", "--lazy", place], check=True)

    def docker(self, *words: str | Path, check: bool = True, given: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["docker", "--host", self._socket, *words],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "DOCKER_BUILDKIT": "0"},
            input=given,
            text=True,
            capture_output=True,
            check=False,
            timeout=_LONGEST_COMMAND,
        )
        assert not check or done.returncode == 0, f"docker {words}: {done.stderr}"
        return done
