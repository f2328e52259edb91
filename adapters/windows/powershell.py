"""Running a PowerShell command: what Windows has no other public way for.

Invariant: a command that fails, or outlives the deadline, is an error that says which; nothing is left running.
"""

from __future__ import annotations

import os

from adapters.windows.process import WindowsCommand, run
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock, Deadline

_BELOW = r"System32\WindowsPowerShell\v1.0\powershell.exe"
_OPTIONS = ("-NoProfile", "-NonInteractive", "-Command")
_STOP_AT_ERRORS = "$ErrorActionPreference = 'Stop'; "


class PowerShell:
    """`program` is what runs a command that it gets as its last argument.

    By its full path: Windows looks for a bare name in the working directory first, which is somebody else's.
    """

    def __init__(self, clock: Clock, program: tuple[str, ...] = ()) -> None:
        root = os.environ.get("SYSTEMROOT", r"C:\Windows")
        self._clock = clock
        self._program = program or (rf"{root}\{_BELOW}", *_OPTIONS)

    def run(self, command: str, deadline: Deadline) -> str:
        """What it has written. `ports.errors.Refused` if it fails, `Expired` past the deadline."""
        named = f"PowerShell ({command})"
        wanted = WindowsCommand((*self._program, _STOP_AT_ERRORS + command), named)
        try:
            ended = run(wanted, deadline, self._clock)
        except OSError as error:
            raise Refused(f"cannot run {self._program[0]}: {error.strerror or error}") from error
        if ended.status:
            said = ended.stderr.decode("utf-8", "replace").strip() or f"exit status {ended.status}"
            raise Refused(f"{named}: {said}")
        return ended.stdout.decode("utf-8", "replace")
