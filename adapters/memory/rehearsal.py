"""A datastore in which writes happen in memory alone: what `--dry-run` works on.

Whoever writes is told the same as by the datastore below: that a record is there already, that it is gone, that it
has changed. What he has written he reads again, so that of several resources one may rest on another.

Invariant: nothing is written below.
"""

from __future__ import annotations

from ports.datastore import Datastore, Key, Stored
from ports.errors import AlreadyExists, Conflict, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ports.clock import Deadline
    from ports.datastore import BadText, Listing, Need, Revision

REVISION = "rehearsed"


class Rehearsal(Datastore):
    def __init__(self, below: Datastore) -> None:
        self._below = below
        self.lists_in_one_go = below.lists_in_one_go
        self._written: dict[Key[Any], Any] = {}  # None: deleted

    def fetch(self, *needs: Need[Any], deadline: Deadline) -> tuple[Any, ...]:
        answers = self._below.fetch(*needs, deadline=deadline)
        return tuple(
            [
                self._one(need, answer) if isinstance(need, Key) else self._several(answer)
                for need, answer in zip(needs, answers)
            ]
        )

    def _one(self, key: Key[Any], answer: Stored[Any] | None) -> Stored[Any] | None:
        if key not in self._written:
            return answer
        record = self._written[key]
        return None if record is None else Stored(key, record, REVISION)

    def _several(self, answer: tuple[Stored[Any], ...]) -> tuple[Stored[Any], ...]:
        """What has been replaced or deleted counts; what is new does not, since only below a listing is understood."""
        found = [self._one(stored.key, stored) for stored in answer]
        return tuple([stored for stored in found if stored is not None])

    def unreadable(self, deadline: Deadline, listing: Listing[Any] | None = None) -> tuple[BadText, ...]:
        return self._below.unreadable(deadline, listing)

    def create(self, key: Key[Any], record: Any, deadline: Deadline) -> Stored[Any]:
        if self.get(key, deadline) is not None:
            raise AlreadyExists(key)
        return self._write(key, record)

    def update(self, key: Key[Any], record: Any, replaces: Revision, deadline: Deadline) -> Stored[Any]:
        self._check(key, replaces, deadline)
        return self._write(key, record)

    def delete(self, key: Key[Any], replaces: Revision | None, deadline: Deadline) -> None:
        self._check(key, replaces, deadline)
        self._written[key] = None

    def _check(self, key: Key[Any], replaces: Revision | None, deadline: Deadline) -> None:
        stored = self.get(key, deadline)
        if stored is None:
            raise Missing(key)
        if replaces is not None and replaces != stored.revision:
            raise Conflict(key)

    def _write(self, key: Key[Any], record: Any) -> Stored[Any]:
        self._written[key] = record
        return Stored(key, record, REVISION)
