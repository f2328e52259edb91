"""Bridges, ports, VLANs and the finer points of addresses and routes over a bare socket.

Invariant: as for its base class; all VLANs of a port are asked for in one request.
"""

from __future__ import annotations

from adapters.linux.netlink import rtnetlink_bridge as messages
from adapters.linux.netlink.bridge_seam import BridgeNetlink, KernelAddress
from adapters.linux.netlink.lean import LeanNetlink
from adapters.linux.netlink.rtnetlink import get_addresses, get_link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.linux.link import Link, PortVlan, Route


class LeanBridgeNetlink(LeanNetlink, BridgeNetlink):
    """Opened in the calling thread's current network namespace, for which it speaks from then on."""

    def port(self, name: str) -> Link | None:
        answer = self._look_up(self._encoded(get_link, name))
        return None if answer is None else messages.read_port(answer.body)

    def ports(self) -> list[Link]:
        return [messages.read_port(answer.body) for answer in self._dump(messages.get_links())]

    def create_bridge(self, name: str, mtu: int, *, filters_vlans: bool) -> None:
        self._ask(self._encoded(messages.new_bridge, name, mtu, filters_vlans=filters_vlans))

    def set_promiscuous(self, index: int) -> None:
        self._ask(messages.set_promiscuous(index))

    def set_alias(self, index: int, alias: str) -> None:
        self._ask(self._encoded(messages.set_alias, index, alias))

    def enslave(self, index: int, bridge: int) -> None:
        self._ask(messages.set_master(index, bridge))

    def set_port(self, index: int, *, hairpin: bool, isolated: bool) -> None:
        self._ask(messages.set_port(index, hairpin=hairpin, isolated=isolated))

    def port_vlans(self, index: int) -> list[PortVlan]:
        ports = [messages.read_vlans(answer.body) for answer in self._dump(messages.get_vlans())]
        return [vlan for port, vlans in ports for vlan in vlans if port == index]

    def add_vlans(self, index: int, vlans: list[PortVlan]) -> None:
        if vlans:
            self._ask(messages.add_vlans(index, vlans))

    def remove_vlans(self, index: int, numbers: list[int]) -> None:
        if numbers:
            self._ask(messages.remove_vlans(index, numbers))

    def assign_address(self, index: int, address: Cidr, *, settled: bool) -> None:
        self._ask(messages.new_address(index, address, settled=settled))

    def remove_address(self, index: int, address: Cidr) -> None:
        self._ask(messages.delete_address(index, address))

    def known_addresses(self, index: int, version: int) -> list[KernelAddress]:
        listed = [messages.read_known_address(answer.body) for answer in self._dump(get_addresses(index, version))]
        return [found[1] for found in listed if found and found[0] == index]

    def append_route(self, route: Route) -> None:
        self._ask(self._encoded(messages.append_route, route))

    def known_routes(self, version: int) -> list[Route]:
        listed = [messages.read_any_route(answer.body) for answer in self._dump(messages.get_all_routes(version))]
        return [found for found in listed if found]
