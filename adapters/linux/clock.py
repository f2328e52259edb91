"""The machine's clocks.

Invariant: instants from one process strictly increase, also when the wall clock is set back or is too coarse; records
and sequence numbers are made from them.
"""

from __future__ import annotations

import time

from ports.clock import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class SystemClock(Clock):
    """`wall` is where instants come from, in nanoseconds since the epoch."""

    def __init__(self, wall: Callable[[], int] = time.time_ns) -> None:
        self._wall = wall
        self._latest = 0

    def now(self) -> int:
        self._latest = max(self._latest + 1, self._wall())
        return self._latest

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """An exception from a signal handler ends the sleep; a signal without one does not."""
        if seconds > 0:
            time.sleep(seconds)
