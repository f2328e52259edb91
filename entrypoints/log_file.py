"""A log file that many short-lived processes append to and rotate together.

Each record is one write to a descriptor opened for appending, so records of different processes do not mix. When the
file is full, whoever holds the lock on its directory renames it; the others go on writing to the renamed file, so
nothing is lost. Rotated files keep the original's names but are not compressed (the standard library has no zstd).

A file made here is readable by its owner and group alone: names of pods and addresses are in it. One that exists keeps
its mode, and hands it on when it is rotated, since an operator may have opened it to others. What has a second name (a
hard link) is not written: it may be somebody else's file.

On Windows modes say nothing, since files have access lists that they inherit, and a file that another process has open
cannot be renamed: the file is rotated by a process that is alone with it, and grows until then.

Invariant: `write` never raises, and never blocks on another process.
"""

from __future__ import annotations

import os
import stat
import time

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_MEGABYTE = 1 << 20
_DAY = 86_400
_UNIX = os.name != "nt"
_OPEN = os.O_WRONLY | os.O_APPEND
if _UNIX:
    _OPEN |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
else:
    _OPEN |= getattr(os, "O_BINARY", 0)
_REASON = "-size"
_NEW_MODE = 0o640
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Limits(Value):
    """Bytes in the file, seconds to keep rotated ones, and how many of them."""

    size: int
    age: int
    count: int

    @classmethod
    def of(cls, megabytes: int, days: int, count: int) -> Self:
        """From the configuration's numbers; what is not positive means the default."""
        return cls(
            (megabytes if megabytes > 0 else 100) * _MEGABYTE,
            (days if days > 0 else 30) * _DAY,
            count if count > 0 else 10,
        )


class LogFile:
    def __init__(self, path: str, limits: Limits) -> None:
        """OSError, ValueError or RecursionError when the file cannot be opened; its directory is made if need be."""
        path = path if _UNIX else path.replace("\\", "/")
        self._path = path
        self._directory, _, name = path.rpartition("/")
        self._directory = self._directory or ("/" if path.startswith("/") else ".")
        stem, dot, extension = name.rpartition(".")
        self._stem, self._extension = (stem, dot + extension) if dot else (name, "")
        self._limits = limits
        _make_directory(self._directory)
        self._descriptor = _open(path, _NEW_MODE)
        status = os.fstat(self._descriptor)
        self._mode = status.st_mode & 0o666
        self.risk = _risk(status)  # what an operator should know of the file, "" if nothing

    def write(self, line: bytes) -> None:
        """Append a record; what does not fit on the disk is lost."""
        try:
            if os.fstat(self._descriptor).st_size + len(line) > self._limits.size:
                self._rotate(len(line))
        except (OSError, ValueError, OverflowError):  # the latter two: an age beyond all dates
            pass  # then the file grows
        try:  # noqa: SIM105 - contextlib costs 4 ms to load
            os.write(self._descriptor, line)
        except OSError:
            pass

    def _rotate(self, more: int) -> None:
        if not _UNIX:
            os.close(self._descriptor)
            try:
                self._rotate_locked(more)
            finally:
                self._descriptor = _open(self._path, self._mode)
            return
        import fcntl  # only now: most processes never rotate

        lock = os.open(self._directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return  # somebody else is at it
            self._rotate_locked(more)
        finally:
            os.close(lock)

    def _rotate_locked(self, more: int) -> None:
        """Another process may have rotated while this one still wrote to the old file."""
        try:
            size = os.lstat(self._path).st_size
        except FileNotFoundError:
            size = 0
        if size and size + more > self._limits.size:
            os.rename(self._path, self._free_name())
        if _UNIX:
            fresh = _open(self._path, self._mode)
            os.close(self._descriptor)
            self._descriptor = fresh
        self._prune()

    def _dated(self, milliseconds: int) -> str:
        date = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(milliseconds // 1000))
        return f"{self._stem}-{date}.{milliseconds % 1000:03d}{_REASON}{self._extension}"

    def _free_name(self) -> str:
        """Later than all others, because `_prune` takes names for ages; files rotate more than once a millisecond."""
        taken = [name.removesuffix(".zst") for name in self._rotated()]
        newest = max(taken, default="")
        now = time.time_ns() // 1_000_000
        for _ in range(1000):
            if self._dated(now) > newest:
                break
            now += 1
        while self._dated(now) in taken:  # the clock has been set back
            now += 1
        return f"{self._directory}/{self._dated(now)}"

    def _rotated(self) -> list[str]:
        """Names of the rotated files, the oldest first; the original compresses them."""
        length = len(self._dated(0))
        return sorted(
            name
            for name in os.listdir(self._directory)
            if name.startswith(self._stem + "-")
            and len(name.removesuffix(".zst")) == length
            and name.removesuffix(".zst").endswith(_REASON + self._extension)
        )

    def _prune(self) -> None:
        oldest = self._dated((int(time.time()) - self._limits.age) * 1000)
        rotated = self._rotated()
        for name in rotated[: -self._limits.count] + [name for name in rotated if name < oldest]:
            try:  # noqa: SIM105 - contextlib costs 4 ms to load
                os.unlink(f"{self._directory}/{name}")
            except FileNotFoundError:
                pass


def _make_directory(path: str) -> None:
    """With all its parents, mode 0755 whatever the umask."""
    if os.path.isdir(path):
        return
    parent = path.rstrip("/").rpartition("/")[0]
    if parent:
        _make_directory(parent)
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    os.chmod(path, 0o755)  # noqa: S103 - the original's mode; other users may read where the log is


def _open(path: str, mode: int) -> int:
    """Open for appending; a new file gets that mode whatever the umask. Never a link of either kind, never waits."""
    for _ in range(10):  # others create it and rename it meanwhile
        try:
            descriptor = os.open(path, _OPEN)
        except FileNotFoundError:
            pass
        else:
            return _unlinked(descriptor)
        try:
            descriptor = os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            continue
        if _UNIX:
            os.fchmod(descriptor, mode)
        return descriptor
    raise OSError("it comes and goes")


def _unlinked(descriptor: int) -> int:
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        os.close(descriptor)
        raise OSError(f"it has {status.st_nlink} names (hard links), so it may be another program's; remove it")
    return descriptor


def _risk(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode) or not _UNIX:
        return ""
    if status.st_uid not in (0, os.geteuid()):
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & _OTHERS_WRITE:
        return f"others may write it (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def why(path: str, error: Exception) -> str:
    """The trouble with the log file in an operator's words."""
    from errno import ELOOP

    from adapters.linux.files import reason

    if not isinstance(error, OSError):
        return "it cannot be the name of a file"
    if error.errno is None:
        return str(error)
    if error.errno == ELOOP and os.path.islink(path):
        return "it is a symbolic link, which is not followed; name the file it leads to, or remove it"
    return reason(error)
