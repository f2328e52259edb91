"""Trial runs of an executable by starting it, as a runtime would, and reading what it says; on either system.

Invariant: whatever the program does, the answer is a version, silence, or one error of a single line.
"""

from __future__ import annotations

from abc import abstractmethod

from domain.cni.go_quote import printable
from domain.json_text import JsonError, parse
from ports.errors import Expired, Refused, Unavailable
from ports.installed_program import InstalledProgram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Deadline

_LONGEST = 400  # characters of what a program says


class TrialRun(InstalledProgram):
    """What differs between systems is how a program is started, and how the system says that it cannot."""

    @abstractmethod
    def _run(self, path: str, flag: str, stdin: bytes, deadline: Deadline) -> tuple[int, bytes, bytes]:
        """Exit code, standard output and standard error. OSError if it cannot be started, `Expired` past the deadline.

        The environment has CNI_COMMAND, without which the original's executable takes flags for sub-commands.
        """

    @abstractmethod
    def _why(self, error: OSError) -> str: ...

    def version(self, path: str, deadline: Deadline) -> str:
        try:
            status, out, err = self._run(path, "-v", b"", deadline)
        except OSError as error:
            raise Refused(f"exec {path}: {self._why(error)}") from error
        except Expired as error:
            raise Refused(f"{path} -v did not end in time") from error
        if status:
            raise Refused(f"{path} -v failed: {_said(status, out, err)}")
        return out.decode("utf-8", "replace").strip()

    def test_connection(self, path: str, netconf: str, deadline: Deadline) -> None:
        try:
            status, out, err = self._run(path, "-t", netconf.encode(), deadline)
        except OSError as error:
            raise Unavailable(f"exec {path}: {self._why(error)}") from error
        if status:
            raise Unavailable(_said(status, out, err))


def _said(status: int, out: bytes, err: bytes) -> str:
    """The details of a CNI error, or the last line of whatever it is."""
    text = out.decode("utf-8", "replace").strip()
    try:
        told = parse(text)
    except JsonError:
        told = None
    if isinstance(told, dict):
        parts = [told[key] for key in ("msg", "details") if told.get(key)]
        text = ": ".join([part for part in parts if isinstance(part, str)])
    text = text or err.decode("utf-8", "replace").strip() or f"status {status}, without a word"
    return printable(text.rpartition("\n")[2][:_LONGEST])
