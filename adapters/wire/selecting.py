"""`select.poll` for Windows, as far as it is used here: sockets alone, and one wait after another.

Invariant: a descriptor is said to be ready exactly where `poll` says so; a connection that was refused is, as well.
"""

from __future__ import annotations

from select import select
from time import sleep

POLLIN, POLLOUT, _POLLERR = 1, 4, 8


class poll:  # noqa: N801 - what it stands for has that name
    def __init__(self) -> None:
        self._wanted: dict[int, int] = {}

    def register(self, descriptor: int, events: int) -> None:
        self._wanted[descriptor] = self._wanted.get(descriptor, 0) | events

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        seconds = max(milliseconds, 0) / 1000
        reading = [one for one, events in self._wanted.items() if events & POLLIN]
        writing = [one for one, events in self._wanted.items() if events & POLLOUT]
        if not self._wanted:  # for which Windows has no patience
            sleep(seconds)
            return []
        readable, writable, failed = select(reading, writing, writing, seconds)
        found: dict[int, int] = {}
        for event, ready in ((POLLIN, readable), (POLLOUT, writable), (_POLLERR, failed)):
            for one in ready:
                found[one] = found.get(one, 0) | event
        return list(found.items())
