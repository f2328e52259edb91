"""Starting an executable that is tried, on Linux.

Invariant: it gets none of our environment.
"""

from __future__ import annotations

from adapters.linux.files import reason
from adapters.linux.process.child import ChildCommand, run
from adapters.trial_run import TrialRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock, Deadline

_EACCES = 13


class ExecutedProgram(TrialRun):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def _run(self, path: str, flag: str, stdin: bytes, deadline: Deadline) -> tuple[int, bytes, bytes]:
        environment = {"CNI_COMMAND": "VERSION"}
        command = ChildCommand(path, environment, stdin, waited_for=f"{path} {flag}", arguments=(flag,))
        finished = run(command, deadline, self._clock)
        return finished.status, finished.stdout, finished.stderr

    def _why(self, error: OSError) -> str:
        noexec = " (it can be read: is the file system mounted noexec?)" if error.errno == _EACCES else ""
        return f"{reason(error)}{noexec}"
