"""What this machine says about itself: its name, its network, and the small files that calico-node leaves for plugins.

Invariant: nothing here depends on where a datastore is, or on what makes the devices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ports.errors import Missing, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address


class MissingFile(Missing):
    """`open <path>: no such file or directory`, as Go says it; `key` is the path."""

    def __init__(self, path: str) -> None:
        PortError.__init__(self, f"open {path}: no such file or directory")
        self.key = path


class ThisNode(ABC):
    @abstractmethod
    def addresses(self) -> tuple[Address, ...]:
        """The addresses of this machine's own devices, in the namespace the process runs in; () if unknown."""

    @abstractmethod
    def interface_of(self, address: Address) -> str:
        """The interface to which this machine has a route for that address alone; "" without one, or if unknown."""

    @abstractmethod
    def host_routes(self) -> tuple[tuple[Address, str], ...]:
        """(address, interface) of all such routes that need no gateway; () if unknown."""

    @abstractmethod
    def is_own_namespace(self, netns: str) -> bool:
        """Whether the path is the network namespace this process runs in; a path that cannot be followed is not."""

    @abstractmethod
    def host_name(self) -> str:
        """The operating system's host name as it is; "" when unknown."""

    @abstractmethod
    def read(self, path: str) -> str:
        """A whole small text file, undecodable bytes replaced.

        Missing: `MissingFile`. Anything else (permission, a directory, over 1 MiB): `ports.errors.Refused`.
        Texts are Go's: `open <path>: no such file or directory`.
        """

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether the path can be stat'ed; symbolic links are followed."""

    @abstractmethod
    def write(self, path: str, text: str) -> None:
        """Replace a small file whole (temporary file, fsync, rename; mode 0600; its directory is made 0755).

        `ports.errors.Unavailable` with path and reason when it cannot be.
        """

    @abstractmethod
    def remove(self, path: str) -> None:
        """Delete a file; a missing one is fine. `ports.errors.Unavailable` when it stays."""
