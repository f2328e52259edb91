"""What the bridge plugin says to the kernel beyond `rtnetlink`, and what it is told, as bytes.

Invariant: as there.
"""

from __future__ import annotations

from adapters.linux.netlink.bridge_seam import OPERATIONAL_STATES, KernelAddress
from adapters.linux.netlink.messages import (
    CREATE_ONLY,
    NLA_F_NESTED,
    NLM_F_ACK,
    NLM_F_APPEND,
    NLM_F_CREATE,
    NLM_F_DUMP,
    NetlinkRequest,
    all_attributes,
    attribute,
    attributes,
    number_in,
    text_attribute,
    text_in,
    u16,
    u32,
)
from adapters.linux.netlink.rtnetlink import (
    FAMILIES,
    IFA_ADDRESS,
    IFA_F_TENTATIVE,
    IFA_LOCAL,
    IFADDRMSG,
    IFINFOMSG,
    IFLA_EXT_MASK,
    IFLA_IFNAME,
    IFLA_INFO_DATA,
    IFLA_INFO_KIND,
    IFLA_INFO_SLAVE_DATA,
    IFLA_INFO_SLAVE_KIND,
    IFLA_LINKINFO,
    IFLA_MTU,
    RT_SCOPE_UNIVERSE,
    RT_TABLE_MAIN,
    RTA_DST,
    RTA_GATEWAY,
    RTA_OIF,
    RTA_TABLE,
    RTEXT_FILTER_SKIP_STATS,
    RTM_DELLINK,
    RTM_GETLINK,
    RTM_GETROUTE,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_NEWROUTE,
    RTM_SETLINK,
    RTMSG,
    RTN_UNICAST,
    RTPROT_BOOT,
    address_bytes,
    link_header,
    read_link,
    version_in,
)
from domain.ipam.address import V4, V6, Address, Cidr
from domain.linux.link import Link, PortVlan, Route

AF_BRIDGE = 7
RTM_DELADDR = 21
_CREATE_BESIDE = NLM_F_CREATE | NLM_F_APPEND

IFLA_MASTER, IFLA_PROTINFO, IFLA_OPERSTATE, IFLA_IFALIAS, IFLA_AF_SPEC = 10, 12, 16, 20, 26
IFLA_BR_VLAN_FILTERING = 7
IFLA_BRPORT_MODE, IFLA_BRPORT_ISOLATED = 4, 33  # the mode is hairpin
IFLA_BRIDGE_VLAN_INFO = 2
RTEXT_FILTER_BRVLAN = 2
IFF_PROMISC = 0x100
BRIDGE_VLAN_INFO_PVID, BRIDGE_VLAN_INFO_UNTAGGED = 2, 4

IFA_BROADCAST, IFA_FLAGS = 4, 8
IFA_F_NODAD, IFA_F_DADFAILED = 0x02, 0x08
_LEAST_WITH_BROADCAST = 30  # the longest IPv4 prefix that leaves room for a broadcast address

RTA_PRIORITY, RTA_METRICS = 6, 8
RTAX_MTU, RTAX_ADVMSS = 2, 8
RT_TABLE_COMPAT = 252  # the number is in an attribute


def get_links() -> NetlinkRequest:
    """A dump of `read_port`."""
    return NetlinkRequest(
        RTM_GETLINK, NLM_F_DUMP, link_header() + attribute(IFLA_EXT_MASK, u32(RTEXT_FILTER_SKIP_STATS))
    )


def new_bridge(name: str, mtu: int, *, filters_vlans: bool) -> NetlinkRequest:
    data = attribute(IFLA_INFO_DATA, attribute(IFLA_BR_VLAN_FILTERING, b"\1")) if filters_vlans else b""
    own = text_attribute(IFLA_IFNAME, name) + (attribute(IFLA_MTU, u32(mtu)) if mtu else b"")
    information = attribute(IFLA_LINKINFO, text_attribute(IFLA_INFO_KIND, "bridge") + data)
    return NetlinkRequest(RTM_NEWLINK, NLM_F_ACK | CREATE_ONLY, link_header() + own + information)


