"""What the steps of one call share: the datastore, the clock, the log and the deadline.

Invariant: MAX_TRIES bounds every loop that goes round after a lost race.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock
    from ports.datastore import Datastore
    from ports.deadline import Deadline
    from ports.log import Log
    from ports.runtime import Runtime

MAX_TRIES = 100


class Work:
    __slots__ = ("clock", "datastore", "deadline", "log")

    def __init__(self, datastore: Datastore, clock: Clock, log: Log, deadline: Deadline) -> None:
        self.datastore = datastore
        self.clock = clock
        self.log = log
        self.deadline = deadline

    def until(self, deadline: Deadline) -> Work:
        """The same work with another deadline."""
        return Work(self.datastore, self.clock, self.log, deadline)

    @classmethod
    def on(cls, runtime: Runtime, deadline: Deadline) -> Work:
        return cls(runtime.datastore, runtime.clock, runtime.log, deadline)
