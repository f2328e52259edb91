"""Trial runs as a test scripts them.

Invariant: nothing is run; `tried` has each call in order.
"""

from __future__ import annotations

from ports.errors import Refused, Unavailable
from ports.installed_program import InstalledProgram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Deadline


class ScriptedProgram(InstalledProgram):
    """`unfit` is why no executable runs, "" if all do. `answers` are what connection tests end with, "" for success;
    the last one goes on for ever.
    """

    def __init__(self) -> None:
        self.unfit = ""
        self.answers: list[str] = [""]
        self.tried: list[tuple[str, str]] = []

    def version(self, path: str, deadline: Deadline) -> str:  # noqa: ARG002 - the port's
        self.tried.append((path, "-v"))
        if self.unfit:
            raise Refused(self.unfit)
        return "v1.2.3"

    def test_connection(self, path: str, netconf: str, deadline: Deadline) -> None:  # noqa: ARG002 - the port's
        self.tried.append((path, netconf))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer:
            raise Unavailable(answer)
