"""Kernel settings below /proc/sys, written as they are for the calling thread's network namespace.

Invariant: only files that exist are written, and a symbolic link in a setting's place is refused.
"""

from __future__ import annotations

import os

from adapters.linux.files import reason
from adapters.linux.netlink.seam import KernelError

_ROOT = "/proc/sys/"


def write_sysctl(path: str, value: str) -> None:
    """`path` is below /proc/sys. KernelError `open <file>: <reason>` or `write <file>: <reason>`."""
    file = _ROOT + path
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise _failed("open", file, error) from error
    try:
        os.write(descriptor, value.encode())
    except OSError as error:
        raise _failed("write", file, error) from error
    finally:
        os.close(descriptor)


def read_sysctl(path: str) -> str:
    """Without the newline at its end. KernelError as above."""
    file = _ROOT + path
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise _failed("open", file, error) from error
    try:
        return os.read(descriptor, 4096).decode("utf-8", "replace").strip()
    except OSError as error:
        raise _failed("read", file, error) from error
    finally:
        os.close(descriptor)


def _failed(verb: str, file: str, error: OSError) -> KernelError:
    return KernelError(error.errno or 0, f"{verb} {file}: {reason(error)}")
