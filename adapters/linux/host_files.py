"""The host's files by system calls: what is new is complete, labelled and on the disk before it is moved.

No descriptor that can write to a file is open when the file gets its final name, so
that a runtime may execute it at once (the kernel refuses a file that somebody is writing: ETXTBSY).

Invariant: as `ports.host_files`; every change goes to the disk before the next one that builds on it.
"""

from __future__ import annotations

import os
from errno import EMLINK, EOPNOTSUPP, EPERM, EXDEV
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG, filemode

from adapters.linux.files import make_directory, reason
from adapters.linux.process.system_calls import copy_attribute
from adapters.linux.stages import GONE, Held, is_stage, open_stage, remove_tree, stage_in, sync
from adapters.regular_file import read_regular
from ports.host_files import FILE, FOLDER, LINK, OTHER, STAGE, STAGE_END, HostFileError, HostFiles, Look
from ports.node import MissingFile

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_NO_LINK = (EPERM, EOPNOTSUPP, EMLINK, EXDEV)  # file systems without hard links; kernels that forbid this one
_PIECE = 1 << 20
_COMPARED = 64_000  # bytes at a time, as in the original
_LABEL = "security.selinux"


class LinuxHostFiles(HostFiles):
    def __init__(self) -> None:
        self._stages: dict[str, int] = {}  # path → descriptor that holds the lock

    def look(self, path: str, *, follow: bool = False) -> Look | None:
        try:
            found = os.stat(path) if follow else os.lstat(path)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in GONE:
                return None
            raise _failed("stat", path, error) from error
        return Look(_kind(found.st_mode), found.st_size, S_IMODE(found.st_mode))

    def read(self, path: str) -> bytes:
        try:
            return read_regular(path)
        except OSError as error:
            if error.errno in GONE:
                raise MissingFile(path) from None
            raise HostFileError("open", path, error.strerror or str(error)) from error

    def names(self, folder: str) -> tuple[str, ...]:
        try:
            found = sorted(os.listdir(folder))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in GONE:
                raise MissingFile(folder) from None
            raise _failed("open", folder, error) from error
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
            raise _failed("read", error.filename or source, error) from error

    def digest(self, path: str) -> str:
        found = self.look(path)
        if found is None:
            return ""
        from domain.bounded_name import sha512

        state = sha512()
        try:
            if found.kind != FILE:
                return f"{found.kind}: {os.readlink(path)}" if found.kind == LINK else found.kind
            with _Opened(path, _READ | os.O_NOFOLLOW) as descriptor:
                while piece := os.read(descriptor, _PIECE):
                    state.update(piece)
        except OSError as error:
            raise _failed("read", path, error) from error
        return f"sha512:{state.hexdigest()}"

    def why_unwritable(self, folder: str) -> str:
        probe = stage_in(folder)
        try:
            os.mkdir(probe, 0o700)
            remove_tree(probe)  # which another installer may have taken for a leftover and removed
        except (OSError, ValueError) as error:
            return reason(error)
        return ""

    def identity(self, folder: str) -> str:
        try:
            found = os.stat(folder)
        except (OSError, ValueError):
            return ""
        return f"{found.st_dev}:{found.st_ino}" if S_ISDIR(found.st_mode) else ""

    def make_folder(self, path: str, mode: int = 0o755) -> None:
        try:
            above = os.path.dirname(path)
            make_directory(above)
            if not os.path.isdir(path):
                os.mkdir(path, mode)
                os.chmod(path, mode)
                sync(above)
        except (OSError, ValueError) as error:
            raise _failed("mkdir", path, error) from error

    def held(self, folder: str) -> Held:
        return Held(folder)

    def open_stage(self, folder: str) -> str:
        try:
            stage, lock = open_stage(folder)
        except (OSError, ValueError) as error:
            raise _failed("mkdir", f"{folder}/{STAGE}*{STAGE_END}", error) from error
        self._stages[stage] = lock
        return stage

    def close_stage(self, stage: str) -> None:
        try:
            self.remove_tree(stage)
        finally:
            os.close(self._stages.pop(stage))

    def write(self, path: str, data: bytes, mode: int, like: str = "") -> None:
        with _Fresh(path, like) as descriptor:
            _write_all(descriptor, data)
            os.fchmod(descriptor, mode)

    def copy(self, source: str, path: str, like: str = "") -> None:
        try:
            origin = os.open(source, _READ)
        except (OSError, ValueError) as error:
            raise _failed("open", source, error) from error
        try:
            found = os.fstat(origin)
            if not S_ISREG(found.st_mode):
                name = os.path.basename(source)
                raise HostFileError(
                    "copy", source, f'CopyFile: non-regular source file {name} ("{filemode(found.st_mode)}")'
                )
            with _Fresh(path, like) as descriptor:
                while piece := os.read(origin, _PIECE):
                    _write_all(descriptor, piece)
                os.fchmod(descriptor, S_IMODE(found.st_mode))
        finally:
            os.close(origin)

    def keep(self, path: str, kept: str) -> None:
        """By a hard link, since the file is going to be replaced and not changed; a copy where links cannot be had."""
        try:
            try:
                os.link(path, kept, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_LINK:
                    raise
                self._copy_whatever_it_is(path, kept)
            sync(os.path.dirname(kept))
        except (OSError, ValueError) as error:
            raise _failed("link", path, error) from error

    def _copy_whatever_it_is(self, path: str, kept: str) -> None:
        found = os.lstat(path)
        if S_ISLNK(found.st_mode):
            os.symlink(os.readlink(path), kept)
        else:
            self.copy(path, kept, like=path)
        os.chown(kept, found.st_uid, found.st_gid, follow_symlinks=False)

    def move(self, path: str, target: str) -> None:
        try:
            os.rename(path, target)
            sync(os.path.dirname(target))
        except (OSError, ValueError) as error:
            raise _failed("rename", target, error) from error

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
            sync(os.path.dirname(path))
        except (OSError, ValueError) as error:
            if not (isinstance(error, OSError) and error.errno in GONE):
                raise _failed("remove", path, error) from error

    def remove_tree(self, path: str) -> None:
        try:
            remove_tree(path)
        except (OSError, ValueError) as error:
            raise _failed("remove", path, error) from error


class _Opened:
    """`with _Opened(path, flags) as descriptor:`"""

    def __init__(self, path: str, flags: int) -> None:
        self._descriptor = os.open(path, flags)

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_ended: object) -> None:
        os.close(self._descriptor)


