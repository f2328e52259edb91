"""Readiness as two sets: the URLs and the files that are there, now or from some moment on.

Invariant: waiting passes time on the given clock only, in the steps that the port promises.
"""

from __future__ import annotations

from domain.cni.gate_url import parse_gate_url, shown
from ports.errors import Expired
from ports.readiness import PROBE_EVERY, Readiness, refused_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.clock import Clock, Deadline

_LOOK_EVERY = 0.05


class MemoryReadiness(Readiness):
    """`ready` maps a URL or path to the `clock.monotonic()` from which on it is; `probes` lists what was asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ready: dict[str, float] = {}
        self.probes: list[str] = []

    def make_ready(self, url_or_path: str, after: float = 0.0) -> None:
        """Ready that many seconds from now."""
        self.ready[url_or_path] = self._clock.monotonic() + after

    def gate(self, url: str, deadline: Deadline) -> None:
        try:
            parse_gate_url(url)
        except ValueError as error:
            raise refused_url(url, error) from None
        if not self._wait(url, deadline, PROBE_EVERY):
            raise Expired(f"readiness gate {shown(url)}")

    def file_appears(self, path: str, deadline: Deadline) -> bool:
        return self._wait(path, deadline, _LOOK_EVERY)

    def _wait(self, awaited: str, deadline: Deadline, step: float) -> bool:
        while True:
            self.probes.append(awaited)
            now = self._clock.monotonic()
            if self.ready.get(awaited, now + 1) <= now:
                return True
            if deadline.passed(now):
                return False
            self._clock.sleep(min(step, deadline.left(now)))
