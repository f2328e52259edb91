"""Calls of the bundle on a disk that fails, or with every system call interrupted (faulty_calls.c)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from integration.plugin.host import Answer, Container, Host

SOURCE = Path(__file__).with_name("faulty_calls.c")


def built_in(folder: Path) -> Path:
    library = folder / "faulty_calls.so"
    words = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(words, check=True)
    return library


class FaultyHost:
    """`count` is how many changes of files below the host's folder the last call has tried."""

    def __init__(self, host: Host, library: Path, folder: Path, program: str, **netconf: Any) -> None:
        self.host = host
        self.program = program
        self.count = 0
        self._library = library
        self._report = folder / "faulty-calls"
        self._netconf = json.dumps(host.netconf(**netconf))

    def call(self, verb: str, container: Container, **faulty: object) -> Answer:
        """`at`, `errno`, `lasts`, `storm` as in faulty_calls.c."""
        variables = {f"FAULTY_{name.upper()}": str(value) for name, value in faulty.items()}
        variables |= {"FAULTY_ROOT": str(self.host.folder), "FAULTY_COUNT": str(self._report)}
        environment = self.host.environment(verb, container, CNI_PATH=str(self.host.bin), **variables)
        self._report.unlink(missing_ok=True)
        preloaded = f'export LD_PRELOAD={self._library}; exec "$@"'
        answer = self.host.raw(environment, self._netconf, program=self.program, through=preloaded)
        self.count = int(self._report.read_text())
        return answer
