"""What time it is. Domain code never asks the machine."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ports.deadline import Deadline


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