class _Fresh:
    """A file that is being made: complete, labelled and on the disk when the block ends, gone if it fails."""

    def __init__(self, path: str, like: str) -> None:
        self._path = path
        self._like = like

    def __enter__(self) -> int:
        try:
            self._descriptor = os.open(self._path, _CREATE, 0o600)
        except (OSError, ValueError) as error:
            raise _failed("open", self._path, error) from error
        return self._descriptor

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            try:
                if error is None:
                    _take_label(self._like, self._descriptor)
                    os.fsync(self._descriptor)
            finally:
                os.close(self._descriptor)
        except OSError as late:
            error = late
        if error is not None:
            os.unlink(self._path)
        if isinstance(error, OSError):
            raise _failed("write", self._path, error) from error


def _failed(operation: str, path: str, error: OSError | ValueError) -> HostFileError:
    return HostFileError(operation, path, reason(error))


def _kind(mode: int) -> str:
    if S_ISREG(mode):
        return FILE
    return FOLDER if S_ISDIR(mode) else LINK if S_ISLNK(mode) else OTHER


def _equal(source: str, target: str) -> bool:
    with _Opened(source, _READ) as one, _Opened(target, _READ | os.O_NOFOLLOW) as other:
        while True:
            piece = os.read(one, _COMPARED)
            if piece != os.read(other, _COMPARED):
                return False
            if not piece:
                return True


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _take_label(like: str, descriptor: int) -> None:
    """A host under SELinux refuses to execute, or to read, what has another label than it shall have.

    A label that may not be set is no reason to stop: new files get their folder's, which is right as a rule.
    """
    if like:
        try:  # noqa: SIM105 - contextlib costs 4 ms to load
            copy_attribute(like, descriptor, _LABEL)
        except OSError:
            pass
