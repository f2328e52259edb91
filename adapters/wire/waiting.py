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

from time import monotonic

try:
    from select import POLLIN, POLLOUT, poll
except ImportError:  # on Windows
    from adapters.wire.selecting import POLLIN, POLLOUT, poll  # type: ignore[assignment]  # what it stands for

from adapters.wire.faults import AllFailed, Fault, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any, TypeAlias, TypeVar

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


def race(rivals: Sequence[Work[T]], head_start: float) -> Work[T]:
    """The result of the first that has one; the others are closed.

    Each begins that many seconds after the one before, or as soon as none is running. `AllFailed` when each has ended
    in a `Fault`.
    """
    waiting = list(rivals)
    field = _Field()
    try:
        while waiting or field.running:
            if waiting:
                field.step(waiting.pop(0), None)
            next_start = monotonic() + head_start if waiting else FOREVER
            while field.running and field.arrived is None and monotonic() < next_start:
                field.resume((yield field.wait(next_start)))
            if field.arrived is not None:
                result: T = field.arrived.value
                return result
    finally:
        for work in (*waiting, *field.running):
            work.close()
    raise AllFailed([field.faults[work] for work in rivals])


class _Field:
    """Those that run, what they wait for, and what has become of the others."""

    def __init__(self) -> None:
        self.running: dict[Work[Any], Wait] = {}
        self.faults: dict[Work[Any], Fault] = {}
        self.arrived: StopIteration | None = None

    def step(self, work: Work[Any], here: Sequence[int] | None) -> None:
        """With None the first one."""
        self.running.pop(work, None)
        try:
            self.running[work] = next(work) if here is None else work.send(here)
        except StopIteration as ended:
            self.arrived = ended
        except Fault as fault:
            self.faults[work] = fault

    def wait(self, next_start: float) -> Wait:
        wanted = [one for wanted, _ in self.running.values() for one in wanted]
        return wanted, min(next_start, *[moment for _, moment in self.running.values()])

    def resume(self, here: Sequence[int]) -> None:
        """Those that can go on, until one has arrived."""
        for work, (wanted, moment) in list(self.running.items()):
            ours = [descriptor for descriptor, _ in wanted if descriptor in here]
            if self.arrived is None and (ours or monotonic() >= moment):
                self.step(work, ours)


def ready(wanted: Sequence[tuple[int, int]], seconds: float) -> list[int]:
    """The descriptors of which something that was wanted, or an error, is there within that time."""
    poller = poll()
    for descriptor, events in wanted:
        poller.register(descriptor, events)
    milliseconds = int(min(seconds, _LONGEST) * 1000) + 1 if seconds > 0 else 0
    return [descriptor for descriptor, _ in poller.poll(milliseconds)]