def set_promiscuous(index: int) -> NetlinkRequest:
    return NetlinkRequest(RTM_SETLINK, NLM_F_ACK, link_header(index, IFF_PROMISC, IFF_PROMISC))


def set_alias(index: int, alias: str) -> NetlinkRequest:
    return NetlinkRequest(RTM_SETLINK, NLM_F_ACK, link_header(index) + attribute(IFLA_IFALIAS, alias.encode()))


def set_master(index: int, bridge: int) -> NetlinkRequest:
    return NetlinkRequest(RTM_SETLINK, NLM_F_ACK, link_header(index) + attribute(IFLA_MASTER, u32(bridge)))


def set_port(index: int, *, hairpin: bool, isolated: bool) -> NetlinkRequest:
    settings = attribute(IFLA_BRPORT_MODE, bytes([hairpin])) + attribute(IFLA_BRPORT_ISOLATED, bytes([isolated]))
    body = link_header(index, family=AF_BRIDGE) + attribute(IFLA_PROTINFO | NLA_F_NESTED, settings)
    return NetlinkRequest(RTM_SETLINK, NLM_F_ACK, body)


def get_vlans() -> NetlinkRequest:
    """A dump of `read_vlans`, of all ports."""
    body = link_header(family=AF_BRIDGE) + attribute(IFLA_EXT_MASK, u32(RTEXT_FILTER_BRVLAN))
    return NetlinkRequest(RTM_GETLINK, NLM_F_DUMP, body)


def add_vlans(index: int, vlans: list[PortVlan]) -> NetlinkRequest:
    return NetlinkRequest(RTM_SETLINK, NLM_F_ACK, _vlans(index, vlans))


def remove_vlans(index: int, numbers: list[int]) -> NetlinkRequest:
    return NetlinkRequest(RTM_DELLINK, NLM_F_ACK, _vlans(index, [PortVlan(number) for number in numbers]))


def _vlans(index: int, vlans: list[PortVlan]) -> bytes:
    listed = b""
    for vlan in vlans:
        flags = vlan.pvid * BRIDGE_VLAN_INFO_PVID | vlan.untagged * BRIDGE_VLAN_INFO_UNTAGGED
        listed += attribute(IFLA_BRIDGE_VLAN_INFO, u16(flags) + u16(vlan.number))
    return link_header(index, family=AF_BRIDGE) + attribute(IFLA_AF_SPEC, listed)


def new_address(index: int, address: Cidr, *, settled: bool) -> NetlinkRequest:
    """As `BridgeNetlink.assign_address` says."""
    flags, more = 0, b""
    if address.version == V6:
        flags = IFA_F_NODAD if settled else 0
    elif address.length <= _LEAST_WITH_BROADCAST:
        more = attribute(IFA_BROADCAST, address_bytes(Address(V4, address.network.end - 1)))
    return NetlinkRequest(RTM_NEWADDR, NLM_F_ACK | CREATE_ONLY, _address(index, address, flags) + more)


def delete_address(index: int, address: Cidr) -> NetlinkRequest:
    return NetlinkRequest(RTM_DELADDR, NLM_F_ACK, _address(index, address, 0))


def _address(index: int, address: Cidr, flags: int) -> bytes:
    data = address_bytes(address.address)
    header = bytes([FAMILIES[address.version], address.length, flags, RT_SCOPE_UNIVERSE]) + u32(index)
    return header + attribute(IFA_LOCAL, data) + attribute(IFA_ADDRESS, data)


def append_route(route: Route) -> NetlinkRequest:
    destination, table = route.destination, route.table or RT_TABLE_MAIN
    narrow = table if table < 256 else RT_TABLE_COMPAT
    family, length = FAMILIES[destination.version], destination.length
    header = bytes([family, length, 0, 0, narrow, RTPROT_BOOT, route.scope, RTN_UNICAST])
    body = header + u32(0) + attribute(RTA_TABLE, u32(table)) + attribute(RTA_OIF, u32(route.link))
    if destination.length:
        body += attribute(RTA_DST, address_bytes(destination.address))
    if route.gateway is not None:
        body += attribute(RTA_GATEWAY, address_bytes(route.gateway))
    if route.priority:
        body += attribute(RTA_PRIORITY, u32(route.priority))
    metrics = ((RTAX_MTU, route.mtu), (RTAX_ADVMSS, route.advmss))
    wanted = b"".join([attribute(kind, u32(number)) for kind, number in metrics if number])
    return NetlinkRequest(
        RTM_NEWROUTE, NLM_F_ACK | _CREATE_BESIDE, body + (attribute(RTA_METRICS, wanted) if wanted else b"")
    )


