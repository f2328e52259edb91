r"""host-local's directory: a file per reserved address with its holder, the last one of each range set, and a lock.

    10.244.0.2           mycontainer123\r\neth0
    last_reserved_ip.0   10.244.0.2
    lock                 flock(2)ed by whoever changes something

Invariant: a reservation appears under its name with all of its content or not at all: it is written under another name
and linked, so that neither a crash nor a full disk leaves an empty file.
"""

from __future__ import annotations

import os
from errno import EEXIST, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from stat import S_ISREG

from adapters.linux.files import make_directory, reason
from domain.ipam.address import Address
from ports.address_files import AddressFile, AddressFiles
from ports.errors import Expired, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from ports.clock import Clock, Deadline

LOCK_NAME, _LAST = "lock", "last_reserved_ip."
_REMOVE = "remove it, then it is made anew"
_LINE_BREAK = "\r\n"
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_LONGEST_SLEEP = 0.01
_LARGEST = 1 << 18  # more than a variable of the environment, such as a container's ID, can have


class HostLocalFiles(AddressFiles):
    """`directory` is the network's own."""

    def __init__(self, directory: str, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def exist(self) -> bool:
        try:
            os.stat(self._directory)
        except ValueError:
            return False
        except OSError as error:
            return error.errno not in (ENOENT, ENOTDIR, ENAMETOOLONG)
        return True

    def held(self, deadline: Deadline) -> _HeldStore:
        return _HeldStore(self._directory, self._clock, deadline)

    def reservations(self) -> tuple[AddressFile, ...]:
        return tuple([one for one in self._listed() if one.container_id])

    def _listed(self) -> list[AddressFile]:
        """Files without content too."""
        try:
            names = os.listdir(self._directory)
        except OSError as error:
            raise Unavailable(f"open {self._directory}: {reason(error)}") from error
        return [found for name in names if (found := self._reservation(name)) is not None]

    def _reservation(self, name: str) -> AddressFile | None:
        try:
            address = Address.parse(name)
        except ValueError:
            return None
        try:
            content, made = read_file(self._path(name))
        except OSError:
            return None
        container_id, _, ifname = content.strip().partition("\n")
        return AddressFile(address, container_id.strip(), ifname.strip(), made)

    def reserve(self, address: Address, container_id: str, ifname: str, number: int) -> None:
        path = self._path(str(address))
        try:
            self._write(path, f"{container_id}{_LINE_BREAK}{ifname}")
            path = self._path(f"{_LAST}{number}")
            self._replace(path, str(address))
        except OSError as error:
            raise Unavailable(f"open {path}: {reason(error)}") from error

    def _write(self, path: str, content: str) -> None:
        """An empty file in the way is nobody's."""
        temporary = self._temporary(content)
        try:
            try:
                os.link(temporary, path)
            except OSError as error:
                if error.errno != EEXIST or os.lstat(path).st_size:
                    raise
                os.rename(temporary, path)
        finally:
            unlink(temporary)

    def _replace(self, path: str, content: str) -> None:
        temporary = self._temporary(content)
        try:
            os.rename(temporary, path)
        finally:
            unlink(temporary)

    def _temporary(self, content: str) -> str:
        path = self._path(f".tortie-{os.getpid()}")
        unlink(path)  # left by a killed process of the same number
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            _write_all(descriptor, content.encode("utf-8", "surrogateescape"))
        except BaseException:
            unlink(path)
            raise
        finally:
            os.close(descriptor)
        return path

    def release(self, address: Address) -> None:
        path = self._path(str(address))
        try:
            unlink(path)
        except OSError as error:
            raise Unavailable(f"remove {path}: {reason(error)}") from error

    def last_reserved(self, number: int) -> Address | None:
        try:
            return Address.parse(read_file(self._path(f"{_LAST}{number}"))[0].strip())
        except (OSError, ValueError):
            return None


def read_file(path: str) -> tuple[str, int]:
    """Content and time of the last change. OSError, also for what is no regular file."""
    descriptor = os.open(path, _READ)
    try:
        found = os.fstat(descriptor)
        if not S_ISREG(found.st_mode):
            raise OSError(EEXIST, "not a regular file")
        return os.read(descriptor, _LARGEST).decode("utf-8", "surrogateescape"), found.st_mtime_ns
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def unlink(path: str) -> None:
    try:  # noqa: SIM105 - contextlib costs 4 ms to load
        os.unlink(path)
    except FileNotFoundError:
        pass


def _open_lock(path: str) -> int:
    """A link is followed, as the original does, so that both lock the same file; but nothing is made through it."""
    try:
        descriptor = os.open(path, _READ | os.O_CREAT, 0o600)
    except OSError as error:
        if error.errno != ELOOP:
            raise
        try:
            descriptor = os.open(path, _READ & ~os.O_NOFOLLOW)
        except FileNotFoundError:
            raise Unavailable(f"the lock {path} is a symbolic link to nothing: {_REMOVE}") from error
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unavailable(f"the lock {path} is not a regular file: {_REMOVE}")
    return descriptor


class _HeldStore:
    """The directory's lock; unlike the host lock, going on without it is no option."""

    def __init__(self, directory: str, clock: Clock, deadline: Deadline) -> None:
        self._directory, self._clock, self._deadline = directory, clock, deadline
        self._descriptor = -1

    def __enter__(self) -> None:
        path = os.path.join(self._directory, LOCK_NAME)
        try:
            make_directory(self._directory)
            self._descriptor = _open_lock(path)
            self._wait(path)
        except (OSError, ValueError) as error:
            self._close()
            raise Unavailable(f"open {path}: {reason(error)}") from error
        except BaseException:
            self._close()
            raise

    def _wait(self, path: str) -> None:
        pause = 0.0005
        while True:
            try:
                flock(self._descriptor, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                now = self._clock.monotonic()
                if self._deadline.passed(now):
                    raise Expired(f"the lock {path}") from None
                self._clock.sleep(min(pause, self._deadline.left(now)))
                pause = min(pause * 2, _LONGEST_SLEEP)
            else:
                return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        flock(self._descriptor, LOCK_UN)
        self._close()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
