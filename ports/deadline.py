"""One point in time by which a call must have answered; every port verb that may wait takes it.

Invariant: a deadline never moves. Parts of a call that have their own budget get their own deadline (`sooner`).
"""

from __future__ import annotations

from domain.value import Value


class Deadline(Value):
    """`at` is on the monotonic clock (`Clock.monotonic`), in seconds."""

    at: float

    def left(self, now: float) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - now)

    def passed(self, now: float) -> bool:
        return now >= self.at

    def sooner(self, now: float, budget: float) -> Deadline:
        """This deadline, or `budget` seconds from now if that is earlier."""
        return Deadline(min(self.at, now + budget))
