"""Reading a file that somebody else has named: settings, credentials, manifests.

The name may lead anywhere: to a device that never ends, or to a pipe into which nobody writes. Symbolic links are
followed, since mounted secrets consist of them.

Invariant: an open or a read never waits for anybody, and no more than `limit` bytes are ever held.
"""

from __future__ import annotations

import os
from errno import EFBIG, EINVAL, EISDIR
from stat import S_ISDIR, S_ISREG

LARGEST = 4 << 20
"""Bytes. A kubeconfig with a thousand clusters has room in it."""

if hasattr(os, "O_NONBLOCK"):
    _OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
else:  # on Windows, which has none of these; Python itself closes what it opens in programs that are started
    _OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_PIECE = 1 << 18


def read_regular(path: str, limit: int = LARGEST) -> bytes:
    """All of it. OSError, whose `strerror` says why not."""
    descriptor = open_regular(path, limit)
    try:
        return read_bounded(descriptor, limit)
    finally:
        os.close(descriptor)


def open_regular(path: str, limit: int = LARGEST) -> int:
    """Its descriptor. OSError if there is no file, if it is not a regular one, or if it is larger than `limit`."""
    try:
        descriptor = os.open(path, _OPEN)
    except ValueError:  # a NUL in it
        raise OSError(EINVAL, "such a path cannot exist") from None
    try:
        found = os.fstat(descriptor)
        if S_ISDIR(found.st_mode):
            raise OSError(EISDIR, os.strerror(EISDIR))
        if not S_ISREG(found.st_mode):
            raise OSError(EINVAL, "not a regular file")
        if found.st_size > limit:
            raise _too_large(limit)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_bounded(descriptor: int, limit: int = LARGEST) -> bytes:
    """What is left in an open file, a pipe for example. OSError if that is more than `limit`; it may wait."""
    data = bytearray()
    while piece := os.read(descriptor, _PIECE):
        data += piece
        if len(data) > limit:
            raise _too_large(limit)
    return bytes(data)


def _too_large(limit: int) -> OSError:
    return OSError(EFBIG, f"larger than {limit >> 20} MiB")
