"""Waiting for descriptors with a deadline, for one thing or for several at once.

What talks over a socket is written as work: a generator that yields what it waits for, and is resumed when it may go
on. The same work can thus be waited for alone (`drive`) or together with its rivals. No thread, and no callback.

    def hello(stream: Stream) -> Work[bytes]:
        yield from stream.send(b"hello")
        return (yield from stream.receive())

    answer = drive(hello(stream), monotonic() + 5)

Invariant: work that is given up is closed, so what it holds in `finally` is let go of before anybody hears of it.
"""

from __future__ import annotations

from select import POLLIN, POLLOUT, poll
from time import monotonic

from adapters.wire.faults import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import TypeAlias, TypeVar

    T = TypeVar("T")

    Wait: TypeAlias = tuple[Sequence[tuple[int, int]], float]
    """Descriptors and the events of each, and the latest moment on the monotonic clock."""
    Work: TypeAlias = Generator[Wait, Sequence[int], T]
    """It is sent the descriptors that are ready; none when its moment has come. Being resumed for nothing is normal."""

READABLE, WRITABLE = POLLIN, POLLOUT
FOREVER = float("inf")
_LONGEST = 3600.0  # seconds that one system call waits; poll takes no infinity


def drive(work: Work[T], ends: float) -> T:
    """The result of the work, on its own. `TimedOut` at that moment of the monotonic clock."""
    try:
        wait = next(work)
        while True:
            now = monotonic()
            if now >= ends:
                raise TimedOut("no answer in time")
            wait = work.send(ready(wait[0], min(ends, wait[1]) - now))
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        work.close()


def ready(wanted: Sequence[tuple[int, int]], seconds: float) -> list[int]:
    """The descriptors of which something that was wanted, or an error, is there within that time."""
    poller = poll()
    for descriptor, events in wanted:
        poller.register(descriptor, events)
    milliseconds = max(0.0, min(seconds, _LONGEST)) * 1000
    return [descriptor for descriptor, _ in poller.poll(int(milliseconds) + 1)]
