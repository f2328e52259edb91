"""A Docker engine of a test's own, which changes nothing outside of its folder: no bridge, no rules, no forwarding.

    with ContainerEngine(folder) as engine:
        engine.docker("build", "--tag", "tortie:test", ".")
        engine.docker("run", "--rm", "--network", "host", "tortie:test", "version")

`ContainerEngine.lacking()` says why there can be none here, "" if there can.
Invariant: the daemon, its containers and its data go with the `with` block.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Self

_LONGEST_START, _LONGEST_COMMAND = 60.0, 300.0


class ContainerEngine:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def lacking() -> str:
        if os.geteuid() != 0:
            return "a container engine needs root"
        absent = [name for name in ("docker", "dockerd") if not shutil.which(name)]
        return f"there is no {' and no '.join(absent)} here (Debian's docker.io)" if absent else ""

    def __enter__(self) -> Self:
        self._folder.mkdir(exist_ok=True)
        switched_off = ("--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false")
        places = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        words = ["dockerd", *switched_off, *[f"--{name}={self._folder}/{place}" for name, place in places.items()]]
        with open(self._folder / "log", "wb") as log:
            self._process = subprocess.Popen([*words, "-H", self._socket], stdout=log, stderr=log)
        ends = time.monotonic() + _LONGEST_START
        while self.docker("version", check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > ends:
                said = (self._folder / "log").read_text(errors="replace")
                self.__exit__()
                raise RuntimeError(f"dockerd does not start:\n{said[-2000:]}")
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
        shutil.rmtree(self._folder, ignore_errors=True)

    def docker(self, *words: str | Path, check: bool = True, given: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["docker", "--host", self._socket, *words],
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder), "DOCKER_BUILDKIT": "0"},
            input=given,
            text=True,
            capture_output=True,
            check=False,
            timeout=_LONGEST_COMMAND,
        )
        assert not check or done.returncode == 0, f"docker {words}: {done.stderr}"
        return done
