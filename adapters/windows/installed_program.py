"""Starting an executable that is tried, on Windows.

Invariant: it gets none of our environment but what every program of Windows needs.
"""

from __future__ import annotations

import os

from adapters.trial_run import TrialRun
from adapters.windows.process import WindowsCommand, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock, Deadline

_KEPT = ("SYSTEMROOT", "TEMP", "TMP")  # without the first one no program of Windows finds its libraries


class WindowsProgram(TrialRun):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def _run(self, path: str, flag: str, stdin: bytes, deadline: Deadline) -> tuple[int, bytes, bytes]:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"CNI_COMMAND": "VERSION"}
        ended = run(WindowsCommand((path, flag), f"{path} {flag}", environment, stdin), deadline, self._clock)
        return ended.status, ended.stdout, ended.stderr

    def _why(self, error: OSError) -> str:
        return error.strerror or str(error)
