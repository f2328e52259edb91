"""The read–decide–write loop: decide on what is stored, write only over exactly that, go round if somebody was faster.

Every change of a shared record goes through here. The decision is a pure function of the stored record, so a lost
race costs nothing but another round.

Invariant: a decision is written at most once, and only over the revision it was made on.
"""

from __future__ import annotations

from domain.ipam.errors import StillContended
from ports.errors import AlreadyExists, Conflict, Missing
from usecases.ipam.work import MAX_TRIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ports.datastore import Key, Stored
    from usecases.ipam.work import Work

    R = TypeVar("R")


class Leave:
    """A decision to write nothing."""


class Delete:
    """A decision to delete the record."""


LEAVE, DELETE = Leave(), Delete()


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
    for _ in range(MAX_TRIES):
        if stored is None:
            stored = work.datastore.get(key, work.deadline)
        decision = decide(stored.record if stored else None)
        if isinstance(decision, Leave):
            return stored
        try:
            return write_once(work, key, stored, decision)
        except (Conflict, AlreadyExists, Missing):
            stored = None
    raise StillContended(key)


def write_once(work: Work, key: Key[R], stored: Stored[R] | None, decision: R | Delete) -> Stored[R] | None:
    """One guarded write: create, update or delete, as what is stored demands."""
    if isinstance(decision, Delete):
        if stored is not None:
            work.datastore.delete(key, stored.revision, work.deadline)
        return None
    if stored is None:
        return work.datastore.create(key, decision, work.deadline)
    return work.datastore.update(key, decision, stored.revision, work.deadline)
