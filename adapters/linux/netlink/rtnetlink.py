"""What is said to the kernel about devices, addresses and routes, and what it says of them, as bytes.

Each request is a function from the seam's words (adapters/linux/netlink) to a message, each answer one back. Numbers
are those of the kernel's headers; their names are in the comments.

Invariant: pure, and complete without what the kernel would fill in by itself: an attribute is sent only if it says
something.
"""

from __future__ import annotations

from adapters.linux.netlink.messages import (
    ACK,
    CREATE_ONLY,
    DUMP,
    Request,
    attribute,
    attributes,
    number_in,
    signed_in,
    text_attribute,
    text_in,
    u32,
)
from adapters.linux.netlink.seam import SCOPE_NAMES, SCOPES, KernelRoute
from domain.ipam.address import BITS, V4, V6, Address, Cidr
from domain.linux.link import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.linux.netlink.seam import PairRequest

# RTM_…
NEW_LINK, DELETE_LINK, GET_LINK, SET_LINK = 16, 17, 18, 19
NEW_ADDRESS, GET_ADDRESSES = 20, 22
NEW_ROUTE, GET_ROUTES = 24, 26
NEW_NAMESPACE_ID, GET_NAMESPACE_ID = 88, 90

FAMILIES = {V4: 2, V6: 10}  # AF_INET, AF_INET6
VERSIONS = {number: version for version, number in FAMILIES.items()}

# IFLA_…
_MAC, _NAME, _MTU, _LINK, _QUEUE_LENGTH, _INFORMATION, _NAMESPACE_FD = 1, 3, 4, 5, 13, 18, 28
_EXTENT, _TX_QUEUES, _RX_QUEUES, _LINK_NAMESPACE = 29, 31, 32, 37
_KIND, _DATA, _PEER = 1, 2, 1  # IFLA_INFO_KIND, IFLA_INFO_DATA; in the data VETH_INFO_PEER or IFLA_NETKIT_PEER_INFO
_POLICY, _PEER_POLICY, _MODE, _SCRUB, _PEER_SCRUB = 3, 4, 5, 6, 7  # IFLA_NETKIT_…
_WITHOUT_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS: they are counted over all processors
_UP = 1  # IFF_UP

_ADDRESS, _LOCAL = 1, 2  # IFA_…
_TARGET, _OUT, _GATEWAY, _TABLE = 1, 4, 5, 15  # RTA_…
_MAIN, _BOOT, _UNICAST = 254, 3, 1  # RT_TABLE_MAIN, RTPROT_BOOT, RTN_UNICAST: every route that we make
_LEARNED = 9  # RTPROT_RA
_NSID, _FD = 1, 3  # NETNSA_…
LINK_HEADER, ADDRESS_HEADER, ROUTE_HEADER, _NAMESPACE_HEADER = 16, 8, 12, 4


def link_header(index: int = 0, flags: int = 0, change: int = 0, family: int = 0) -> bytes:
    return bytes([family, 0, 0, 0]) + u32(index) + u32(flags) + u32(change)


def get_link(name: str | None = None, index: int = 0) -> Request:
    """By name, or else by index. The answer is one `read_link`."""
    which = b"" if name is None else text_attribute(_NAME, name)
    return Request(GET_LINK, 0, link_header(index) + which + attribute(_EXTENT, u32(_WITHOUT_STATISTICS)))


def new_pair(pair: PairRequest) -> Request:
    """The peer is born inside its namespace. Only veth has a queue length, and queues at its peer too."""
    own, peer = text_attribute(_NAME, pair.name), text_attribute(_NAME, pair.peer_name)
    peer += attribute(_NAMESPACE_FD, u32(pair.peer_namespace))
    if pair.mtu:
        own += attribute(_MTU, u32(pair.mtu))
        peer += attribute(_MTU, u32(pair.mtu))
    if pair.mac:
        own += attribute(_MAC, _mac_bytes(pair.mac))
    queues = attribute(_TX_QUEUES, u32(pair.queues)) + attribute(_RX_QUEUES, u32(pair.queues)) if pair.queues else b""
    own += queues
    if pair.kind == "netkit":
        data = attribute(_PEER, link_header() + peer) + _netkit_without_rules()
    else:
        data = attribute(_PEER, link_header() + peer + queues)
        if pair.tx_queue_length is not None:
            own += attribute(_QUEUE_LENGTH, u32(pair.tx_queue_length))
    information = text_attribute(_KIND, pair.kind) + attribute(_DATA, data)
    return Request(NEW_LINK, ACK | CREATE_ONLY, link_header() + own + attribute(_INFORMATION, information))


def _netkit_without_rules() -> bytes:
    """Layer 2, forwarding without scrubbing on both ends: all of that is number 0."""
    return b"".join([attribute(kind, u32(0)) for kind in (_POLICY, _PEER_POLICY, _MODE, _SCRUB, _PEER_SCRUB)])


def set_up(index: int, *, up: bool) -> Request:
    return Request(SET_LINK, ACK, link_header(index, _UP if up else 0, _UP))


