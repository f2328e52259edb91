"""What the steps of one call share: the datastore, the clock, the log and the deadline.

Invariant: MAX_TRIES bounds every loop that goes round after a lost race.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.ipam.address import Address
    from ports.clock import Clock
    from ports.datastore import Datastore
    from ports.deadline import Deadline
    from ports.log import Log
    from ports.runtime import Runtime

MAX_TRIES = 100


def _unknown(_address: Address) -> str:
    """For work that is done elsewhere than on the node it is about."""
    return ""


class Work:
    """`interface_of` tells which interface of this machine an address is routed to, "" for none."""

    __slots__ = ("clock", "datastore", "deadline", "interface_of", "log")

    def __init__(self, datastore: Datastore, clock: Clock, log: Log, deadline: Deadline) -> None:
        self.datastore = datastore
        self.clock = clock
        self.log = log
        self.deadline = deadline
        self.interface_of: Callable[[Address], str] = _unknown

    def until(self, deadline: Deadline) -> Work:
        """The same work with another deadline."""
        work = Work(self.datastore, self.clock, self.log, deadline)
        work.interface_of = self.interface_of
        return work

    @classmethod
    def on(cls, runtime: Runtime, deadline: Deadline) -> Work:
        """For a node's own call."""
        work = cls(runtime.datastore, runtime.clock, runtime.log, deadline)
        work.interface_of = runtime.node.interface_of
        return work
