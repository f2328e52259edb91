"""Changes of folders as the kernel tells them (inotify).

A watch is on the folder itself, not on its name or a file in it: Kubernetes swaps links in a mounted secret's folder,
so a file there is a new one each time. A watch goes with its folder, so one that is removed and made again is watched
anew by the next look.

Invariant: no look and no wait fails. What the kernel cannot watch is only waited for.
"""

from __future__ import annotations

import os
import select
import sys

from adapters.linux.process.system_calls import inotify_add_watch, inotify_init
from ports.folder_watch import QUIET, FolderWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ports.clock import Clock

_ONLY_A_FOLDER = 0x0100_0000
_MODIFIED, _ATTRIBUTES, _MOVED_OUT, _MOVED_IN, _CREATED, _DELETED, _SELF_DELETED, _SELF_MOVED = (
    0x2,
    0x4,
    0x40,
    0x80,
    0x100,
    0x200,
    0x400,
    0x800,
)
_CHANGES = _MODIFIED | _ATTRIBUTES | _MOVED_OUT | _MOVED_IN | _CREATED | _DELETED | _SELF_DELETED | _SELF_MOVED
_WATCH_ENDED = 0x8000
_LOST_COUNT = -1  # in place of a watch's number: there were more changes than the queue has room for
_HEAD = 16  # bytes of an event before its name
_MOST = 1 << 16  # bytes of events to read at once; one takes less than 300
_LONGEST_POLL = 3600.0  # seconds; the system call takes milliseconds in an int


class InotifyWatch(FolderWatch):
    def __init__(self, folders: Sequence[str], clock: Clock) -> None:
        self._folders = tuple(folders)
        self._clock = clock
        self._queue = -1
        self._watched: dict[int, str] = {}

    def unwatched(self) -> Mapping[str, str]:
        refused: dict[str, str] = {}
        for folder in self._folders:
            if folder in self._watched.values():
                continue
            try:
                self._add(folder)
            except (OSError, ValueError, ImportError, AttributeError) as error:  # ValueError: a NUL in the path
                refused[folder] = getattr(error, "strerror", None) or str(error)
        return refused

    def wait(self, seconds: float) -> tuple[str, ...]:
        ends = self._clock.monotonic() + seconds
        changed: dict[str, None] = {}
        until = ends
        while True:
            left = min(until - self._clock.monotonic(), _LONGEST_POLL)
            if self._is_readable(max(0.0, left)):
                changed.update(dict.fromkeys(self._changed()))
                if changed:
                    until = min(ends, self._clock.monotonic() + QUIET)
            elif self._clock.monotonic() >= until:
                return tuple(changed)

    def close(self) -> None:
        queue, self._queue = self._queue, -1
        self._watched.clear()
        if queue >= 0:
            os.close(queue)

    def _add(self, folder: str) -> None:
        if self._queue < 0:
            self._queue = inotify_init(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watched[inotify_add_watch(self._queue, folder, _CHANGES | _ONLY_A_FOLDER)] = folder

    def _is_readable(self, seconds: float) -> bool:
        waiting = select.poll()
        if self._queue >= 0:
            waiting.register(self._queue, select.POLLIN)
        return bool(waiting.poll(-(-seconds * 1000 // 1)))  # upwards, or the last millisecond would be spent spinning

    def _changed(self) -> Iterator[str]:
        try:
            events = os.read(self._queue, _MOST)
        except BlockingIOError:
            return
        at = 0
        while at < len(events):
            number, mask = _number(events, at, signed=True), _number(events, at + 4)
            at += _HEAD + _number(events, at + 12)
            if number == _LOST_COUNT:
                yield from self._watched.values()
            elif number in self._watched:
                yield self._watched.pop(number) if mask & (_WATCH_ENDED | _SELF_MOVED) else self._watched[number]


def _number(events: bytes, at: int, *, signed: bool = False) -> int:
    return int.from_bytes(events[at : at + 4], sys.byteorder, signed=signed)
