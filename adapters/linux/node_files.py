"""The host's name and the small files between calico-node and its plugins.

Reading follows symbolic links, since mounted configuration consists of them; replacing a file replaces the link.

Invariant: nobody ever sees half of what `write` writes, and a read never blocks, whatever the path turns out to be.
"""

from __future__ import annotations

import os
from errno import ENAMETOOLONG

from adapters.linux.files import make_directory, reason
from ports.errors import Refused, Unavailable
from ports.node import MissingFile, ThisNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address

OWN_NAMESPACE = "/proc/thread-self/ns/net"
LARGEST = 1 << 20
_UNSET = "(none)"  # the kernel's name for a host that nobody has named
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_FILE_MODE = 0o600


def is_own_namespace(path: str) -> bool:
    """Whether the path leads to the namespace of the calling thread; one that cannot be followed does not."""
    try:
        there, here = os.stat(path), os.stat(OWN_NAMESPACE)
    except (OSError, ValueError):
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


class NodeFiles(ThisNode):
    def addresses(self) -> tuple[Address, ...]:
        from adapters.linux.own_addresses import own_addresses  # only IPAM asks the kernel

        return own_addresses()

    def interface_of(self, address: Address) -> str:
        from adapters.linux.own_addresses import interface_of

        return interface_of(address)

    def host_routes(self) -> tuple[tuple[Address, str], ...]:
        from adapters.linux.own_addresses import host_routes

        return host_routes()

    def is_own_namespace(self, netns: str) -> bool:
        return is_own_namespace(netns)

    def host_name(self) -> str:
        name = os.uname().nodename
        return "" if name == _UNSET else name

    def read(self, path: str) -> str:
        try:
            fd = os.open(path, _READ)
        except FileNotFoundError:
            raise MissingFile(path) from None
        except (OSError, ValueError) as error:
            raise Refused(f"open {path}: {reason(error)}") from error
        try:
            data = _read_whole(fd)
        except OSError as error:
            raise Refused(f"read {path}: {reason(error)}") from error
        finally:
            os.close(fd)
        if len(data) > LARGEST:
            raise Refused(f"read {path}: file too large")
        return data.decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (OSError, ValueError):
            return False
        return True

    def write(self, path: str, text: str) -> None:
        directory = os.path.dirname(path)
        try:
            if directory:
                make_directory(directory)
            replace_file(path, text.encode("utf-8", "replace"))
        except (OSError, ValueError) as error:
            raise Unavailable(f"open {path}: {reason(error)}") from error

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
                return  # nothing can have that name
            raise Unavailable(f"remove {path}: {reason(error)}") from error


def _read_whole(fd: int) -> bytes:
    data = b""
    while len(data) <= LARGEST:
        part = os.read(fd, LARGEST + 1 - len(data))
        if not part:
            break
        data += part
    return data


def replace_file(path: str, data: bytes, *, durable: bool = True) -> None:
    """Replace it whole, mode 0600. With `durable` it outlives a power failure from now on. OSError."""
    temporary = os.path.join(os.path.dirname(path), f".tortie-{os.getpid()}")
    try:
        fd = os.open(temporary, _CREATE, _FILE_MODE)
    except FileExistsError:  # left by a killed process of the same number
        os.unlink(temporary)
        fd = os.open(temporary, _CREATE, _FILE_MODE)
    try:
        try:
            os.fchmod(fd, _FILE_MODE)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if durable:
        _sync_directory(os.path.dirname(path) or ".")


def _sync_directory(path: str) -> None:
    """Make the renaming itself last."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
