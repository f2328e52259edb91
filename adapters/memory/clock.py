"""A clock for tests: time passes only when somebody sleeps or `advance` is called.

Invariant: no call ever waits, and two instants from `now` are never equal.
"""

from __future__ import annotations

from ports.clock import Clock

START = 1_795_957_572_000_000_000  # 2026-11-29T13:06:12Z: any fixed instant, so that records in tests are stable
_SECOND = 1_000_000_000


class MemoryClock(Clock):
    """`slept` lists every sleep in seconds, for tests of how a loop waits."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._passed = 0.0
        self.slept: list[float] = []

    def now(self) -> int:
        self._now += 1
        return self._now

    def monotonic(self) -> float:
        return self._passed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds
        self._now += round(seconds * _SECOND)
