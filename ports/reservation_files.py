"""host-local's directory of one network, as an upgrade empties it: whatever is in it, by name.

`ports.address_files` is the same place for whoever assigns addresses from it, and sees reservations only.

Invariant: nothing is removed that was not named, and the directory only once it is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ports.clock import Deadline


class ReservationFiles(ABC):
    """Errors: `ports.errors.Unavailable` with path and reason."""

    @abstractmethod
    def exist(self) -> bool:
        """Whether the directory is there."""

    @abstractmethod
    def held(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Hold host-local's lock for a `with` block, which leaves its file behind. Expired if not had in time."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Of all that is in the directory, in order."""

    @abstractmethod
    def read(self, name: str) -> str:
        """A file's text. `ports.errors.Refused`, with the reason, for what cannot be read or is no regular file."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """One that is gone is fine."""

    @abstractmethod
    def remove_all(self) -> None:
        """Remove the directory, with the lock if that is all there is left."""
