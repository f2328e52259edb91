"""The rest of a Windows host over plain values: interfaces, a mutex that is free, and the registry.

Invariant: the promises of `HostInterfaces`, `Mutex` and `DeletionStamps`, in their shortest form.
"""

from __future__ import annotations

from contextlib import contextmanager

from adapters.windows.deletion_stamps import DeletionStamps
from adapters.windows.host_interfaces import HostInterfaces
from adapters.windows.mutex import Mutex
from domain.ipam.address import Address, Cidr
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ports.clock import Deadline


class MemoryInterfaces(HostInterfaces):
    """`addresses` with the MACs of their interfaces; `forwarding` where that has been enabled."""

    def __init__(self) -> None:
        self.addresses: dict[Cidr, str] = {Cidr.parse("10.11.128.13/19"): "00:15:5d:01:02:03"}
        self.forwarding: list[Address] = []
        self.refuses = ""

    def subnet_of(self, address: Address, deadline: Deadline) -> Cidr:  # noqa: ARG002 - nothing here takes time
        return self._of(address)

    def mac_of(self, address: Address, deadline: Deadline) -> str:  # noqa: ARG002 - as above
        return self.addresses[self._of(address)]

    def enable_forwarding(self, addresses: tuple[Address, ...], deadline: Deadline) -> None:  # noqa: ARG002 - as above
        if self.refuses:
            raise Refused(self.refuses)
        self.forwarding += addresses

    def _of(self, address: Address) -> Cidr:
        for cidr in self.addresses:
            if cidr.address == address:
                return cidr
        raise Refused(f"couldn't find an interface matching management IP {address}")


class MemoryMutex(Mutex):
    """`by_others` says that somebody else holds it for ever; `taken` how often it was had."""

    def __init__(self) -> None:
        self.by_others = False
        self.taken = 0
        self.is_held = False

    @contextmanager
    def held(self, deadline: Deadline) -> Iterator[None]:  # noqa: ARG002 - nobody waits here
        if self.by_others:
            raise Expired("the mutex TigeraCalicoCNINetworkMutex")
        self.taken += 1
        self.is_held = True
        try:
            yield
        finally:
            self.is_held = False


class MemoryStamps(DeletionStamps):
    """`late` is how many times a new stamp is not yet seen."""

    def __init__(self) -> None:
        self.stamps: dict[str, str] = {}
        self.late = 0
        self.refuses = ""

    def all(self) -> dict[str, str]:
        if self.late:
            self.late -= 1
            return {}
        return dict(self.stamps)

    def write(self, container_id: str, when: str) -> None:
        if self.refuses:
            raise Refused(self.refuses)
        self.stamps[container_id] = when

    def remove(self, container_id: str) -> None:
        self.stamps.pop(container_id, None)
