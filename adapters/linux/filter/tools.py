"""The system's packet filter commands: where they are, and running one with text in and out.

A runtime's environment may have hardly any PATH, so the usual directories are searched as well.

Invariant: a command gets no terminal, no more environment than PATH and the C locale, and dies with us.
"""

from __future__ import annotations

import os

from adapters.linux.files import reason
from adapters.linux.process.child import ChildCommand, run
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ports.clock import Clock, Deadline

_DIRECTORIES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LONGEST_RUN = 55.0  # seconds


class ToolFailed(Exception):
    """It ran, and said no: `str()` is what it said on stderr."""


class Tools:
    """`environment` is this process's own; only its PATH counts."""

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._path = f"{environment.get('PATH', '')}:{_DIRECTORIES}"
        self._clock = clock

    def find(self, name: str) -> str:
        """The path, or ""."""
        for directory in self._path.split(":"):
            candidate = os.path.join(directory, name)
            if directory.startswith("/") and os.access(candidate, os.X_OK):
                return candidate
        return ""

    def run(self, name: str, arguments: tuple[str, ...], deadline: Deadline, given: str = "") -> str:
        """What it printed. ToolFailed; Refused if it cannot be started at all; Expired."""
        path = self.find(name)
        if not path:
            raise Refused(f'executable file "{name}" not found in {self._path}')
        command = ChildCommand(
            path=path,
            environment={"PATH": self._path, "LC_ALL": "C"},
            stdin=given.encode("utf-8", "surrogateescape"),
            waited_for=name,
            arguments=arguments,
        )
        try:
            finished = run(command, deadline.sooner(self._clock.monotonic(), _LONGEST_RUN), self._clock)
        except OSError as error:
            raise Refused(f"cannot run {path}: {reason(error)}") from error
        if finished.status:
            told = (finished.stderr or finished.stdout).decode("utf-8", "replace").strip()
            raise ToolFailed(f"{name}: {' '.join(told.split())}")
        return finished.stdout.decode("utf-8", "replace")
