"""What the steps of one call share, and the loop by which they change a shared record: read, decide, write.

A decision is a pure function of the stored record, so a lost race costs nothing but another round.

Invariant: a decision is written at most once, and only over the revision it was made on. MAX_TRIES bounds every loop
that goes round after a lost race.
"""

from __future__ import annotations

from domain.ipam.errors import StillContended
from ports.errors import AlreadyExists, Conflict, Missing
from ports.runtime import unheard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from domain.ipam.address import Address
    from domain.ipam.block import Block, Handle
    from ports.clock import Clock, Deadline
    from ports.datastore import Datastore, Key, Stored
    from ports.log import Log
    from ports.runtime import Runtime

    R = TypeVar("R")
    T = TypeVar("T")

MAX_TRIES = 100


def _unknown(_address: Address) -> str:
    """For work that is done elsewhere than on the node it is about."""
    return ""


class Work:
    """`interface_of` tells which interface of this machine an address is routed to, "" for none.

    `doing` hears what is being done, for a person who waits. `counted` are handles, by name, as they were last written
    together with a block.
    """

    __slots__ = ("clock", "counted", "datastore", "deadline", "doing", "interface_of", "log")

    def __init__(self, datastore: Datastore, clock: Clock, log: Log, deadline: Deadline) -> None:
        self.datastore = datastore
        self.clock = clock
        self.log = log
        self.deadline = deadline
        self.interface_of: Callable[[Address], str] = _unknown
        self.doing: Callable[[str], None] = unheard
        self.counted: dict[str, Stored[Handle]] = {}

    def until(self, deadline: Deadline) -> Work:
        """The same work with another deadline."""
        work = Work(self.datastore, self.clock, self.log, deadline)
        work.interface_of, work.counted = self.interface_of, self.counted
        return work

    @classmethod
    def on(cls, runtime: Runtime, deadline: Deadline) -> Work:
        """For a node's own call."""
        work = cls(runtime.datastore, runtime.clock, runtime.log, deadline)
        work.interface_of = runtime.node.interface_of
        return work


class Leave:
    """A decision to write nothing."""


class Delete:
    """A decision to delete the record."""


LEAVE, DELETE = Leave(), Delete()


class LostRace(Exception):
    """Somebody was faster: look again, and decide anew."""


def until_won(contended: object, attempt: Callable[[], T], *lost: type[Exception]) -> T:
    """What the first attempt gives that loses no race; the errors in `lost` mean such a loss too.

    Raises `StillContended` when every attempt lost.
    """
    losses: tuple[type[Exception], ...] = (LostRace, *lost)
    for _ in range(MAX_TRIES):
        try:
            return attempt()
        except losses:
            continue
    raise StillContended(contended)


def guarded_write(
    work: Work,
    key: Key[R],
    decide: Callable[[R | None], R | Leave | Delete],
    stored: Stored[R] | None = None,
) -> Stored[R] | None:
    """Apply a decision to one record; returns what is stored afterwards (None: nothing).

    `decide` gets the record or None, and says what to store instead. `stored` saves the first read where the caller
    has just read the record. Raises `StillContended` when every round lost.
    """
    known = stored

    def write() -> Stored[R] | None:
        nonlocal known
        found, known = known, None  # what has lost a race is read again
        if found is None:
            found = work.datastore.get(key, work.deadline)
        decision = decide(found.record if found else None)
        if isinstance(decision, Leave):
            return found
        try:
            return write_once(work, key, found, decision)
        except (Conflict, AlreadyExists, Missing):
            raise LostRace from None

    return until_won(key, write)


def write_once(work: Work, key: Key[R], stored: Stored[R] | None, decision: R | Delete) -> Stored[R] | None:
    """One guarded write: create, update or delete, as what is stored demands."""
    if isinstance(decision, Delete):
        if stored is not None:
            work.datastore.delete(key, stored.revision, work.deadline)
        return None
    if stored is None:
        return work.datastore.create(key, decision, work.deadline)
    return work.datastore.update(key, decision, stored.revision, work.deadline)


def rewrite(work: Work, stored: Stored[Block], record: Block) -> Stored[Block]:
    """Update a block; every update raises its sequence number by one."""
    written = record.replace(sequence=stored.record.sequence + 1)
    return work.datastore.update(stored.key, written, stored.revision, work.deadline)
