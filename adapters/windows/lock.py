"""The host lock on Windows: the first octet of the file that the original's processes lock, too.

Windows frees it when the holder ends. A container has no file to lock, so one call at a time for it is kept by a mutex
of its name.

Invariant: the block runs, locked if at all possible, unless `strict` forbids it to run beside what is no lock file.
"""

from __future__ import annotations

import os
from typing import Any

from adapters.windows.mutex import NamedMutex
from domain.windows.names import NO_NAMESPACE
from ports.errors import BadConfiguration, Expired, Refused
from ports.lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from adapters.windows.mutex import Mutex
    from ports.clock import Clock, Deadline
    from ports.log import Log

DEFAULT_PATH = r"c:\CalicoWindows\ipam.lock"
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_PAUSE = 0.01


class WindowsLock(Lock):
    """`path` "" means the original's own lock file. `locking` is what Python has on Windows as `msvcrt`."""

    def __init__(
        self,
        path: str,
        clock: Clock,
        log: Log,
        locking: Any = None,
        mutex: Callable[[str], Mutex] | None = None,
    ) -> None:
        self.path = path or DEFAULT_PATH
        self.clock = clock
        self.log = log
        self._locking = locking
        self._mutex = mutex or (lambda name: NamedMutex(clock, name))
        self._kept: dict[str, object] = {}

    @property
    def locking(self) -> Any:
        if self._locking is None:
            import msvcrt

            self._locking = msvcrt
        return self._locking

    def held(self, deadline: Deadline, *, strict: bool = False) -> _HeldFile:
        return _HeldFile(self, deadline, strict=strict)

    def keep(self, path: str, deadline: Deadline) -> bool:
        if path == NO_NAMESPACE or path in self._kept:  # what all sandboxes of dockershim have is nobody's
            return path in self._kept
        held = self._mutex(f"TortieContainer-{path}").held(deadline)
        try:
            held.__enter__()  # nobody leaves this block: Windows frees it when the process ends
        except (Expired, Refused) as error:
            self.log.warning("Going on without the container's lock", netns=path, error=error)
            return False
        self._kept[path] = held
        return True


class _HeldFile:
    def __init__(self, lock: WindowsLock, deadline: Deadline, *, strict: bool) -> None:
        self._lock = lock
        self._deadline = deadline
        self._strict = strict
        self._descriptor = -1

    def __enter__(self) -> bool:
        lock = self._lock
        if os.path.isdir(lock.path):
            self._refuse(
                f'{lock.path}: it is a folder, and only a regular file can be the IPAM lock; set "ipam_lock_file"'
            )
            return False
        try:
            os.makedirs(os.path.dirname(lock.path) or ".", exist_ok=True)
            self._descriptor = os.open(lock.path, _FLAGS, 0o600)
            if self._wait():
                return True
            lock.log.warning("The lock is held by others for too long, going on without it", path=lock.path)
        except (OSError, ValueError) as error:
            lock.log.warning("Cannot use the lock, going on without it", path=lock.path, error=error)
        except BaseException:  # a termination signal while waiting
            self._close()
            raise
        self._close()
        return False

    def _refuse(self, why: str) -> None:
        if self._strict:
            raise BadConfiguration(why)
        self._lock.log.error("Going on without the lock", error=why)

    def _wait(self) -> bool:
        lock = self._lock
        while not self._try():
            if self._deadline.passed(lock.clock.monotonic()):
                return False
            lock.clock.sleep(_PAUSE)
        return True

    def _try(self) -> bool:
        locking = self._lock.locking
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        try:
            locking.locking(self._descriptor, locking.LK_NBLCK, 1)
        except PermissionError:  # what Windows says of an octet that another process has locked
            return False
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor >= 0:
            locking = self._lock.locking
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            locking.locking(self._descriptor, locking.LK_UNLCK, 1)
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
