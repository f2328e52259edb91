"""What the bridge plugin asks of the kernel beyond the seam that all plugins share (adapters/linux/netlink).

A transport that can do this derives from `BridgeNetlink` beside its own class for the shared seam.

Invariant: as for the shared seam: every refusal of the kernel is a `KernelError`.
"""

from __future__ import annotations

from abc import abstractmethod

from adapters.linux.netlink.seam import Netlink
from domain.ipam.address import Cidr
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.linux.link import Link, PortVlan, Route

# `Link.state` by the kernel's numbers (IF_OPER_…, RFC 2863), as `ip` and the reference plugin print it.
OPERATIONAL_STATES = ("unknown", "not-present", "down", "lower-layer-down", "testing", "dormant", "up")


class KernelAddress(Value):
    """`wide` is global scope; `tentative` and `duplicate` are duplicate address detection's."""

    address: Cidr
    wide: bool
    tentative: bool = False
    duplicate: bool = False


class BridgeNetlink(Netlink):
    """Errors: `KernelError`."""

    @abstractmethod
    def port(self, name: str) -> Link | None:
        """The device of that name with what a bridge makes of it, but for its VLANs; or None."""

    @abstractmethod
    def ports(self) -> list[Link]:
        """All devices, as `port` gives them."""

    @abstractmethod
    def create_bridge(self, name: str, mtu: int, *, filters_vlans: bool) -> None:
        """`mtu` 0 leaves the kernel's default. `file exists` if the name is taken."""

    @abstractmethod
    def set_promiscuous(self, index: int) -> None: ...

    @abstractmethod
    def set_alias(self, index: int, alias: str) -> None: ...

    @abstractmethod
    def enslave(self, index: int, bridge: int) -> None: ...

    @abstractmethod
    def set_port(self, index: int, *, hairpin: bool, isolated: bool) -> None:
        """For a port of a bridge."""

    @abstractmethod
    def port_vlans(self, index: int) -> list[PortVlan]:
        """() for what is no port."""

    @abstractmethod
    def add_vlans(self, index: int, vlans: list[PortVlan]) -> None:
        """For a port of a bridge that filters VLANs; those that it has already change their flags."""

    @abstractmethod
    def remove_vlans(self, index: int, numbers: list[int]) -> None: ...

    @abstractmethod
    def assign_address(self, index: int, address: Cidr, *, settled: bool) -> None:
        """With the broadcast address that an IPv4 network of more than two addresses has.

        `settled` is for IPv6: no duplicate address detection. `file exists` if it is there.
        """

    @abstractmethod
    def remove_address(self, index: int, address: Cidr) -> None: ...

    @abstractmethod
    def known_addresses(self, index: int, version: int) -> list[KernelAddress]:
        """In the kernel's order."""

    @abstractmethod
    def append_route(self, route: Route) -> None:
        """Protocol boot; beside others to the same destination. `file exists` for the very same one."""

    @abstractmethod
    def known_routes(self, version: int) -> list[Route]:
        """The unicast routes over one device of all tables."""
