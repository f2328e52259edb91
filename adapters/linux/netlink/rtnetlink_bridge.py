"""What the bridge plugin says to the kernel beyond adapters/linux/rtnetlink, and what it is told, as bytes.

Invariant: as there.
"""

from __future__ import annotations

from adapters.linux.netlink.bridge_seam import OPERATIONAL_STATES, KernelAddress
from adapters.linux.netlink.messages import (
    ACK,
    CREATE_ONLY,
    DUMP,
    NESTED,
    Request,
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
    ADDRESS_HEADER,
    DELETE_LINK,
    FAMILIES,
    GET_LINK,
    GET_ROUTES,
    LINK_HEADER,
    NEW_ADDRESS,
    NEW_LINK,
    NEW_ROUTE,
    ROUTE_HEADER,
    SET_LINK,
    address_bytes,
    link_header,
    read_link,
    version_in,
)
from domain.ipam.address import V4, V6, Address, Cidr
from domain.linux.link import Link, PortVlan, Route

_DELETE_ADDRESS = 21  # RTM_DELADDR
_BRIDGE = 7  # AF_BRIDGE
_CREATE_BESIDE = 0x400 | 0x800  # NLM_F_CREATE | NLM_F_APPEND

# IFLA_…
_NAME, _MTU, _MASTER, _AS_PORT, _STATE, _INFORMATION, _ALIAS, _BY_FAMILY, _EXTENT = 3, 4, 10, 12, 16, 18, 20, 26, 29
_KIND, _DATA, _PORT_KIND, _PORT_DATA = 1, 2, 4, 5  # IFLA_INFO_…
_FILTERS_VLANS = 7  # IFLA_BR_VLAN_FILTERING
_HAIRPIN, _ISOLATED = 4, 33  # IFLA_BRPORT_MODE, IFLA_BRPORT_ISOLATED
_VLAN = 2  # IFLA_BRIDGE_VLAN_INFO
_WITHOUT_STATISTICS, _WITH_VLANS = 8, 2  # RTEXT_FILTER_SKIP_STATS, RTEXT_FILTER_BRVLAN
_PROMISCUOUS = 0x100  # IFF_PROMISC
_PVID, _UNTAGGED = 2, 4  # BRIDGE_VLAN_INFO_…

_ADDRESS, _LOCAL, _BROADCAST, _FLAGS = 1, 2, 4, 8  # IFA_…
_NO_DETECTION, _DUPLICATE, _TENTATIVE = 0x02, 0x08, 0x40  # IFA_F_NODAD, IFA_F_DADFAILED, IFA_F_TENTATIVE
_GLOBAL = 0  # RT_SCOPE_UNIVERSE
_LEAST_WITH_BROADCAST = 30  # the longest IPv4 prefix that leaves room for a broadcast address

_TARGET, _OUT, _GATEWAY, _PRIORITY, _METRICS, _TABLE = 1, 4, 5, 6, 8, 15  # RTA_…
_ROUTE_MTU, _ROUTE_MSS = 2, 8  # RTAX_MTU, RTAX_ADVMSS
_MAIN, _BOOT, _UNICAST = 254, 3, 1
_WIDE_TABLE = 252  # RT_TABLE_COMPAT: the number is in an attribute


def get_links() -> Request:
    """A dump of `read_port`."""
    return Request(GET_LINK, DUMP, link_header() + attribute(_EXTENT, u32(_WITHOUT_STATISTICS)))


def new_bridge(name: str, mtu: int, *, filters_vlans: bool) -> Request:
    data = attribute(_DATA, attribute(_FILTERS_VLANS, b"\1")) if filters_vlans else b""
    own = text_attribute(_NAME, name) + (attribute(_MTU, u32(mtu)) if mtu else b"")
    information = attribute(_INFORMATION, text_attribute(_KIND, "bridge") + data)
    return Request(NEW_LINK, ACK | CREATE_ONLY, link_header() + own + information)


def set_promiscuous(index: int) -> Request:
    return Request(SET_LINK, ACK, link_header(index, _PROMISCUOUS, _PROMISCUOUS))


def set_alias(index: int, alias: str) -> Request:
    return Request(SET_LINK, ACK, link_header(index) + attribute(_ALIAS, alias.encode()))


def set_master(index: int, bridge: int) -> Request:
    return Request(SET_LINK, ACK, link_header(index) + attribute(_MASTER, u32(bridge)))


def set_port(index: int, *, hairpin: bool, isolated: bool) -> Request:
    settings = attribute(_HAIRPIN, bytes([hairpin])) + attribute(_ISOLATED, bytes([isolated]))
    return Request(SET_LINK, ACK, link_header(index, family=_BRIDGE) + attribute(_AS_PORT | NESTED, settings))


def get_vlans() -> Request:
    """A dump of `read_vlans`, of all ports."""
    return Request(GET_LINK, DUMP, link_header(family=_BRIDGE) + attribute(_EXTENT, u32(_WITH_VLANS)))


def add_vlans(index: int, vlans: list[PortVlan]) -> Request:
    return Request(SET_LINK, ACK, _vlans(index, vlans))


def remove_vlans(index: int, numbers: list[int]) -> Request:
    return Request(DELETE_LINK, ACK, _vlans(index, [PortVlan(number) for number in numbers]))


