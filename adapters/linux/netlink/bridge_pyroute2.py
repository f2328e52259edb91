"""Bridges, ports, VLANs and the finer points of addresses and routes through the pyroute2 library.

Invariant: as for its base class; nothing is asked of the library that it does not do in one request.
"""

from __future__ import annotations

from errno import ENODEV
from socket import AF_BRIDGE

from adapters.linux.netlink.bridge_seam import OPERATIONAL_STATES, BridgeNetlink, KernelAddress
from adapters.linux.netlink.on_pyroute2 import (
    FAMILIES,
    RT_TABLE_MAIN,
    RTN_UNICAST,
    RTPROT_BOOT,
    Pyroute2Netlink,
    read_link,
)
from adapters.linux.netlink.seam import KernelError
from domain.ipam.address import V4, Address, Cidr
from domain.linux.link import PortVlan, Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.linux.link import Link

IFF_PROMISC = 0x100
IFA_F_NODAD, IFA_F_DADFAILED, IFA_F_TENTATIVE = 0x02, 0x08, 0x40
RT_SCOPE_UNIVERSE = 0
BRIDGE_VLAN_INFO_PVID, BRIDGE_VLAN_INFO_UNTAGGED = 2, 4
RTEXT_FILTER_BRVLAN = 2
# The library spells the states without their hyphens.
_STATES = {state.replace("-", "").upper(): state for state in OPERATIONAL_STATES}
_LONGEST_WITH_BROADCAST = 30  # the longest IPv4 prefix that leaves room for a broadcast address


class Pyroute2BridgeNetlink(Pyroute2Netlink, BridgeNetlink):
    """Opened in the calling thread's current network namespace; used and closed in the same thread."""

    def port(self, name: str) -> Link | None:
        try:
            (message,) = self._asked_again("link", "get", ifname=name)
        except KernelError as error:
            if error.errno == ENODEV:
                return None
            raise
        return _read_port(message)

    def ports(self) -> list[Link]:
        return [_read_port(message) for message in self._dump("link")]

    def create_bridge(self, name: str, mtu: int, *, filters_vlans: bool) -> None:
        fields: dict[str, object] = {"mtu": mtu} if mtu else {}
        if filters_vlans:
            fields["br_vlan_filtering"] = 1
        self._ask("link", "add", ifname=name, kind="bridge", **fields)

    def set_promiscuous(self, index: int) -> None:
        self._ask("link", "set", index=index, flags=IFF_PROMISC, change=IFF_PROMISC)

    def set_alias(self, index: int, alias: str) -> None:
        self._ask("link", "set", index=index, ifalias=alias)

    def enslave(self, index: int, bridge: int) -> None:
        self._ask("link", "set", index=index, master=bridge)

    def set_port(self, index: int, *, hairpin: bool, isolated: bool) -> None:
        self._ask("brport", "set", index=index, mode=int(hairpin), isolated=int(isolated))

    def port_vlans(self, index: int) -> list[PortVlan]:
        found = []
        for message in self._dump("link", family=AF_BRIDGE, ext_mask=RTEXT_FILTER_BRVLAN, match={"index": index}):
            known = message.get_attr("IFLA_AF_SPEC")
            for vlan in known.get_attrs("IFLA_BRIDGE_VLAN_INFO") if known else ():
                flags = vlan["flags"]
                found.append(
                    PortVlan(vlan["vid"], bool(flags & BRIDGE_VLAN_INFO_PVID), bool(flags & BRIDGE_VLAN_INFO_UNTAGGED))
                )
        return found

    def add_vlans(self, index: int, vlans: list[PortVlan]) -> None:
        for vlan in vlans:
            flags = (BRIDGE_VLAN_INFO_PVID if vlan.pvid else 0) | (BRIDGE_VLAN_INFO_UNTAGGED if vlan.untagged else 0)
            self._ask("vlan_filter", "add", index=index, vlan_info={"vid": vlan.number, "flags": flags})

    def remove_vlans(self, index: int, numbers: list[int]) -> None:
        for number in numbers:
            self._ask("vlan_filter", "del", index=index, vlan_info={"vid": number})

    def assign_address(self, index: int, address: Cidr, *, settled: bool) -> None:
        fields: dict[str, object] = {}
        if address.version == V4 and address.length <= _LONGEST_WITH_BROADCAST:
            fields["broadcast"] = str(Address(V4, address.network.end - 1))
        elif address.version != V4 and settled:
            fields["flags"] = IFA_F_NODAD
        self._ask("addr", "add", **_address_fields(index, address), **fields)

    def remove_address(self, index: int, address: Cidr) -> None:
        self._ask("addr", "del", **_address_fields(index, address))

    def known_addresses(self, index: int, version: int) -> list[KernelAddress]:
        found = []
        for message in self._dump("addr", family=FAMILIES[version], match={"index": index}):
            text = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
            flags = message.get_attr("IFA_FLAGS") or message["flags"]
            found.append(
                KernelAddress(
                    address=Address.parse(text).host_cidr.replace(length=message["prefixlen"]),
                    wide=message["scope"] == RT_SCOPE_UNIVERSE,
                    tentative=bool(flags & IFA_F_TENTATIVE),
                    duplicate=bool(flags & IFA_F_DADFAILED),
                )
            )
        return found

    def append_route(self, route: Route) -> None:
        fields: dict[str, object] = {} if route.gateway is None else {"gateway": str(route.gateway)}
        if route.priority:
            fields["priority"] = route.priority
        metrics = {name: value for name, value in (("mtu", route.mtu), ("advmss", route.advmss)) if value}
        if metrics:
            fields["metrics"] = metrics
        self._ask(
            "route",
            "append",
            family=FAMILIES[route.destination.version],
            dst=str(route.destination.address),
            dst_len=route.destination.length,
            oif=route.link,
            table=route.table or RT_TABLE_MAIN,
            proto=RTPROT_BOOT,
            type=RTN_UNICAST,
            scope=route.scope,
            **fields,
        )

    def known_routes(self, version: int) -> list[Route]:
        listed = self._dump("route", family=FAMILIES[version])
        return [_read_route(message, version) for message in listed if message["type"] == RTN_UNICAST]


