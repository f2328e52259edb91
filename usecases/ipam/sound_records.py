"""Read what can be read: a DEL ends its container though a record is damaged, since only its repair can tell more.

Records are asked for in one go, as ever; only if one of them is damaged each is asked for by itself.

Invariant: a damaged record is never taken for one that is not there; and each is named in the log with what repairs it.
"""

from __future__ import annotations

from ports.datastore import IPPoolKey
from ports.errors import HOW_TO_MEND, Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.ipam.errors import IpamError
    from ports.clock import Deadline
    from ports.datastore import Datastore, Need
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
    """An error in the log if somebody can mend it. A name that no key can have is looked up in vain: a debug line."""
    if error.details:
        log.error("Going on without a damaged record", error=error, mend=error.details)
    else:
        log.debug("There can be no such record", error=error)


def if_sound(found: Any) -> Any:
    """What was read, None for what is damaged."""
    return None if isinstance(found, Damaged) else found


def blame_left_out(datastore: Datastore, error: IpamError) -> None:
    """Name the pools that could not be read in the error of a call that lacks one."""
    pools = [f"{bad.key}: {bad.fault}" for bad in datastore.left_out if isinstance(bad.key, IPPoolKey)]
    if pools:
        before = f"{error.details}; " if error.details else ""
        error.details = f"{before}left out is what is corrupt: {'; '.join(pools)} ({HOW_TO_MEND})"
