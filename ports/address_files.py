"""host-local's store: which address of a network is whose, and which was given out last.

Invariant: whoever changes it holds its lock, which the executable of the same name holds, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from domain.ipam.address import Address
    from ports.clock import Deadline


class AddressFile(Value):
    """`ifname` is "" in records that older versions wrote. `made` is in nanoseconds since the epoch."""

    address: Address
    container_id: str
    ifname: str
    made: int


class AddressFiles(ABC):
    """Errors: `ports.errors.Unavailable` with path and reason, as when the disk is full."""

    @abstractmethod
    def exist(self) -> bool:
        """Whether anything can be kept there: False for what nobody has made, and for what cannot be."""

    @abstractmethod
    def held(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Hold the store's lock for a `with` block. Expired if it cannot be had in time."""

    @abstractmethod
    def reservations(self) -> tuple[AddressFile, ...]:
        """Those with a holder: a file without content, which a crash or a full disk has left, reserves nothing."""

    @abstractmethod
    def reserve(self, address: Address, container_id: str, ifname: str, number: int) -> None:
        """For the range set of that number; nobody else may have it. Never leaves half a record."""

    @abstractmethod
    def release(self, address: Address) -> None:
        """One that is not reserved is fine."""

    @abstractmethod
    def last_reserved(self, number: int) -> Address | None:
        """Of the range set of that number; None if nobody knows."""