def _address_fields(index: int, address: Cidr) -> dict[str, object]:
    text, family = str(address.address), FAMILIES[address.version]
    return {"index": index, "family": family, "address": text, "local": text, "prefixlen": address.length}


def _read_port(message: Any) -> Link:
    information = message.get_attr("IFLA_LINKINFO")
    as_port = information and information.get_attr("IFLA_INFO_SLAVE_DATA")
    if as_port is not None and not hasattr(as_port, "get_attr"):
        as_port = None  # of something that is no bridge
    return read_link(message).replace(
        master=message.get_attr("IFLA_MASTER") or 0,
        state=_STATES.get(message.get_attr("IFLA_OPERSTATE"), "unknown"),
        alias=message.get_attr("IFLA_IFALIAS") or "",
        promiscuous=bool(message["flags"] & IFF_PROMISC),
        hairpin=bool(as_port and as_port.get_attr("IFLA_BRPORT_MODE")),
        isolated=bool(as_port and as_port.get_attr("IFLA_BRPORT_ISOLATED")),
    )


def _read_route(message: Any, version: int) -> Route:
    target, gateway = message.get_attr("RTA_DST"), message.get_attr("RTA_GATEWAY")
    metrics = message.get_attr("RTA_METRICS")
    number = Address.parse(target).number if target else 0
    return Route(
        link=message.get_attr("RTA_OIF") or 0,
        destination=Cidr(version, number, message["dst_len"]),
        gateway=Address.parse(gateway) if gateway else None,
        priority=message.get_attr("RTA_PRIORITY") or 0,
        table=message.get_attr("RTA_TABLE") or message["table"],
        scope=message["scope"],
        mtu=(metrics and metrics.get_attr("RTAX_MTU")) or 0,
        advmss=(metrics and metrics.get_attr("RTAX_ADVMSS")) or 0,
    )
