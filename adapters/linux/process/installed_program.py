"""Trial runs of an executable by starting it, as a runtime would, and reading what it says.

Invariant: whatever the program does, the answer is a version, silence, or one error of a single line.
"""

from __future__ import annotations

from adapters.linux.files import reason
from adapters.linux.process.child import ChildCommand, Finished, run
from domain.cni.go_quote import printable
from domain.json_text import JsonError, parse
from ports.errors import Expired, Refused, Unavailable
from ports.installed_program import InstalledProgram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock, Deadline

_ENVIRONMENT = {"CNI_COMMAND": "VERSION"}  # without it the original's executable takes flags for sub-commands
_LONGEST = 400  # characters of what a program says
_EACCES = 13


class ExecutedProgram(InstalledProgram):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def version(self, path: str, deadline: Deadline) -> str:
        try:
            finished = self._run(path, "-v", b"", deadline)
        except OSError as error:
            noexec = " (it can be read: is the file system mounted noexec?)" if error.errno == _EACCES else ""
            raise Refused(f"exec {path}: {reason(error)}{noexec}") from error
        except Expired as error:
            raise Refused(f"{path} -v did not end in time") from error
        if finished.status:
            raise Refused(f"{path} -v failed: {_said(finished)}")
        return finished.stdout.decode("utf-8", "replace").strip()

    def test_connection(self, path: str, netconf: str, deadline: Deadline) -> None:
        try:
            finished = self._run(path, "-t", netconf.encode(), deadline)
        except OSError as error:
            raise Unavailable(f"exec {path}: {reason(error)}") from error
        if finished.status:
            raise Unavailable(_said(finished))

    def _run(self, path: str, flag: str, stdin: bytes, deadline: Deadline) -> Finished:
        command = ChildCommand(path, _ENVIRONMENT, stdin, waited_for=f"{path} {flag}", arguments=(flag,))
        return run(command, deadline, self._clock)


def _said(finished: Finished) -> str:
    """The details of a CNI error, or the last line of whatever it is."""
    text = finished.stdout.decode("utf-8", "replace").strip()
    try:
        told = parse(text)
    except JsonError:
        told = None
    if isinstance(told, dict):
        parts = [told[key] for key in ("msg", "details") if told.get(key)]
        text = ": ".join([part for part in parts if isinstance(part, str)])
    text = text or finished.stderr.decode("utf-8", "replace").strip() or f"status {finished.status}, without a word"
    return printable(text.rpartition("\n")[2][:_LONGEST])
