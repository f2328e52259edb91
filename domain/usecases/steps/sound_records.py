"""Read what can be read: a DEL ends its container though a record is damaged, since only its mending can tell more.

Records are asked for in one go, as ever; only if one of them is damaged each is asked for by itself.

Invariant: a damaged record is never taken for one that is not there; and each is named in the log with what mends it.
"""

from __future__ import annotations

from ports.errors import Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ports.datastore import Datastore, Need
    from ports.deadline import Deadline
    from ports.log import Log


def fetch_sound(datastore: Datastore, log: Log, *needs: Need[Any], deadline: Deadline) -> tuple[Any, ...]:
    """As `Datastore.fetch`, with the `Damaged` error in the place of a record that cannot be used."""
    try:
        return datastore.fetch(*needs, deadline=deadline)
    except Damaged:
        return tuple([_one(datastore, log, need, deadline) for need in needs])


def _one(datastore: Datastore, log: Log, need: Need[Any], deadline: Deadline) -> Any:
    try:
        return datastore.fetch(need, deadline=deadline)[0]
    except Damaged as error:
        tell_damaged(log, error)
        return error


def tell_damaged(log: Log, error: Damaged) -> None:
    log.error("Going on without a damaged record", error=error, mend=error.details)


def if_sound(found: Any) -> Any:
    """What was read, None for what is damaged."""
    return None if isinstance(found, Damaged) else found
