"""Addresses that somebody on this machine uses, as its kernel tells: those of its devices, and those with a route.

Allocation leaves the devices' addresses alone, so that a pod never gets the address of, say, a tunnel device whose
record was lost. A pod's address gets a route by itself when the pod is networked, and the kernel refuses a second one.
So an address whose holder has lost it in IPAM, but not on the machine, would be chosen again and again, and each time
in vain.

One route is a look-up in the kernel's table, which costs the same with any number of routes: 20 µs, where to list
200 routes takes 1 ms. The IPAM plugin asks the kernel nothing else, so it does without the seam that the dataplane has.

Invariant: never fails; where the kernel gives no answer, there is no address and no route.
"""

from __future__ import annotations

from adapters.linux.netlink.messages import (
    NLM_F_DUMP,
    NetlinkRequest,
    answers,
    attribute,
    attributes,
    envelope,
    number_in,
    u32,
    verdict,
)
from domain.ipam.address import BITS, V4, V6, Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NETLINK_ROUTE, RTM_GETADDR, RTM_GETROUTE = 0, 22, 26
IFADDRMSG, RTMSG = 8, 12  # bytes
IFA_LOCAL, IFA_ADDRESS = 2, 1  # only point-to-point devices tell them apart
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_TABLE = 1, 4, 5, 15
RT_TABLE_MAIN, RTN_UNICAST = 254, 1
_MATCH = 0x2000 | 0x1000  # RTM_F_FIB_MATCH: the entry itself; RTM_F_LOOKUP_TABLE: and its table
RTM_F_CLONED = 0x200  # the answer of a kernel before 4.13, which does not know that flag
_FAMILY = {V4: 2, V6: 10}  # AF_INET, AF_INET6
_VERSION = {family: version for version, family in _FAMILY.items()}
_SECONDS = 2


def own_addresses() -> tuple[Address, ...]:
    """Those of this machine's devices in the kernel's order; loopback and link-local ones included."""
    found: list[Address] = []
    for body in _asked(NetlinkRequest(RTM_GETADDR, NLM_F_DUMP, bytes(IFADDRMSG)), IFADDRMSG):
        version = _VERSION.get(body[0])
        told = attributes(body[IFADDRMSG:])
        address = told.get(IFA_LOCAL) or told.get(IFA_ADDRESS)
        if version and address:
            found.append(Address(version, int.from_bytes(address)))
    return tuple(found)


def interface_of(address: Address) -> str:
    """The interface of the route to this address alone, in the main table; "" if there is none, or it is unknown."""
    family, bits = _FAMILY[address.version], BITS[address.version]
    header = bytes([family, bits, 0, 0, 0, 0, 0, 0]) + u32(_MATCH)
    wanted = attribute(RTA_DST, address.number.to_bytes(bits // 8))
    for body in _asked(NetlinkRequest(RTM_GETROUTE, 0, header + wanted), RTMSG):
        route = _Route(body)
        if route.is_to_one_address and not route.is_cloned:
            return route.interface
    return ""


def host_routes() -> tuple[tuple[Address, str], ...]:
    """(address, interface) of all such routes that lead to a neighbour and not to another router."""
    found: list[tuple[Address, str]] = []
    for version, family in _FAMILY.items():
        for body in _asked(NetlinkRequest(RTM_GETROUTE, NLM_F_DUMP, bytes([family]) + bytes(RTMSG - 1)), RTMSG):
            route = _Route(body)
            if body[0] == family and route.is_to_one_address and route.is_direct and route.interface:
                found.append((Address(version, int.from_bytes(route.told[RTA_DST])), route.interface))
    return tuple(found)


class _Route:
    def __init__(self, body: bytes) -> None:
        self.told = attributes(body[RTMSG:])
        version = _VERSION.get(body[0])
        table = number_in(self.told.get(RTA_TABLE, bytes([body[4]])))
        self.is_to_one_address = (
            version is not None
            and body[1] == BITS[version]
            and (table, body[7]) == (RT_TABLE_MAIN, RTN_UNICAST)
            and RTA_DST in self.told
        )
        self.is_cloned = bool(number_in(body[8:RTMSG]) & RTM_F_CLONED)
        self.is_direct = RTA_GATEWAY not in self.told

    @property
    def interface(self) -> str:
        """Its name; "" without one, as of a route over several, and if it has just gone."""
        import _socket

        try:
            return _socket.if_indextoname(number_in(self.told.get(RTA_OIF, b"")))
        except OSError:
            return ""


def _asked(request: NetlinkRequest, least: int) -> Iterator[bytes]:
    """The bodies of what the kernel answers, each of `least` bytes and more."""
    import _socket

    try:
        netlink = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, NETLINK_ROUTE)
    except OSError:
        return
    try:
        netlink.settimeout(_SECONDS)
        netlink.send(envelope(request, 1))
        going = True
        while going:
            datagram = netlink.recv(1 << 16)
            going = bool(datagram) and bool(request.flags)  # a single answer has no end of its own
            for answer in answers(datagram):
                if verdict(answer) is not None:
                    return
                if len(answer.body) >= least:
                    yield answer.body
    except OSError:
        return
    finally:
        netlink.close()
