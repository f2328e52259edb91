"""Taking back all that there is, whatever fails on the way: what a failed call has done, or what a DEL finds.

A call may fail, be interrupted, or be unable to deliver its answer. Each effect registers its way back on the line
after it. `keep` forgets them all, and is called only once the answer has left the process. `run` goes them in reverse
order within a budget of its own, so that an expired call can still clean up.

Invariant: every way back is tried, with time for it, whatever the earlier ones do; failures are logged, and none is
raised from here.
"""

from __future__ import annotations

from domain.cni.errors import CniError
from domain.ipam.errors import IpamError
from ports.clock import Deadline
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ports.clock import Clock
    from ports.log import Log
    from ports.runtime import Ports

BUDGET = 10.0  # seconds for all ways back together
SHARE = 2.0  # that each of them has all the same, when an earlier one has used up the budget


class Undo:
    def __init__(self, clock: Clock, log: Log) -> None:
        self._clock = clock
        self._log = log
        self._ways_back: list[tuple[str, Callable[[Deadline], None]]] = []

    def register(self, what: str, take_back: Callable[[Deadline], None]) -> None:
        """`what` names the effect to take back: `release 10.0.0.1`."""
        self._ways_back.append((what, take_back))

    def keep(self) -> None:
        """The effects stay: forget how to undo them."""
        self._ways_back.clear()

    def run(self) -> None:
        """Take everything back, newest first."""
        together = self._clock.deadline(BUDGET)
        while self._ways_back:
            what, take_back = self._ways_back.pop()
            own = self._clock.deadline(SHARE)
            deadline = own if own.at > together.at else together
            try:
                take_back(deadline)
            except (PortError, IpamError) as error:
                self._log.error("Could not undo", step=what, error=error)
            else:
                self._log.info("Undone", step=what)


def attempt(runtime: Ports, what: str, part: Callable[[], object]) -> Exception | None:
    """Do a part of a DEL; its failure, logged."""
    try:
        part()
    except (PortError, CniError, IpamError) as error:
        runtime.log.error("DEL could not " + what, error=error)
        return error
    return None
