"""An executable that has just been put on the host, tried before a container runtime depends on it.

Invariant: a trial ends by its deadline, with the program's answer or with a reason.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Deadline


class InstalledProgram(ABC):
    """The program gets none of our environment, as it gets none of it from a runtime."""

    @abstractmethod
    def version(self, path: str, deadline: Deadline) -> str:
        """What `<path> -v` prints, trimmed. `ports.errors.Refused` with the reason if it cannot be run, or fails."""

    @abstractmethod
    def test_connection(self, path: str, netconf: str, deadline: Deadline) -> None:
        """`<path> -t` with the configuration of one plugin. `ports.errors.Unavailable` with what it says is wrong."""
