"""Locks of octets as Windows has them, over `flock`, for tests of what runs there."""

from __future__ import annotations

import fcntl
import os


class Msvcrt:
    """`locking` as Python has it on Windows, which locks octets from where the file stands."""

    LK_NBLCK, LK_UNLCK = 2, 0

    @staticmethod
    def locking(descriptor: int, mode: int, octets: int) -> None:
        assert (os.lseek(descriptor, 0, os.SEEK_CUR), octets) == (0, 1)
        if mode == Msvcrt.LK_UNLCK:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error
