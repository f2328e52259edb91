"""No more requests than a server should get from one client: a bucket of tokens, as in the original's client.

The defaults let a plugin call through without waiting; they keep a long-running command from flooding the server.

Invariant: over any time t at most `burst + qps * t` requests are let through.
"""

from __future__ import annotations


class Pace:
    """`qps` of 0 or less is no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = max(1, burst)
        self._tokens = float(self._burst)
        self._filled = 0.0

    def wait_for(self, requests: int, now: float) -> float:
        """Seconds until that many more may be sent; they count as sent. `now` is on any monotonic clock."""
        if self._qps <= 0:
            return 0.0
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._qps)
        self._filled = now
        self._tokens -= requests
        return max(0.0, -self._tokens / self._qps)
