"""What one call leaves in the host's lock for the next: notes that save it reads, where each record is a request.

They are taken up before the lock is waited for, so that it is known what to read meanwhile, and again under it, since
another call may have left newer ones.

Invariant: a call without notes, or with notes that are out of date, does the same as one with true ones; it only asks
more. Notes are left only by whoever holds the lock.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType

    from ports.runtime import Runtime


def recall(runtime: Runtime) -> str | None:
    """Take up the notes that there are. "" on a host that has none yet: this call is its first. None where there can be
    none.
    """
    notes = runtime.lock.notes()
    runtime.datastore.recall(notes or "")
    return notes


class NotedLock:
    """The host's lock, with the notes in it."""

    def __init__(self, lock: AbstractContextManager[bool], runtime: Runtime) -> None:
        self._lock = lock
        self._runtime = runtime
        self._locked = False

    def __enter__(self) -> bool:
        self._locked = self._lock.__enter__()
        try:
            recall(self._runtime)
        except BaseException:  # a termination signal
            self._lock.__exit__(None, None, None)
            raise
        return self._locked

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._locked and (notes := self._runtime.datastore.notes()):
                self._runtime.lock.leave(notes)
        finally:
            self._lock.__exit__(kind, error, trace)
