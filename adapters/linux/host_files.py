"""The host's files by system calls: what is new is complete, labelled and on the disk before it is moved.

No descriptor that can write to a file is open when the file gets its final name, so
that a runtime may execute it at once (the kernel refuses a file that somebody is writing: ETXTBSY).

Invariant: as `ports.host_files`; every change goes to the disk before the next one that builds on it.
"""

from __future__ import annotations

import os
from errno import EMLINK, EOPNOTSUPP, EPERM, EXDEV
from stat import S_IMODE, S_ISLNK, S_ISREG, filemode

from adapters.linux.files import make_directory, reason
from adapters.linux.process.system_calls import copy_attribute
from adapters.linux.stages import Held, open_stage, remove_tree, sync
from adapters.regular_file import read_regular
from adapters.seen_host_files import GONE, READ, SeenHostFiles, stage_in
from ports.host_files import STAGE, STAGE_END, HostFileError
from ports.node import MissingFile

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_NO_LINK = (EPERM, EOPNOTSUPP, EMLINK, EXDEV)  # file systems without hard links; kernels that forbid this one
_PIECE = 1 << 20
_LABEL = "security.selinux"


class LinuxHostFiles(SeenHostFiles):
    def __init__(self) -> None:
        self._stages: dict[str, int] = {}  # path → descriptor that holds the lock

    def _why(self, error: OSError | ValueError) -> str:
        return reason(error)

    def read(self, path: str) -> bytes:
        try:
            return read_regular(path)
        except OSError as error:
            if error.errno in GONE:
                raise MissingFile(path) from None
            raise HostFileError("open", path, error.strerror or str(error)) from error

    def why_unwritable(self, folder: str) -> str:
        probe = stage_in(folder)
        try:
            os.mkdir(probe, 0o700)
            remove_tree(probe)  # which another installer may have taken for a leftover and removed
        except (OSError, ValueError) as error:
            return reason(error)
        return ""

    def make_folder(self, path: str, mode: int = 0o755) -> None:
        try:
            above = os.path.dirname(path)
            make_directory(above)
            if not os.path.isdir(path):
                os.mkdir(path, mode)
                os.chmod(path, mode)
                sync(above)
        except (OSError, ValueError) as error:
            raise self._failed("mkdir", path, error) from error

    def held(self, folder: str) -> Held:
        return Held(folder)

    def open_stage(self, folder: str) -> str:
        try:
            stage, lock = open_stage(folder)
        except (OSError, ValueError) as error:
            raise self._failed("mkdir", f"{folder}/{STAGE}*{STAGE_END}", error) from error
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
            origin = os.open(source, READ)
        except (OSError, ValueError) as error:
            raise self._failed("open", source, error) from error
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
            raise self._failed("link", path, error) from error

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
            raise self._failed("rename", target, error) from error

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
            sync(os.path.dirname(path))
        except (OSError, ValueError) as error:
            if not (isinstance(error, OSError) and error.errno in GONE):
                raise self._failed("remove", path, error) from error

    def remove_tree(self, path: str) -> None:
        try:
            remove_tree(path)
        except (OSError, ValueError) as error:
            raise self._failed("remove", path, error) from error


class _Fresh:
    """A file that is being made: complete, labelled and on the disk when the block ends, gone if it fails."""

    def __init__(self, path: str, like: str) -> None:
        self._path = path
        self._like = like

    def __enter__(self) -> int:
        try:
            self._descriptor = os.open(self._path, _CREATE, 0o600)
        except (OSError, ValueError) as error:
            raise HostFileError("open", self._path, reason(error)) from error
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
            raise HostFileError("write", self._path, reason(error)) from error


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
