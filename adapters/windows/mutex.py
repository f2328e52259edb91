"""One call at a time changes the networks of a Windows host: a mutex by name, the original's own.

Windows frees it when its holder ends, and says so to the next one, which goes on like any other: whatever the dead
process left is what each plan begins by looking at.

Invariant: the block runs only while the mutex is held.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod

from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any

    from ports.clock import Clock, Deadline

NETWORK_MUTEX = "TigeraCalicoCNINetworkMutex"
LIMIT, PAUSE = 90.0, 0.05  # seconds: the original's
_ACQUIRED, _ABANDONED, _TIMEOUT = 0x0, 0x80, 0x102


class Mutex(ABC):
    @abstractmethod
    def held(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Hold it for a `with` block. `Expired` if it is not had by the deadline, and within 90 seconds."""


class NamedMutex(Mutex):
    """`kernel32` is the library that has it; without one it is loaded when it is needed."""

    def __init__(self, clock: Clock, name: str = NETWORK_MUTEX, kernel32: Any = None) -> None:
        self._clock = clock
        self._name = name
        self._kernel32 = kernel32

    def held(self, deadline: Deadline) -> _Held:
        if self._kernel32 is None:
            self._kernel32 = _load()
        return _Held(self._kernel32, self._name, self._clock, deadline)


def _load() -> Any:
    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]  # Windows has it
    kernel32.CreateMutexW.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_wchar_p)
    kernel32.CreateMutexW.restype = ctypes.c_void_p
    kernel32.WaitForSingleObject.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
    kernel32.WaitForSingleObject.restype = ctypes.c_uint32
    kernel32.ReleaseMutex.argtypes = kernel32.CloseHandle.argtypes = (ctypes.c_void_p,)
    return kernel32


class _Held:
    def __init__(self, kernel32: Any, name: str, clock: Clock, deadline: Deadline) -> None:
        self._kernel32 = kernel32
        self._name = name
        self._clock = clock
        self._deadline = deadline.sooner(clock.monotonic(), LIMIT)
        self._handle: Any = None

    def __enter__(self) -> None:
        self._handle = self._kernel32.CreateMutexW(None, False, self._name)
        if not self._handle:
            raise Refused(f"cannot open the mutex {self._name}")
        try:
            self._wait()
        except BaseException:
            self._kernel32.CloseHandle(self._handle)
            raise

    def _wait(self) -> None:
        """In short waits, between which a signal can end the call."""
        while True:
            answer = self._kernel32.WaitForSingleObject(self._handle, int(PAUSE * 1000))
            if answer in (_ACQUIRED, _ABANDONED):
                return
            if answer != _TIMEOUT:
                raise Refused(f"cannot wait for the mutex {self._name}")
            if self._deadline.passed(self._clock.monotonic()):
                raise Expired(f"the mutex {self._name}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kernel32.ReleaseMutex(self._handle)
        self._kernel32.CloseHandle(self._handle)
