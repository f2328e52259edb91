"""Trial runs of an executable on Windows by starting it, as a runtime would, and reading what it says.

Invariant: whatever the program does, the answer is a version, silence, or one error of a single line.
"""

from __future__ import annotations

import os

from adapters.windows.process import Ended, WindowsCommand, run
from domain.cni.go_quote import printable
from domain.json_text import JsonError, parse
from ports.errors import Expired, Refused, Unavailable
from ports.installed_program import InstalledProgram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock, Deadline

_KEPT = ("SYSTEMROOT", "TEMP", "TMP")  # without the first one no program of Windows finds its libraries
_LONGEST = 400  # characters of what a program says


class WindowsProgram(InstalledProgram):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def version(self, path: str, deadline: Deadline) -> str:
        try:
            ended = self._run(path, "-v", b"", deadline)
        except OSError as error:
            raise Refused(f"exec {path}: {error.strerror or error}") from error
        except Expired as error:
            raise Refused(f"{path} -v did not end in time") from error
        if ended.status:
            raise Refused(f"{path} -v failed: {_said(ended)}")
        return ended.stdout.decode("utf-8", "replace").strip()

    def test_connection(self, path: str, netconf: str, deadline: Deadline) -> None:
        try:
            ended = self._run(path, "-t", netconf.encode(), deadline)
        except OSError as error:
            raise Unavailable(f"exec {path}: {error.strerror or error}") from error
        if ended.status:
            raise Unavailable(_said(ended))

    def _run(self, path: str, flag: str, stdin: bytes, deadline: Deadline) -> Ended:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"CNI_COMMAND": "VERSION"}
        return run(WindowsCommand((path, flag), f"{path} {flag}", environment, stdin), deadline, self._clock)


def _said(ended: Ended) -> str:
    """The details of a CNI error, or the last line of whatever it is."""
    text = ended.stdout.decode("utf-8", "replace").strip()
    try:
        told = parse(text)
    except JsonError:
        told = None
    if isinstance(told, dict):
        parts = [told[key] for key in ("msg", "details") if told.get(key)]
        text = ": ".join([part for part in parts if isinstance(part, str)])
    text = text or ended.stderr.decode("utf-8", "replace").strip() or f"status {ended.status}, without a word"
    return printable(text.rpartition("\n")[2][:_LONGEST])
