"""What is said to the kernel about devices, addresses and routes, and what it says of them, as bytes.

Each request is a function from the seam's words (adapters/linux/netlink) to a message, each answer one back. Numbers
have their names in the kernel's headers (rtnetlink.h, if_link.h, if_addr.h); those in capitals that end in …MSG are
lengths of its structures.

Invariant: pure, and complete without what the kernel would fill in by itself: an attribute is sent only if it says
something.
"""

from __future__ import annotations

from adapters.linux.netlink.messages import (
    CREATE_ONLY,
    NLM_F_ACK,
    NLM_F_DUMP,
    NetlinkRequest,
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

RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK, RTM_SETLINK = 16, 17, 18, 19
RTM_NEWADDR, RTM_GETADDR = 20, 22
RTM_NEWROUTE, RTM_GETROUTE = 24, 26
RTM_GETNSID = 90

FAMILIES = {V4: 2, V6: 10}  # AF_INET, AF_INET6
VERSIONS = {number: version for version, number in FAMILIES.items()}

IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINK, IFLA_TXQLEN, IFLA_LINKINFO, IFLA_NET_NS_FD = 1, 3, 4, 5, 13, 18, 28
IFLA_EXT_MASK, IFLA_NUM_TX_QUEUES, IFLA_NUM_RX_QUEUES, IFLA_LINK_NETNSID = 29, 31, 32, 37
IFLA_INFO_KIND, IFLA_INFO_DATA, IFLA_INFO_SLAVE_KIND, IFLA_INFO_SLAVE_DATA = 1, 2, 4, 5
VETH_INFO_PEER = IFLA_NETKIT_PEER_INFO = 1
IFLA_NETKIT_POLICY, IFLA_NETKIT_PEER_POLICY, IFLA_NETKIT_MODE = 3, 4, 5
IFLA_NETKIT_SCRUB, IFLA_NETKIT_PEER_SCRUB = 6, 7
RTEXT_FILTER_SKIP_STATS = 8  # they are counted over all processors
IFF_UP = 1

IFA_ADDRESS, IFA_LOCAL = 1, 2
IFA_F_TENTATIVE = 0x40
RT_SCOPE_UNIVERSE = 0
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_TABLE = 1, 4, 5, 15
RT_TABLE_MAIN, RTPROT_BOOT, RTN_UNICAST = 254, 3, 1  # every route that we make
RTPROT_RA = 9  # a router has advertised it
NETNSA_NSID, NETNSA_FD = 1, 3
IFINFOMSG, IFADDRMSG, RTMSG, RTGENMSG = 16, 8, 12, 4  # bytes


def link_header(index: int = 0, flags: int = 0, change: int = 0, family: int = 0) -> bytes:
    return bytes([family, 0, 0, 0]) + u32(index) + u32(flags) + u32(change)


def get_link(name: str | None = None, index: int = 0) -> NetlinkRequest:
    """By name, or else by index. The answer is one `read_link`."""
    which = b"" if name is None else text_attribute(IFLA_IFNAME, name)
    return NetlinkRequest(
        RTM_GETLINK, 0, link_header(index) + which + attribute(IFLA_EXT_MASK, u32(RTEXT_FILTER_SKIP_STATS))
    )


def new_pair(pair: PairRequest) -> NetlinkRequest:
    """The peer is born inside its namespace. Only veth has a queue length, and queues at its peer too."""
    own, peer = text_attribute(IFLA_IFNAME, pair.name), text_attribute(IFLA_IFNAME, pair.peer_name)
    peer += attribute(IFLA_NET_NS_FD, u32(pair.peer_namespace))
    if pair.mtu:
        own += attribute(IFLA_MTU, u32(pair.mtu))
        peer += attribute(IFLA_MTU, u32(pair.mtu))
    if pair.mac:
        own += attribute(IFLA_ADDRESS, _mac_bytes(pair.mac))
    queues = b""
    if pair.queues:
        queues = b"".join([attribute(kind, u32(pair.queues)) for kind in (IFLA_NUM_TX_QUEUES, IFLA_NUM_RX_QUEUES)])
    own += queues
    if pair.kind == "netkit":
        data = attribute(IFLA_NETKIT_PEER_INFO, link_header() + peer) + _netkit_without_rules()
    else:
        data = attribute(VETH_INFO_PEER, link_header() + peer + queues)
        if pair.tx_queue_length is not None:
            own += attribute(IFLA_TXQLEN, u32(pair.tx_queue_length))
    information = text_attribute(IFLA_INFO_KIND, pair.kind) + attribute(IFLA_INFO_DATA, data)
    return NetlinkRequest(
        RTM_NEWLINK, NLM_F_ACK | CREATE_ONLY, link_header() + own + attribute(IFLA_LINKINFO, information)
    )


def _netkit_without_rules() -> bytes:
    """Layer 2, forwarding without scrubbing on both ends: all of that is number 0."""
    policies = (IFLA_NETKIT_POLICY, IFLA_NETKIT_PEER_POLICY)
    rest = (IFLA_NETKIT_MODE, IFLA_NETKIT_SCRUB, IFLA_NETKIT_PEER_SCRUB)
    return b"".join([attribute(kind, u32(0)) for kind in (*policies, *rest)])


def set_up(index: int, *, up: bool) -> NetlinkRequest:
    return NetlinkRequest(RTM_SETLINK, NLM_F_ACK, link_header(index, IFF_UP if up else 0, IFF_UP))


def set_mac(index: int, mac: str) -> NetlinkRequest:
    """ValueError for what is no Ethernet address."""
    return NetlinkRequest(RTM_SETLINK, NLM_F_ACK, link_header(index) + attribute(IFLA_ADDRESS, _mac_bytes(mac)))


def delete_link(index: int) -> NetlinkRequest:
    return NetlinkRequest(RTM_DELLINK, NLM_F_ACK, link_header(index))


def new_address(index: int, address: Cidr) -> NetlinkRequest:
    data = address_bytes(address.address)
    header = bytes([FAMILIES[address.version], address.length, 0, 0]) + u32(index)
    body = header + attribute(IFA_LOCAL, data) + attribute(IFA_ADDRESS, data)
    return NetlinkRequest(RTM_NEWADDR, NLM_F_ACK | CREATE_ONLY, body)


def get_addresses(index: int, version: int) -> NetlinkRequest:
    """A dump of `read_address`. Kernels before 4.20 list those of all devices."""
    return NetlinkRequest(RTM_GETADDR, NLM_F_DUMP, bytes([FAMILIES[version], 0, 0, 0]) + u32(index))


def new_route(index: int, destination: Cidr, gateway: Address | None, scope: str) -> NetlinkRequest:
    family, length = FAMILIES[destination.version], destination.length
    header = bytes([family, length, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, SCOPES[scope], RTN_UNICAST]) + u32(0)
    body = header + (attribute(RTA_DST, address_bytes(destination.address)) if length else b"")
    if gateway is not None:
        body += attribute(RTA_GATEWAY, address_bytes(gateway))
    return NetlinkRequest(RTM_NEWROUTE, NLM_F_ACK | CREATE_ONLY, body + attribute(RTA_OIF, u32(index)))


def get_routes(version: int) -> NetlinkRequest:
    """A dump of `read_route`. Kernels before 4.20 list all tables."""
    return NetlinkRequest(
        RTM_GETROUTE, NLM_F_DUMP, bytes([FAMILIES[version], 0, 0, 0, RT_TABLE_MAIN, 0, 0, 0]) + u32(0)
    )


def get_learned_routes() -> NetlinkRequest:
    """A dump of `read_learned_over`. Kernels before 4.20 list all IPv6 routes."""
    return NetlinkRequest(RTM_GETROUTE, NLM_F_DUMP, bytes([FAMILIES[V6], 0, 0, 0, 0, RTPROT_RA, 0, 0]) + u32(0))


def get_namespace_id(descriptor: int) -> NetlinkRequest:
    """The answer is one `read_namespace_id`."""
    return NetlinkRequest(RTM_GETNSID, 0, bytes(RTGENMSG) + attribute(NETNSA_FD, u32(descriptor)))


def read_link(body: bytes) -> Link:
    found = attributes(body[IFINFOMSG:])
    information = attributes(found.get(IFLA_LINKINFO, b""))
    return Link(
        index=number_in(body[4:8]),
        name=text_in(found.get(IFLA_IFNAME, b"")),
        kind=text_in(information.get(IFLA_INFO_KIND, b"")),
        up=bool(number_in(body[8:12]) & IFF_UP),
        mtu=number_in(found.get(IFLA_MTU, b"")),
        mac=found.get(IFLA_ADDRESS, b"").hex(":"),
        peer_index=number_in(found.get(IFLA_LINK, b"")),
        peer_namespace=signed_in(found[IFLA_LINK_NETNSID]) if IFLA_LINK_NETNSID in found else None,
    )


def version_in(body: bytes, header: int) -> int | None:
    """The IP version that a message of so long a header is about; None for another family, or less than a header."""
    return VERSIONS.get(body[0]) if len(body) >= header else None


def read_address(body: bytes) -> tuple[int, Cidr] | None:
    """(device's index, address), or None for one of another family.

    The local address where a point-to-point device has two.
    """
    version = version_in(body, IFADDRMSG)
    found = attributes(body[IFADDRMSG:])
    data = found.get(IFA_LOCAL) or found.get(IFA_ADDRESS)
    if version is None or data is None:
        return None
    return number_in(body[4:8]), Cidr(version, int.from_bytes(data), body[1])


def read_tentative(body: bytes) -> int | None:
    """The device's index, for an IPv6 address of global scope that nobody can send from yet; None for any other."""
    if version_in(body, IFADDRMSG) != V6 or body[3] != RT_SCOPE_UNIVERSE or not body[2] & IFA_F_TENTATIVE:
        return None
    return number_in(body[4:8])


def read_route(body: bytes) -> KernelRoute | None:
    """None for what is no unicast route of the main table."""
    version = version_in(body, RTMSG)
    if version is None or body[7] != RTN_UNICAST:
        return None
    found = attributes(body[RTMSG:])
    if (number_in(found[RTA_TABLE]) if RTA_TABLE in found else body[4]) != RT_TABLE_MAIN:
        return None
    gateway = found.get(RTA_GATEWAY)
    return KernelRoute(
        link=number_in(found.get(RTA_OIF, b"")),
        destination=Cidr(version, int.from_bytes(found.get(RTA_DST, b"")), body[1]),
        gateway=None if gateway is None else Address(version, int.from_bytes(gateway)),
        scope=SCOPE_NAMES.get(body[6], "unknown"),
    )


def read_learned_over(body: bytes) -> int | None:
    """The outgoing device's index of a route that a router has advertised; None for any other."""
    return number_in(attributes(body[RTMSG:]).get(RTA_OIF, b"")) if body[5] == RTPROT_RA else None


def read_namespace_id(body: bytes) -> int | None:
    data = attributes(body[RTGENMSG:]).get(NETNSA_NSID)
    number = -1 if data is None else signed_in(data)
    return None if number < 0 else number


def address_bytes(address: Address) -> bytes:
    return address.number.to_bytes(BITS[address.version] // 8)


def _mac_bytes(mac: str) -> bytes:
    data = bytes.fromhex(mac.replace(":", ""))
    if len(data) != 6:
        raise ValueError(f"not an Ethernet address: {mac}")
    return data
