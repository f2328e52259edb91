"""host-local's directory, as an upgrade empties it.

Invariant: only names of the directory itself are opened or removed, links are not followed, and nothing waits for a
reader or writer.
"""

from __future__ import annotations

import os
from errno import ENOTEMPTY

from adapters.linux.files import reason
from adapters.linux.host_local_files import LOCK_NAME, HostLocalFiles, read_file, unlink
from ports.errors import Refused, Unavailable
from ports.reservation_files import ReservationFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ports.clock import Clock, Deadline


class HostLocalDirectory(ReservationFiles):
    def __init__(self, directory: str, clock: Clock) -> None:
        self._directory = directory
        self._files = HostLocalFiles(directory, clock)

    def exist(self) -> bool:
        return self._files.exist()

    def held(self, deadline: Deadline) -> AbstractContextManager[None]:
        return self._files.held(deadline)

    def names(self) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(self._directory)))
        except OSError as error:
            raise Unavailable(f"open {self._directory}: {reason(error)}") from error

    def read(self, name: str) -> str:
        path = os.path.join(self._directory, name)
        try:
            return read_file(path)[0]
        except OSError as error:
            raise Refused(f"open {path}: {reason(error)}") from error

    def remove(self, name: str) -> None:
        path = os.path.join(self._directory, name)
        try:
            unlink(path)
        except OSError as error:
            raise Unavailable(f"remove {path}: {reason(error)}") from error

    def remove_all(self) -> None:
        """The lock goes only with the directory: beside another file somebody may be waiting for it."""
        names = self.names()
        if set(names) - {LOCK_NAME}:
            raise Unavailable(f"remove {self._directory}: {reason(OSError(ENOTEMPTY, ''))}")
        for name in names:
            self.remove(name)
        try:
            os.rmdir(self._directory)
        except OSError as error:
            raise Unavailable(f"remove {self._directory}: {reason(error)}") from error
