"""Hidden folders beside the files that will be replaced, each locked as long as the process works that made it.

A lock goes with its process, however that ends, and holds between containers that share nothing but the folder, where
process ids say nothing. So whoever gets the lock of a stage knows that nobody works in it any more.

Invariant: a stage that somebody works in is never removed; any other is, by the next who opens one in that folder.
"""

from __future__ import annotations

import fcntl
import os
from errno import EISDIR, ELOOP, EPERM

from adapters.seen_host_files import GONE, is_stage, stage_in

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


def open_stage(folder: str) -> tuple[str, int]:
    """A new one, 0700, and the descriptor that keeps it locked. OSError."""
    _sweep(folder)
    while True:
        stage = stage_in(folder)
        os.mkdir(stage, 0o700)
        lock = _locked(stage)
        if lock is not None:
            os.fchmod(lock, 0o700)
            return stage, lock


class Held:
    """`with Held(folder):` — nobody else holds it, by a lock that goes with the process. OSError."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __exit__(self, *_ended: object) -> None:
        os.close(self._descriptor)


def remove_tree(path: str) -> None:
    """A folder with all that is in it, a file, a link, or nothing; somebody else may remove it meanwhile. OSError."""
    try:
        try:
            os.unlink(path)
        except OSError as error:
            if error.errno not in (EISDIR, EPERM):
                raise
            for name in _listed(path):
                remove_tree(f"{path}/{name}")
            os.rmdir(path)
    except OSError as error:
        if error.errno not in GONE:
            raise


def sync(folder: str) -> None:
    """Make what was named, renamed or removed in it last. OSError."""
    descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listed(folder: str) -> list[str]:
    descriptor = os.open(folder, _OPEN_FOLDER)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)


def _locked(stage: str, *, wait: bool = True) -> int | None:
    """A descriptor that keeps the stage locked; None if somebody else has it, or has removed it. OSError."""
    try:
        descriptor = os.open(stage, _OPEN_FOLDER)
    except OSError as error:
        if error.errno in (*GONE, ELOOP):
            return None
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(descriptor), os.lstat(stage)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _sweep(folder: str) -> None:
    """What cannot be removed is no reason to fail."""
    for name in os.listdir(folder):
        if not is_stage(name):
            continue
        try:
            lock = _locked(f"{folder}/{name}", wait=False)
            if lock is not None:
                try:
                    remove_tree(f"{folder}/{name}")
                finally:
                    os.close(lock)
        except OSError:
            continue
