"""Running a PowerShell command: what Windows has no other public way for.

Invariant: a command that fails, or outlives the deadline, is an error that says which; nothing is left running.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from ports.errors import Expired, Refused

if TYPE_CHECKING:
    from ports.clock import Clock, Deadline

_COMMAND = ("powershell.exe", "-NoProfile", "-NonInteractive", "-Command")
_STOP_AT_ERRORS = "$ErrorActionPreference = 'Stop'; "


class PowerShell:
    """`program` is what runs a command that it gets as its last argument."""

    def __init__(self, clock: Clock, program: tuple[str, ...] = _COMMAND) -> None:
        self._clock = clock
        self._program = program

    def run(self, command: str, deadline: Deadline) -> str:
        """What it has written. `ports.errors.Refused` if it fails, `Expired` past the deadline."""
        left = deadline.left(self._clock.monotonic())
        if left <= 0:
            raise Expired(f"PowerShell ({command})")
        try:
            done = subprocess.run(  # noqa: S603 - a program of the system, by name
                [*self._program, _STOP_AT_ERRORS + command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=left,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Expired(f"PowerShell ({command})") from None
        except OSError as error:
            raise Refused(f"cannot run {self._program[0]}: {error.strerror or error}") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
            raise Refused(f"PowerShell ({command}): {said}")
        return done.stdout.decode("utf-8", "replace")
