"""host-local's store in a dict.

Invariant: nothing changes unless its lock is held.
"""

from __future__ import annotations

from ports.address_files import AddressFile, AddressFiles
from ports.errors import Expired, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from domain.ipam.address import Address
    from ports.clock import Clock, Deadline


class MemoryAddressFiles(AddressFiles):
    """`room` is how many more reservations the disk has space for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reserved: dict[Address, AddressFile] = {}
        self.last: dict[int, Address] = {}
        self.room = 1 << 30
        self.is_held = self.is_made = False

    def exist(self) -> bool:
        return self.is_made or bool(self.reserved)

    def held(self, deadline: Deadline) -> _HeldFiles:
        if deadline.passed(self._clock.monotonic()):
            raise Expired("the lock of the address files")
        return _HeldFiles(self)

    def reservations(self) -> tuple[AddressFile, ...]:
        return tuple(self.reserved.values())

    def reserve(self, address: Address, container_id: str, ifname: str, number: int) -> None:
        assert self.is_held  # noqa: S101 - the port's contract
        if not self.room:
            raise Unavailable(f"open {address}: no space left on device")
        self.room -= 1
        self.reserved[address] = AddressFile(address, container_id, ifname, self._clock.now())
        self.last[number] = address

    def release(self, address: Address) -> None:
        assert self.is_held  # noqa: S101 - the port's contract
        self.reserved.pop(address, None)

    def last_reserved(self, number: int) -> Address | None:
        return self.last.get(number)


class _HeldFiles:
    def __init__(self, files: MemoryAddressFiles) -> None:
        self._files = files

    def __enter__(self) -> None:
        self._files.is_held = self._files.is_made = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.is_held = False
