"""The interfaces of a Windows host, as far as connecting containers needs them. HNS says addresses only.

Windows tells of its interfaces, and lets their forwarding be switched, by PowerShell: one process for each verb.

Invariant: an address is the only thing put into a command, and nothing else of anybody's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.ipam.address import Cidr
from domain.linux.link import parse_mac
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.ipam.address import Address
    from ports.clock import Deadline


class HostInterfaces(ABC):
    """Errors: `ports.errors.Refused`; `Expired` past the deadline."""

    @abstractmethod
    def subnet_of(self, address: Address, deadline: Deadline) -> Cidr:
        """The address with the prefix length that it has on its interface."""

    @abstractmethod
    def mac_of(self, address: Address, deadline: Deadline) -> str:
        """Of the interface with that address; octets joined by colons."""

    @abstractmethod
    def enable_forwarding(self, addresses: tuple[Address, ...], deadline: Deadline) -> None:
        """On the interfaces that have these addresses. One whose interface is not there yet is refused."""


class PowerShellInterfaces(HostInterfaces):
    """`run` runs a command and gives what it has written."""

    def __init__(self, run: Callable[[str, Deadline], str]) -> None:
        self._run = run

    def subnet_of(self, address: Address, deadline: Deadline) -> Cidr:
        length = self._run(f"({_address(address)}).PrefixLength", deadline).strip()
        try:
            return Cidr.parse(f"{address}/{length}")
        except ValueError:
            raise _nowhere(address) from None

    def mac_of(self, address: Address, deadline: Deadline) -> str:
        command = f"(Get-NetAdapter -InterfaceIndex ({_address(address)}).InterfaceIndex).MacAddress"
        try:
            return parse_mac(self._run(command, deadline).strip())
        except ValueError:
            raise _nowhere(address) from None

    def enable_forwarding(self, addresses: tuple[Address, ...], deadline: Deadline) -> None:
        switch = "Set-NetIPInterface -AddressFamily IPv4 -Forwarding Enabled -InterfaceIndex"
        commands = [f"{switch} ({_address(address)}).InterfaceIndex" for address in addresses]
        self._run("; ".join(commands), deadline)


def _address(address: Address) -> str:
    return f"Get-NetIPAddress -AddressFamily IPv4 -IPAddress {address}"


def _nowhere(address: Address) -> Refused:
    return Refused(f"couldn't find an interface matching management IP {address}")
