"""Network namespaces: telling a path to one from any other path, and stepping into it and back.

A path from a runtime is hostile until proven otherwise: it may be missing, a left-over plain file, a FIFO that would
block, another kind of namespace. None is ever created.

Invariant: the calling thread is back in its own namespace when a `with Inside(…)` ends, however it ends; where it
cannot get back, `Stranded` says so, and nothing may go on.
"""

from __future__ import annotations

import os
import stat
from errno import EINVAL, ENOENT

from adapters.linux.files import go_text, reason
from adapters.linux.netlink.seam import KernelError
from adapters.linux.node_files import OWN_NAMESPACE
from adapters.linux.process.signals import Withheld
from adapters.linux.process.system_calls import filesystem_type, setns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

CLONE_NEWNET = 0x40000000
_NS_GET_NSTYPE = 0xB703
_NSFS_MAGIC, _PROC_MAGIC = 0x6E736673, 0x9FA0


class NamespaceMissing(KernelError):
    """Nothing is at the path."""


class NotANamespace(KernelError):
    """Something is at the path, but it is no network namespace."""


class Stranded(RuntimeError):
    """The thread is still inside the container's namespace."""


def open_namespace(path: str) -> int:
    """A descriptor, read-only and closed on exec, of the network namespace at that path."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise _not_a_namespace(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:  # ValueError: an embedded null byte
        number = getattr(error, "errno", EINVAL)
        kind = NamespaceMissing if number == ENOENT else KernelError
        raise kind(number, f'failed to Statfs "{path}": {reason(error)}') from error
    if not _is_network_namespace(descriptor):
        os.close(descriptor)
        raise _not_a_namespace(path)
    return descriptor


def _is_network_namespace(descriptor: int) -> bool:
    from fcntl import ioctl

    try:
        return ioctl(descriptor, _NS_GET_NSTYPE) == CLONE_NEWNET
    except OSError:
        return False


def _not_a_namespace(path: str) -> NotANamespace:
    magic = filesystem_type(path)
    if magic in {_NSFS_MAGIC, _PROC_MAGIC}:  # a namespace of another kind, or a plain file of /proc
        return NotANamespace(EINVAL, f'"{path}" is not a network namespace: {go_text(EINVAL)}')
    return NotANamespace(EINVAL, f'unknown FS magic on "{path}": {magic:x}')


class Inside:
    """`with Inside(descriptor):` runs in that network namespace: sockets opened there stay in it.

    Termination signals wait meanwhile, so that none raises between arriving and being sure to return.
    """

    def __init__(self, descriptor: int) -> None:
        self._there = descriptor
        self._here = -1
        self._withheld = Withheld()

    def __enter__(self) -> None:
        self._withheld.__enter__()
        try:
            self._here = os.open(OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
            setns(self._there, CLONE_NEWNET)
        except OSError as error:
            self._leave()
            raise KernelError(error.errno or EINVAL, f"error switching to ns: {reason(error)}") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            setns(self._here, CLONE_NEWNET)
        except OSError as failure:
            raise Stranded(f"cannot return from the container's network namespace: {failure}") from failure
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._here >= 0:
            os.close(self._here)
            self._here = -1
        self._withheld.__exit__(None, None, None)