def set_mac(index: int, mac: str) -> Request:
    """ValueError for what is no Ethernet address."""
    return Request(SET_LINK, ACK, link_header(index) + attribute(_MAC, _mac_bytes(mac)))


def delete_link(index: int) -> Request:
    return Request(DELETE_LINK, ACK, link_header(index))


def new_address(index: int, address: Cidr) -> Request:
    data = address_bytes(address.address)
    header = bytes([FAMILIES[address.version], address.length, 0, 0]) + u32(index)
    return Request(NEW_ADDRESS, ACK | CREATE_ONLY, header + attribute(_LOCAL, data) + attribute(_ADDRESS, data))


def get_addresses(index: int, version: int) -> Request:
    """A dump of `read_address`. Kernels before 4.20 list those of all devices."""
    return Request(GET_ADDRESSES, DUMP, bytes([FAMILIES[version], 0, 0, 0]) + u32(index))


def new_route(index: int, destination: Cidr, gateway: Address | None, scope: str) -> Request:
    family, length = FAMILIES[destination.version], destination.length
    header = bytes([family, length, 0, 0, _MAIN, _BOOT, SCOPES[scope], _UNICAST]) + u32(0)
    body = header + (attribute(_TARGET, address_bytes(destination.address)) if length else b"")
    if gateway is not None:
        body += attribute(_GATEWAY, address_bytes(gateway))
    return Request(NEW_ROUTE, ACK | CREATE_ONLY, body + attribute(_OUT, u32(index)))


def get_routes(version: int) -> Request:
    """A dump of `read_route`. Kernels before 4.20 list all tables."""
    return Request(GET_ROUTES, DUMP, bytes([FAMILIES[version], 0, 0, 0, _MAIN, 0, 0, 0]) + u32(0))


def get_learned_routes() -> Request:
    """A dump of `read_learned_over`. Kernels before 4.20 list all IPv6 routes."""
    return Request(GET_ROUTES, DUMP, bytes([FAMILIES[V6], 0, 0, 0, 0, _LEARNED, 0, 0]) + u32(0))


def get_namespace_id(descriptor: int) -> Request:
    """The answer is one `read_namespace_id`."""
    return Request(GET_NAMESPACE_ID, 0, bytes(_NAMESPACE_HEADER) + attribute(_FD, u32(descriptor)))


def read_link(body: bytes) -> Link:
    found = attributes(body[LINK_HEADER:])
    information = attributes(found.get(_INFORMATION, b""))
    return Link(
        index=number_in(body[4:8]),
        name=text_in(found.get(_NAME, b"")),
        kind=text_in(information.get(_KIND, b"")),
        up=bool(number_in(body[8:12]) & _UP),
        mtu=number_in(found.get(_MTU, b"")),
        mac=found.get(_MAC, b"").hex(":"),
        peer_index=number_in(found.get(_LINK, b"")),
        peer_namespace=signed_in(found[_LINK_NAMESPACE]) if _LINK_NAMESPACE in found else None,
    )


def version_in(body: bytes, header: int) -> int | None:
    """The IP version that a message of so long a header is about; None for another family, or less than a header."""
    return VERSIONS.get(body[0]) if len(body) >= header else None


def read_address(body: bytes) -> tuple[int, Cidr] | None:
    """(device's index, address), or None for one of another family.

    The local address where a point-to-point device has two.
    """
    version = version_in(body, ADDRESS_HEADER)
    found = attributes(body[ADDRESS_HEADER:])
    data = found.get(_LOCAL) or found.get(_ADDRESS)
    if version is None or data is None:
        return None
    return number_in(body[4:8]), Cidr(version, int.from_bytes(data), body[1])


def read_route(body: bytes) -> KernelRoute | None:
    """None for what is no unicast route of the main table."""
    version = version_in(body, ROUTE_HEADER)
    if version is None or body[7] != _UNICAST:
        return None
    found = attributes(body[ROUTE_HEADER:])
    if (number_in(found[_TABLE]) if _TABLE in found else body[4]) != _MAIN:
        return None
    gateway = found.get(_GATEWAY)
    return KernelRoute(
        link=number_in(found.get(_OUT, b"")),
        destination=Cidr(version, int.from_bytes(found.get(_TARGET, b"")), body[1]),
        gateway=None if gateway is None else Address(version, int.from_bytes(gateway)),
        scope=SCOPE_NAMES.get(body[6], "unknown"),
    )


def read_learned_over(body: bytes) -> int | None:
    """The outgoing device's index of a route that a router has advertised; None for any other."""
    return number_in(attributes(body[ROUTE_HEADER:]).get(_OUT, b"")) if body[5] == _LEARNED else None


def read_namespace_id(body: bytes) -> int | None:
    data = attributes(body[_NAMESPACE_HEADER:]).get(_NSID)
    number = -1 if data is None else signed_in(data)
    return None if number < 0 else number


def address_bytes(address: Address) -> bytes:
    return address.number.to_bytes(BITS[address.version] // 8)


def _mac_bytes(mac: str) -> bytes:
    data = bytes.fromhex(mac.replace(":", ""))
    if len(data) != 6:
        raise ValueError(f"not an Ethernet address: {mac}")
    return data
