"""The host lock within one test: taken, free, or held by somebody else for a while.

Invariant: `held` lets its block run unless something unfit is in the place, and time passes on the given clock only
while it waits.
"""

from __future__ import annotations

from ports.errors import BadConfiguration
from ports.lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from ports.clock import Clock, Deadline
    from ports.log import Log

FOR_EVER = float("inf")


class MemoryLock(Lock):
    """`hold_elsewhere(seconds)` makes it look held by another process for that long.

    `held_now` tells whether a block runs under it, `given` what each `held` so far gave. `kept` are the paths that
    `keep` has locked; those in `kept_elsewhere` another process has. `unfit` says what is in the lock's place
    that can be none. `left` are the notes; None, until a test says
    otherwise, for a lock that cannot have any.
    """

    def __init__(self, clock: Clock, log: Log) -> None:
        self._clock = clock
        self._log = log
        self._free_at = 0.0
        self.held_now = False
        self.given: list[bool] = []
        self.kept: list[str] = []
        self.kept_elsewhere: set[str] = set()
        self.unfit = ""
        self.left: str | None = None

    def hold_elsewhere(self, seconds: float = FOR_EVER) -> None:
        self._free_at = self._clock.monotonic() + seconds

    def free_elsewhere(self) -> None:
        self._free_at = 0.0

    def held(self, deadline: Deadline, *, strict: bool = False) -> _HeldLock:
        return _HeldLock(self, deadline, strict=strict)

    def keep(self, path: str, deadline: Deadline) -> bool:
        now = self._clock.monotonic()
        if path in self.kept_elsewhere:
            self._clock.sleep(deadline.left(now))
            return False
        self.kept.append(path)
        return True

    def notes(self) -> str | None:
        return self.left

    def leave(self, notes: str) -> None:
        self.left = notes if self.left is not None else None

    def _take(self, deadline: Deadline, *, strict: bool) -> bool:
        if self.unfit:
            if strict:
                raise BadConfiguration(self.unfit)
            self._log.error("Going on without the host lock", error=self.unfit)
            return False
        now = self._clock.monotonic()
        free_at = FOR_EVER if self.held_now else self._free_at
        if free_at > now:
            self._clock.sleep(min(free_at, max(deadline.at, now)) - now)
        taken = free_at <= self._clock.monotonic()
        if taken:
            self.held_now = True
        else:
            self._log.warning("The host lock is held by others for too long, going on without it")
        self.given.append(taken)
        return taken

    def _release(self) -> None:
        self.held_now = False


class _HeldLock:
    def __init__(self, lock: MemoryLock, deadline: Deadline, *, strict: bool) -> None:
        self._lock = lock
        self._deadline = deadline
        self._strict = strict
        self._taken = False

    def __enter__(self) -> bool:
        self._taken = self._lock._take(self._deadline, strict=self._strict)
        return self._taken

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._taken:
            self._lock._release()
