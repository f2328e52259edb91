"""What to take back when a call fails, is interrupted, or cannot deliver its answer.

Each effect registers its undoing on the line after it. `keep` forgets them all, and is called only once the answer
has left the process. Undoing runs in reverse order and has a budget of its own, so that an expired call can still
clean up.

Invariant: every registered step is tried, whatever the earlier ones do; failures are logged, never raised.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from ports.deadline import Deadline
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ports.clock import Clock
    from ports.log import Log

BUDGET = 10.0  # seconds for all steps together


class Undo:
    def __init__(self, clock: Clock, log: Log) -> None:
        self._clock = clock
        self._log = log
        self._steps: list[tuple[str, Callable[[Deadline], None]]] = []

    def register(self, what: str, step: Callable[[Deadline], None]) -> None:
        """`what` names the effect to take back: `release 10.0.0.1`."""
        self._steps.append((what, step))

    def keep(self) -> None:
        """The effects stay: forget how to undo them."""
        self._steps.clear()

    def run(self) -> None:
        """Take everything back, newest first."""
        deadline = self._clock.deadline(BUDGET)
        while self._steps:
            what, step = self._steps.pop()
            try:
                step(deadline)
            except (PortError, IpamError) as error:
                self._log.error("Could not undo", step=what, error=error)
            else:
                self._log.info("Undone", step=what)