def get_all_routes(version: int) -> NetlinkRequest:
    """A dump of `read_any_route`, of all tables."""
    return NetlinkRequest(RTM_GETROUTE, NLM_F_DUMP, bytes([FAMILIES[version]]) + bytes(RTMSG - 1))


def read_port(body: bytes) -> Link:
    found = attributes(body[IFINFOMSG:])
    information = attributes(found.get(IFLA_LINKINFO, b""))
    of_bridge = text_in(information.get(IFLA_INFO_SLAVE_KIND, b"")) == "bridge"
    port = attributes(information.get(IFLA_INFO_SLAVE_DATA, b"")) if of_bridge else {}
    state = number_in(found.get(IFLA_OPERSTATE, b""))
    return read_link(body).replace(
        master=number_in(found.get(IFLA_MASTER, b"")),
        state=OPERATIONAL_STATES[state] if state < len(OPERATIONAL_STATES) else "unknown",
        alias=text_in(found.get(IFLA_IFALIAS, b"")),
        promiscuous=bool(number_in(body[8:12]) & IFF_PROMISC),
        hairpin=any(port.get(IFLA_BRPORT_MODE, b"")),
        isolated=any(port.get(IFLA_BRPORT_ISOLATED, b"")),
    )


def read_vlans(body: bytes) -> tuple[int, list[PortVlan]]:
    """(port's index, what it is a member of)."""
    listed = all_attributes(attributes(body[IFINFOMSG:]).get(IFLA_AF_SPEC, b""))
    members = [(number_in(data[:2]), number_in(data[2:4])) for kind, data in listed if kind == IFLA_BRIDGE_VLAN_INFO]
    vlans = [
        PortVlan(number, bool(flags & BRIDGE_VLAN_INFO_PVID), bool(flags & BRIDGE_VLAN_INFO_UNTAGGED))
        for flags, number in members
    ]
    return number_in(body[4:8]), vlans


def read_known_address(body: bytes) -> tuple[int, KernelAddress] | None:
    """(device's index, address), or None for one of another family."""
    version = version_in(body, IFADDRMSG)
    found = attributes(body[IFADDRMSG:])
    data = found.get(IFA_LOCAL) or found.get(IFA_ADDRESS)
    if version is None or data is None:
        return None
    flags = number_in(found[IFA_FLAGS]) if IFA_FLAGS in found else body[2]
    address = KernelAddress(
        address=Cidr(version, int.from_bytes(data), body[1]),
        wide=body[3] == RT_SCOPE_UNIVERSE,
        tentative=bool(flags & IFA_F_TENTATIVE),
        duplicate=bool(flags & IFA_F_DADFAILED),
    )
    return number_in(body[4:8]), address


def read_any_route(body: bytes) -> Route | None:
    """None for what is no unicast route."""
    version = version_in(body, RTMSG)
    if version is None or body[7] != RTN_UNICAST:
        return None
    found = attributes(body[RTMSG:])
    gateway, metrics = found.get(RTA_GATEWAY), attributes(found.get(RTA_METRICS, b""))
    return Route(
        link=number_in(found.get(RTA_OIF, b"")),
        destination=Cidr(version, int.from_bytes(found.get(RTA_DST, b"")), body[1]),
        gateway=None if gateway is None else Address(version, int.from_bytes(gateway)),
        priority=number_in(found.get(RTA_PRIORITY, b"")),
        table=number_in(found[RTA_TABLE]) if RTA_TABLE in found else body[4],
        scope=body[6],
        mtu=number_in(metrics.get(RTAX_MTU, b"")),
        advmss=number_in(metrics.get(RTAX_ADVMSS, b"")),
    )
