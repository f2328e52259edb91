"""The host lock: `flock(2)` on the file that the original's processes use too.

The kernel frees it when the holder dies, so nothing is ever left behind and the file stays. Waiting polls: a blocking
`flock` could only be given a limit by a timer signal, and signals belong to the entrypoint.

Notes stand in the file itself, which nobody else reads: so a host has one file, which the kernel keeps in memory, and
which is gone after a restart. They are used only where nobody but this user can have written them.

Invariant: the block runs, locked if at all possible, unless `strict` forbids it to run beside what is no lock file; a
file made here has the mode written here whatever the umask is, and of what was there before only notes are changed.
Notes that were cut short are none.
"""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from stat import S_ISREG

from adapters.linux.files import make_directory, reason
from ports.errors import BadConfiguration
from ports.lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from ports.clock import Clock, Deadline
    from ports.log import Log

DEFAULT_PATH = "/var/run/calico/ipam.lock"
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NEW = _FLAGS | os.O_CREAT | os.O_EXCL
_EXISTING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_FILE_MODE = 0o600
_OTHERS = 0o077
_MOST = 1 << 18  # octets of notes
_END = "end of notes\n"
_FIRST_SLEEP = 0.0005
_LONGEST_SLEEP = 0.01


class LockFile(Lock):
    """`path` "" means the original's own lock file."""

    def __init__(self, path: str, clock: Clock, log: Log) -> None:
        self.path = path or DEFAULT_PATH
        self.clock = clock
        self.log = log
        self._kept: set[str] = set()

    def held(self, deadline: Deadline, *, strict: bool = False) -> _HeldFile:
        return _HeldFile(self, deadline, _open, strict=strict)

    def keep(self, path: str, deadline: Deadline) -> bool:
        if not os.path.exists(path):
            self.log.debug("Nothing there to lock", path=path)
            return False
        # Nobody leaves this block: the descriptor is closed, and the lock freed, when the process ends.
        if (
            path not in self._kept
            and _HeldFile(LockFile(path, self.clock, self.log), deadline, _open_existing, strict=False).__enter__()
        ):
            self._kept.add(path)
        return path in self._kept

    def notes(self) -> str | None:
        try:
            fd = os.open(self.path, _FLAGS & ~os.O_RDWR | os.O_RDONLY)
        except FileNotFoundError:
            return ""
        except (OSError, ValueError):
            return None
        try:
            if not _is_for_notes(fd):
                return None
            text = os.read(fd, _MOST + 1).decode()
        except (OSError, ValueError):
            return ""
        finally:
            os.close(fd)
        return text[: -len(_END)] if text.endswith(_END) and "\0" not in text else ""

    def leave(self, notes: str) -> None:
        octets = f"{notes}{_END}".encode("utf-8", "replace")
        try:
            fd = os.open(self.path, _FLAGS)
            try:
                if _is_for_notes(fd):
                    os.ftruncate(fd, 0)  # what was there is out of date in any case
                    os.write(fd, octets if len(octets) <= _MOST else b"")
            finally:
                os.close(fd)
        except (OSError, ValueError) as error:
            self.log.debug("Cannot leave notes in the lock", path=self.path, error=reason(error))


def _is_for_notes(fd: int) -> bool:
    """Whether it is a file that nobody but this user can read or write."""
    found = os.fstat(fd)
    return S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS


class _HeldFile:
    def __init__(self, lock: LockFile, deadline: Deadline, open_file: Callable[[str], int], *, strict: bool) -> None:
        self._lock = lock
        self._strict = strict
        self._open = open_file
        self._deadline = deadline
        self._fd = -1

    def __enter__(self) -> bool:
        lock = self._lock
        try:
            self._fd = self._open(lock.path)
            if self._wait():
                return True
            lock.log.warning("The lock is held by others for too long, going on without it", path=lock.path)
        except _NoLockFile as error:
            if self._strict:
                raise BadConfiguration(str(error)) from None
            lock.log.error("Going on without the lock", error=error)
        except (OSError, ValueError) as error:
            lock.log.warning("Cannot use the lock, going on without it", path=lock.path, error=reason(error))
        except BaseException:  # a termination signal while waiting
            self._close()
            raise
        self._close()
        return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            # Closing alone would not unlock while a child that is about to exec still has the descriptor.
            flock(self._fd, LOCK_UN)
        self._close()

    def _wait(self) -> bool:
        clock = self._lock.clock
        pause = _FIRST_SLEEP
        while True:
            try:
                flock(self._fd, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                now = clock.monotonic()
                if self._deadline.passed(now):
                    return False
                clock.sleep(min(pause, self._deadline.left(now)))
                pause = min(pause * 2, _LONGEST_SLEEP)
            else:
                return True

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _NoLockFile(Exception):
    """`str()` says what is in the lock's place, and what to do about it."""


def _open(path: str) -> int:
    """The host's lock file, made if need be. What exists already stays as it is, and must be a regular file."""
    try:
        return _create(path)
    except FileNotFoundError:
        make_directory(os.path.dirname(path))
        return _open(path)
    except FileExistsError:
        pass
    try:
        fd = os.open(path, _FLAGS)
    except OSError:
        _require_file(path, os.lstat(path).st_mode)
        raise
    try:
        _require_file(path, os.fstat(fd).st_mode)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _require_file(path: str, mode: int) -> None:
    if not S_ISREG(mode):
        from adapters.linux.files import kind_of

        why = f"{path}: it is {kind_of(mode)}, and only a regular file can be the IPAM lock"
        raise _NoLockFile(f'{why}; remove it, or set "ipam_lock_file" to another path')


def _create(path: str) -> int:
    fd = os.open(path, _NEW, _FILE_MODE)
    try:
        os.fchmod(fd, _FILE_MODE)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open_existing(path: str) -> int:
    return os.open(path, _EXISTING)
