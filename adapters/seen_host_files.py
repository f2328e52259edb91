"""What is there among a host's files: looks at them that change nothing. What is the same on every system.

How files are changed, and with which words an error says why not, each system says.

Invariant: a look is about the path itself, or what it leads to, as the port has it; it never waits for anybody.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from errno import ENOENT, ENOTDIR
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG

from ports.host_files import FILE, FOLDER, LINK, OTHER, STAGE, STAGE_END, HostFileError, HostFiles, Look
from ports.node import MissingFile

GONE = (ENOENT, ENOTDIR)
_PIECE = 1 << 20
_COMPARED = 64_000  # bytes at a time, as in the original
if hasattr(os, "O_NONBLOCK"):
    READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
else:  # on Windows, which has none of these; Python itself closes what it opens in programs that are started
    READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_READ_ITSELF = READ | getattr(os, "O_NOFOLLOW", 0)


class SeenHostFiles(HostFiles):
    @abstractmethod
    def _why(self, error: OSError | ValueError) -> str:
        """Why a system call failed, in Go's words."""

    def _failed(self, operation: str, path: str, error: OSError | ValueError) -> HostFileError:
        return HostFileError(operation, path, self._why(error))

    def look(self, path: str, *, follow: bool = False) -> Look | None:
        try:
            found = os.stat(path) if follow else os.lstat(path)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in GONE:
                return None
            raise self._failed("stat", path, error) from error
        return Look(_kind(found.st_mode), found.st_size, S_IMODE(found.st_mode))

    def names(self, folder: str) -> tuple[str, ...]:
        try:
            found = sorted(os.listdir(folder))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in GONE:
                raise MissingFile(folder) from None
            raise self._failed("open", folder, error) from error
        return tuple([name for name in found if not is_stage(name)])

    def same(self, source: str, target: str) -> bool:
        from_there = self.look(source, follow=True)
        if from_there is None:
            raise HostFileError("stat", source, "no such file or directory")
        if self.look(target) != from_there or from_there.kind != FILE:
            return False
        try:
            return _equal(source, target)
        except OSError as error:
            raise self._failed("read", error.filename or source, error) from error

    def digest(self, path: str) -> str:
        found = self.look(path)
        if found is None:
            return ""
        from domain.bounded_name import sha512

        state = sha512()
        try:
            if found.kind != FILE:
                return f"{found.kind}: {os.readlink(path)}" if found.kind == LINK else found.kind
            with _Opened(path, _READ_ITSELF) as descriptor:
                while piece := os.read(descriptor, _PIECE):
                    state.update(piece)
        except OSError as error:
            raise self._failed("read", path, error) from error
        return f"sha512:{state.hexdigest()}"

    def identity(self, folder: str) -> str:
        try:
            found = os.stat(folder)
        except (OSError, ValueError):
            return ""
        return f"{found.st_dev}:{found.st_ino}" if S_ISDIR(found.st_mode) else ""


def is_stage(name: str) -> bool:
    return name.startswith(STAGE) and name.endswith(STAGE_END)


def stage_in(folder: str) -> str:
    """A path for a new one."""
    return f"{folder}/{STAGE}{os.urandom(8).hex()}{STAGE_END}"


class _Opened:
    """`with _Opened(path, flags) as descriptor:`"""

    def __init__(self, path: str, flags: int) -> None:
        self._descriptor = os.open(path, flags)

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_ended: object) -> None:
        os.close(self._descriptor)


def _kind(mode: int) -> str:
    if S_ISREG(mode):
        return FILE
    return FOLDER if S_ISDIR(mode) else LINK if S_ISLNK(mode) else OTHER


def _equal(source: str, target: str) -> bool:
    with _Opened(source, READ) as one, _Opened(target, _READ_ITSELF) as other:
        while True:
            piece = os.read(one, _COMPARED)
            if piece != os.read(other, _COMPARED):
                return False
            if not piece:
                return True
