"""A Windows host's files: what is new is complete and on the disk before it is moved.

Windows does not replace a program that runs, but lets it be renamed: such a one is put aside into a stage, from where
it goes when somebody opens a stage in that folder after its end. Of a mode Windows keeps only whether a file may be
written to; who may read it, its folder's access list says, and labels there are none.

Invariant: as `ports.host_files`, as far as Windows has what it speaks of.
"""

from __future__ import annotations

import os
import time
from stat import S_IMODE, S_ISDIR, filemode
from typing import TYPE_CHECKING

from adapters.regular_file import read_regular
from adapters.seen_host_files import GONE, SeenHostFiles, is_stage, stage_in
from domain.install.places import BESIDE
from ports.host_files import FILE, LINK, STAGE, STAGE_END, HostFileError
from ports.node import MissingFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LOCK = ".lock"
_HELD = f"{STAGE}held{STAGE_END}"
_PIECE = 1 << 20
_PAUSE = 0.05
_ID, _MAGIC, _STAMP = 16, b"TORTIE01", 81  # bytes of launcher.c's closing, and of the stamp behind it
_END = _ID + len(_MAGIC) + _STAMP
_BINARY = getattr(os, "O_BINARY", 0)


class WindowsHostFiles(SeenHostFiles):
    """`locking` is what Python has on Windows as `msvcrt`; `replace` renames over what is there."""

    def __init__(self, locking: Any = None, replace: Callable[[str, str], None] = os.replace) -> None:
        self._lock = Octets(locking)
        self._replace = replace
        self._stages: dict[str, int] = {}  # path → descriptor that holds the lock

    def _why(self, error: OSError | ValueError) -> str:
        return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "invalid argument"

    def read(self, path: str) -> bytes:
        try:
            return read_regular(path)
        except OSError as error:
            if error.errno in GONE:
                raise MissingFile(path) from None
            raise self._failed("open", path, error) from error

    def why_unwritable(self, folder: str) -> str:
        probe = stage_in(folder)
        try:
            os.mkdir(probe)
            os.rmdir(probe)
        except (OSError, ValueError) as error:
            return self._why(error)
        return ""

    def make_folder(self, path: str, mode: int = 0o755) -> None:
        try:
            if not os.path.isdir(path):
                os.makedirs(path)
                os.chmod(path, mode)
        except (OSError, ValueError) as error:
            raise self._failed("mkdir", path, error) from error

    def held(self, folder: str) -> _Held:
        return _Held(f"{folder}/{_HELD}", self._lock)

    def open_stage(self, folder: str) -> str:
        try:
            self._sweep(folder)
            stage = stage_in(folder)
            os.mkdir(stage, 0o700)  # since Python 3.13: for system and administrators, and so all that is made in it
            lock = os.open(f"{stage}/{_LOCK}", os.O_RDWR | os.O_CREAT | _BINARY)
            self._lock.take(lock)
        except (OSError, ValueError) as error:
            raise self._failed("mkdir", f"{folder}/{STAGE}*{STAGE_END}", error) from error
        self._stages[stage] = lock
        return stage

    def _sweep(self, folder: str) -> None:
        """Remove what killed processes have left, and programs that were put aside and have ended by now."""
        for name in os.listdir(folder):
            stage = f"{folder}/{name}"
            if is_stage(name) and os.path.isdir(stage) and not self._is_worked_in(stage):
                try:  # noqa: SIM105 - contextlib costs 4 ms to load
                    _remove_tree(stage)
                except OSError:
                    pass  # a program that still runs: next time
        self._sweep_unpacked(folder)

    def _sweep_unpacked(self, folder: str) -> None:
        """What builds that are gone have unpacked. It is renamed first, which fails if a program uses any of it."""
        home = f"{folder}/{BESIDE}"
        if not os.path.isdir(home):
            return
        here = {_build(f"{folder}/{name}") for name in os.listdir(folder) if name.endswith(".exe")}
        for name in os.listdir(home):
            if name.partition(".")[0] not in here:
                aside = stage_in(folder)
                try:
                    self._replace(f"{home}/{name}", aside)
                    _remove_tree(aside)
                except OSError:
                    pass  # as above

    def _is_worked_in(self, stage: str) -> bool:
        try:
            descriptor = os.open(f"{stage}/{_LOCK}", os.O_RDWR | _BINARY)
        except OSError:
            return False
        try:
            return not self._lock.take(descriptor)
        finally:
            os.close(descriptor)

    def close_stage(self, stage: str) -> None:
        self.remove_tree(stage)

    def write(self, path: str, data: bytes, mode: int, like: str = "") -> None:  # noqa: ARG002 - there are no labels
        try:
            with open(path, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(path, mode)
        except (OSError, ValueError) as error:
            raise self._failed("open", path, error) from error

    def copy(self, source: str, path: str, like: str = "") -> None:  # noqa: ARG002 - there are no labels
        found = self.look(source, follow=True)
        if found is not None and found.kind != FILE:
            shown = filemode(os.stat(source).st_mode)
            name = os.path.basename(source)
            raise HostFileError("copy", source, f'CopyFile: non-regular source file {name} ("{shown}")')
        try:
            with open(source, "rb") as origin, open(path, "xb") as file:
                while piece := origin.read(_PIECE):
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
                mode = S_IMODE(os.fstat(origin.fileno()).st_mode)
            os.chmod(path, mode)
        except (OSError, ValueError) as error:
            raise self._failed("open", getattr(error, "filename", None) or source, error) from error

    def keep(self, path: str, kept: str) -> None:
        """By a copy: of a program that runs no second name could be removed later."""
        found = self.look(path)
        if found is None or found.kind != LINK:
            self.copy(path, kept)
            return
        try:
            os.symlink(os.readlink(path), kept)
        except OSError as error:
            raise self._failed("link", path, error) from error

    def move(self, path: str, target: str) -> None:
        try:
            try:
                self._replace(path, target)
            except PermissionError:
                self._replace_running(path, target)
        except (OSError, ValueError) as error:
            raise self._failed("rename", target, error) from error

    def _replace_running(self, path: str, target: str) -> None:
        """For a moment nothing is there. What cannot be put into its place leaves the old file where it was."""
        aside = stage_in(os.path.dirname(target))
        os.mkdir(aside)
        old = f"{aside}/{os.path.basename(target)}"
        os.rename(target, old)
        try:
            os.replace(path, target)
        except OSError:
            os.rename(old, target)
            raise
        finally:
            try:  # noqa: SIM105 - as above
                _remove_tree(aside)
            except OSError:
                pass  # it runs; whoever opens a stage here after its end removes it

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except (OSError, ValueError) as error:
            if not (isinstance(error, OSError) and error.errno in GONE):
                raise self._failed("remove", path, error) from error

    def remove_tree(self, path: str) -> None:
        """Of a stage the lock goes first: Windows removes no file that is open."""
        if path in self._stages:
            os.close(self._stages.pop(path))
        try:
            _remove_tree(path)
        except (OSError, ValueError) as error:
            raise self._failed("remove", path, error) from error


class Octets:
    """Locks on the first octet of an open file, which go with the process."""

    def __init__(self, locking: Any = None) -> None:
        self._locking = locking

    def take(self, descriptor: int) -> bool:
        """False if another process has it."""
        if self._locking is None:
            import msvcrt

            self._locking = msvcrt
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            self._locking.locking(descriptor, self._locking.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True


class _Held:
    def __init__(self, path: str, lock: Octets) -> None:
        self._path = path
        self._lock = lock

    def __enter__(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | _BINARY)
        try:
            while not self._lock.take(self._descriptor):
                time.sleep(_PAUSE)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __exit__(self, *_ended: object) -> None:
        os.close(self._descriptor)


def _build(path: str) -> str:
    """What launcher.c calls the folder that the program unpacks into; "" if the program is not ours."""
    try:
        with open(path, "rb") as file:
            file.seek(-_END, os.SEEK_END)
            end = file.read(_ID + len(_MAGIC))
    except OSError:
        return ""
    return end[:_ID].decode("ascii", "replace") if end.endswith(_MAGIC) else ""


def _remove_tree(path: str) -> None:
    """A missing one is fine. OSError for what cannot be removed; what can is gone then."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if not S_ISDIR(found.st_mode):
        os.unlink(path)
        return
    for name in os.listdir(path):
        _remove_tree(f"{path}/{name}")
    os.rmdir(path)
