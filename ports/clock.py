"""What time it is, which the domain never asks the machine, and the point in time by which a call must have answered.

Every port verb that may wait takes that deadline. Parts of a call that have their own budget get their own one
(`sooner`).

Invariant: a deadline never moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

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


class Clock(ABC):
    @abstractmethod
    def now(self) -> int:
        """Nanoseconds since the Unix epoch, UTC. Two calls in one process never give the same or an earlier instant."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds on a clock that is never set."""

    @abstractmethod
    def sleep(self, seconds: float) -> None:
        """Wait; interrupted by a termination signal."""

    def deadline(self, budget: float) -> Deadline:
        """The point in time that many seconds from now."""
        return Deadline(self.monotonic() + budget)