def _vlans(index: int, vlans: list[PortVlan]) -> bytes:
    listed = [attribute(_VLAN, u16(vlan.pvid * _PVID | vlan.untagged * _UNTAGGED) + u16(vlan.number)) for vlan in vlans]
    return link_header(index, family=_BRIDGE) + attribute(_BY_FAMILY, b"".join(listed))


def new_address(index: int, address: Cidr, *, settled: bool) -> Request:
    """As `BridgeNetlink.assign_address` says."""
    flags, more = 0, b""
    if address.version == V6:
        flags = _NO_DETECTION if settled else 0
    elif address.length <= _LEAST_WITH_BROADCAST:
        more = attribute(_BROADCAST, address_bytes(Address(V4, address.network.end - 1)))
    return Request(NEW_ADDRESS, ACK | CREATE_ONLY, _address(index, address, flags) + more)


def delete_address(index: int, address: Cidr) -> Request:
    return Request(_DELETE_ADDRESS, ACK, _address(index, address, 0))


def _address(index: int, address: Cidr, flags: int) -> bytes:
    data = address_bytes(address.address)
    header = bytes([FAMILIES[address.version], address.length, flags, _GLOBAL]) + u32(index)
    return header + attribute(_LOCAL, data) + attribute(_ADDRESS, data)


def append_route(route: Route) -> Request:
    destination, table = route.destination, route.table or _MAIN
    narrow = table if table < 256 else _WIDE_TABLE
    header = bytes([FAMILIES[destination.version], destination.length, 0, 0, narrow, _BOOT, route.scope, _UNICAST])
    body = header + u32(0) + attribute(_TABLE, u32(table)) + attribute(_OUT, u32(route.link))
    if destination.length:
        body += attribute(_TARGET, address_bytes(destination.address))
    if route.gateway is not None:
        body += attribute(_GATEWAY, address_bytes(route.gateway))
    if route.priority:
        body += attribute(_PRIORITY, u32(route.priority))
    metrics = ((_ROUTE_MTU, route.mtu), (_ROUTE_MSS, route.advmss))
    wanted = b"".join([attribute(kind, u32(number)) for kind, number in metrics if number])
    return Request(NEW_ROUTE, ACK | _CREATE_BESIDE, body + (attribute(_METRICS, wanted) if wanted else b""))


def get_all_routes(version: int) -> Request:
    """A dump of `read_any_route`, of all tables."""
    return Request(GET_ROUTES, DUMP, bytes([FAMILIES[version]]) + bytes(ROUTE_HEADER - 1))


def read_port(body: bytes) -> Link:
    found = attributes(body[LINK_HEADER:])
    information = attributes(found.get(_INFORMATION, b""))
    of_bridge = text_in(information.get(_PORT_KIND, b"")) == "bridge"
    port = attributes(information.get(_PORT_DATA, b"")) if of_bridge else {}
    state = number_in(found.get(_STATE, b""))
    return read_link(body).replace(
        master=number_in(found.get(_MASTER, b"")),
        state=OPERATIONAL_STATES[state] if state < len(OPERATIONAL_STATES) else "unknown",
        alias=text_in(found.get(_ALIAS, b"")),
        promiscuous=bool(number_in(body[8:12]) & _PROMISCUOUS),
        hairpin=any(port.get(_HAIRPIN, b"")),
        isolated=any(port.get(_ISOLATED, b"")),
    )


def read_vlans(body: bytes) -> tuple[int, list[PortVlan]]:
    """(port's index, what it is a member of)."""
    listed = all_attributes(attributes(body[LINK_HEADER:]).get(_BY_FAMILY, b""))
    members = [(number_in(data[:2]), number_in(data[2:4])) for kind, data in listed if kind == _VLAN]
    vlans = [PortVlan(number, bool(flags & _PVID), bool(flags & _UNTAGGED)) for flags, number in members]
    return number_in(body[4:8]), vlans


def read_known_address(body: bytes) -> tuple[int, KernelAddress] | None:
    """(device's index, address), or None for one of another family."""
    version = version_in(body, ADDRESS_HEADER)
    found = attributes(body[ADDRESS_HEADER:])
    data = found.get(_LOCAL) or found.get(_ADDRESS)
    if version is None or data is None:
        return None
    flags = number_in(found[_FLAGS]) if _FLAGS in found else body[2]
    address = KernelAddress(
        address=Cidr(version, int.from_bytes(data), body[1]),
        wide=body[3] == _GLOBAL,
        tentative=bool(flags & _TENTATIVE),
        duplicate=bool(flags & _DUPLICATE),
    )
    return number_in(body[4:8]), address


def read_any_route(body: bytes) -> Route | None:
    """None for what is no unicast route."""
    version = version_in(body, ROUTE_HEADER)
    if version is None or body[7] != _UNICAST:
        return None
    found = attributes(body[ROUTE_HEADER:])
    gateway, metrics = found.get(_GATEWAY), attributes(found.get(_METRICS, b""))
    return Route(
        link=number_in(found.get(_OUT, b"")),
        destination=Cidr(version, int.from_bytes(found.get(_TARGET, b"")), body[1]),
        gateway=None if gateway is None else Address(version, int.from_bytes(gateway)),
        priority=number_in(found.get(_PRIORITY, b"")),
        table=number_in(found[_TABLE]) if _TABLE in found else body[4],
        scope=body[6],
        mtu=number_in(metrics.get(_ROUTE_MTU, b"")),
        advmss=number_in(metrics.get(_ROUTE_MSS, b"")),
    )
