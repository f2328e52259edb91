"""`select.poll` for the standard input and output of a Windows process, as far as it is used there: one descriptor.

Windows cannot wait for an anonymous pipe, but can be asked how much is in it; so waiting to read is asking every few
milliseconds. How much room is left in a pipe it does not say: a writer waits for its reader as long as that takes.

Invariant: a descriptor that cannot be asked is said to be ready, so that reading or writing it tells what is wrong.
"""

from __future__ import annotations

import _winapi
import msvcrt
from time import monotonic, sleep

POLLIN, POLLOUT = 1, 4
_NAP = 0.002  # seconds
_PIPE = 3  # FILE_TYPE_PIPE


class poll:  # noqa: N801 - what it stands for has that name
    def register(self, descriptor: int, events: int) -> None:
        self._descriptor, self._events = descriptor, events

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        ends = monotonic() + milliseconds / 1000
        while not self._ready():
            if monotonic() >= ends:
                return []
            sleep(_NAP)
        return [(self._descriptor, self._events)]

    def _ready(self) -> bool:
        if self._events != POLLIN:
            return True
        try:
            handle = msvcrt.get_osfhandle(self._descriptor)  # type: ignore[attr-defined]  # of Windows
            if _winapi.GetFileType(handle) != _PIPE:  # type: ignore[attr-defined]  # of Windows
                return True
            return bool(_winapi.PeekNamedPipe(handle, 0)[0])  # type: ignore[attr-defined]  # of Windows
        except OSError:  # the writer has gone: reading says so
            return True
