"""Keeping two calls on one host from contending. Best effort: correctness comes from compare-and-swap.

Whoever holds the lock may leave notes in it for the next. They are hints: they get lost, and may be out of date.

Invariant: a call is never blocked for ever because of the lock, and fails only where what is in its place can never
serve as one. Notes are whole, and left by this very kind of program, or there are none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ports.clock import Deadline


class Lock(ABC):
    @abstractmethod
    def held(self, deadline: Deadline, *, strict: bool = False) -> AbstractContextManager[bool]:
        """Wait for the host-wide lock until the deadline and hold it for the `with` block.

        Gives whether it is really held; when it cannot be had (deadline, permissions) the block runs unlocked. The
        lock file is `flock(2)`ed, so that it excludes the original's processes too, and is never deleted. With `strict`
        something in its place that is no lock file is `BadConfiguration` that names it; otherwise an error in the log.
        """

    @abstractmethod
    def keep(self, path: str, deadline: Deadline) -> bool:
        """Wait for the lock on something that exists already, such as a container's namespace, and keep it.

        It is kept until the process ends, so that not even undo runs beside another call about the same thing.
        False, and the call goes on, when it cannot be had. What this lock keeps already is not waited for.
        """

    def notes(self) -> str | None:
        """What the last holder has left, "" for nothing; None where nothing can be left."""
        return None

    def leave(self, notes: str) -> None:  # noqa: ARG002 - one that can have no notes has none
        """For the next, in place of what was there. Only for whoever really holds the lock; nothing ever fails."""
        return
