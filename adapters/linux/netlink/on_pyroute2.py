"""Netlink through the pyroute2 library.

Its synchronous `IPRoute` owns one asyncio loop, one socket and no thread, as long as it is used in the thread that
made it and no `netns=` is given: with one, it forks, and creates namespaces that do not exist. So the caller steps
into a namespace, opens this, and steps out again. `groups=0` keeps the machine's events off our socket. Signals are
withheld while the library works: an exception from a handler gets lost in its event loop.

Invariant: after `close` no descriptor and no loop is left.
"""

from __future__ import annotations

from errno import EINTR, EINVAL, ENOBUFS, ENODEV
from socket import AF_INET, AF_INET6

from adapters.linux.netlink.rtnetlink import IFA_F_TENTATIVE, RT_SCOPE_UNIVERSE
from adapters.linux.netlink.seam import (
    SCOPE_NAMES,
    SCOPES,
    KernelError,
    KernelRoute,
    Netlink,
    PairRequest,
    Unanswered,
    no_socket,
)
from adapters.linux.process.signals import Withheld
from adapters.wire.bare_packages import BarePackages
from domain.ipam.address import V4, V6, Address, Cidr
from domain.linux.link import Link

with BarePackages("pyroute2"):
    from pyroute2.iproute import IPRoute
    from pyroute2.netlink import nla
    from pyroute2.netlink.exceptions import NetlinkDumpInterrupted, NetlinkError
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg, ifinfveth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FAMILIES = {V4: AF_INET, V6: AF_INET6}
_ANY = {V4: Address(V4, 0), V6: Address(V6, 0)}
IFF_UP = 1
RT_TABLE_MAIN, RTPROT_BOOT, RTN_UNICAST = 254, 3, 1  # table, protocol and type of every route we make
RTPROT_RA = 9  # the protocol of routes that routers advertise
_TRIES = 3


class Pyroute2Netlink(Netlink):
    """Opened in the calling thread's current network namespace; used and closed in the same thread."""

    def __init__(self) -> None:
        try:
            with Withheld():
                self._route = IPRoute(groups=0)
        except OSError as error:
            raise no_socket(error) from error

    def _ask(self, noun: str, *arguments: object, **fields: object) -> list[Any]:
        try:
            with Withheld():
                return list(getattr(self._route, noun)(*arguments, **fields))
        except NetlinkDumpInterrupted as error:
            raise KernelError(EINTR) from error
        except NetlinkError as error:
            raise KernelError(error.code) from error
        except OSError as error:
            raise Unanswered(error.errno or EINVAL) from error

    def _asked_again(self, noun: str, *arguments: object, **fields: object) -> list[Any]:
        """A question that changes nothing: again if what it lists has changed meanwhile, or an answer was lost."""
        for _ in range(_TRIES - 1):
            try:
                return self._ask(noun, *arguments, **fields)
            except KernelError as error:
                if error.errno not in (EINTR, ENOBUFS):
                    raise
        return self._ask(noun, *arguments, **fields)

    def _dump(self, noun: str, **fields: object) -> list[Any]:
        return self._asked_again(noun, "dump", **fields)

    def link(self, name: str) -> Link | None:
        return self._link(ifname=name)

    def link_by_index(self, index: int) -> Link | None:
        return self._link(index=index)

    def _link(self, **which: object) -> Link | None:
        try:
            (message,) = self._asked_again("link", "get", **which)
        except KernelError as error:
            if error.errno == ENODEV:
                return None
            raise
        return read_link(message)

    def create_pair(self, request: PairRequest) -> None:
        self._ask("link", "add", **pair_fields(request))

    def set_up(self, index: int, *, up: bool) -> None:
        self._ask("link", "set", index=index, flags=IFF_UP if up else 0, change=IFF_UP)

    def set_mac(self, index: int, mac: str) -> None:
        if mac.count(":") != 5:  # the library knows Ethernet addresses only, and so do our devices
            raise KernelError(EINVAL)
        self._ask("link", "set", index=index, address=mac)

    def delete_link(self, index: int) -> None:
        try:
            self._ask("link", "del", index=index)
        except KernelError as error:
            if error.errno != ENODEV:
                raise

    def add_address(self, index: int, address: Cidr) -> None:
        text, family = str(address.address), FAMILIES[address.version]
        self._ask("addr", "add", index=index, family=family, address=text, local=text, prefixlen=address.length)

    def addresses(self, index: int, version: int) -> list[Cidr]:
        found = []
        for message in self._dump("addr", family=FAMILIES[version], match={"index": index}):
            text = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
            found.append(Address.parse(text).host_cidr.replace(length=message["prefixlen"]))
        return found

    def has_tentative(self, index: int) -> bool:
        listed = self._dump("addr", family=FAMILIES[V6], match={"index": index, "scope": RT_SCOPE_UNIVERSE})
        return any(message["flags"] & IFA_F_TENTATIVE for message in listed)

    def add_route(self, index: int, destination: Cidr, gateway: Address | None, scope: str) -> None:
        fields: dict[str, object] = {} if gateway is None else {"gateway": str(gateway)}
        self._ask(
            "route",
            "add",
            family=FAMILIES[destination.version],
            dst=str(destination.address),
            dst_len=destination.length,
            oif=index,
            table=RT_TABLE_MAIN,
            proto=RTPROT_BOOT,
            type=RTN_UNICAST,
            scope=SCOPES[scope],
            **fields,
        )

    def routes(self, version: int) -> list[KernelRoute]:
        listed = self._dump("route", family=FAMILIES[version], match={"table": RT_TABLE_MAIN})
        return [_read_route(message, version) for message in listed if message["type"] == RTN_UNICAST]

    def learned_over(self) -> list[int]:
        listed = self._dump("route", family=FAMILIES[V6], match={"proto": RTPROT_RA})
        return sorted({message.get_attr("RTA_OIF") or 0 for message in listed})

    def namespace_id(self, namespace: int) -> int | None:
        try:
            with Withheld():
                answer = self._route.get_netnsid(fd=namespace)
        except NetlinkError as error:
            raise KernelError(error.code) from error
        number = answer["nsid"]
        return None if number is None or number in {-1, 0xFFFFFFFF} else int(number)

    def close(self) -> None:
        with Withheld():
            self._route.close()


def pair_fields(request: PairRequest) -> dict[str, object]:
    """The request as the library takes it. Only veth has a queue length, and queues at its peer too."""
    peer: list[tuple[str, object]] = [
        ("IFLA_IFNAME", request.peer_name),
        ("IFLA_NET_NS_FD", request.peer_namespace),
    ]
    fields: dict[str, object] = {"ifname": request.name}
    if request.mtu:
        peer.append(("IFLA_MTU", request.mtu))
        fields["mtu"] = request.mtu
    if request.mac:
        fields["address"] = request.mac
    if request.queues:
        fields["num_tx_queues"] = fields["num_rx_queues"] = request.queues
    if request.kind == "netkit":
        data = _netkit_data(peer)
    else:
        if request.queues:
            peer += [("IFLA_NUM_TX_QUEUES", request.queues), ("IFLA_NUM_RX_QUEUES", request.queues)]
        if request.tx_queue_length is not None:
            fields["txqlen"] = request.tx_queue_length
        data = [("VETH_INFO_PEER", {"attrs": peer})]
    information = [("IFLA_INFO_KIND", request.kind), ("IFLA_INFO_DATA", {"attrs": data})]
    return fields | {"IFLA_LINKINFO": {"attrs": information}}


def read_link(message: Any) -> Link:
    information = message.get_attr("IFLA_LINKINFO")
    return Link(
        index=message["index"],
        name=message.get_attr("IFLA_IFNAME"),
        kind=(information and information.get_attr("IFLA_INFO_KIND")) or "",
        up=bool(message["flags"] & IFF_UP),
        mtu=message.get_attr("IFLA_MTU"),
        mac=message.get_attr("IFLA_ADDRESS") or "",
        peer_index=message.get_attr("IFLA_LINK") or 0,
        peer_namespace=message.get_attr("IFLA_LINK_NETNSID"),
    )


def _read_route(message: Any, version: int) -> KernelRoute:
    target, gateway = message.get_attr("RTA_DST"), message.get_attr("RTA_GATEWAY")
    destination = Address.parse(target) if target else _ANY[version]
    return KernelRoute(
        link=message.get_attr("RTA_OIF") or 0,
        destination=Cidr(version, destination.number, message["dst_len"]),
        gateway=Address.parse(gateway) if gateway else None,
        scope=SCOPE_NAMES.get(message["scope"], "unknown"),
    )


def _netkit_data(peer: list[tuple[str, object]]) -> list[tuple[str, object]]:
    """Layer 2, forwarding without scrubbing on both ends. The library does not know the kind, so it is taught it."""

    class netkit_data(nla):  # type: ignore[misc]  # noqa: N801 - an untyped library and its naming
        nla_map = (
            ("IFLA_NETKIT_UNSPEC", "none"),
            ("IFLA_NETKIT_PEER_INFO", "peer_info"),
            ("IFLA_NETKIT_PRIMARY", "uint8"),
            ("IFLA_NETKIT_POLICY", "uint32"),
            ("IFLA_NETKIT_PEER_POLICY", "uint32"),
            ("IFLA_NETKIT_MODE", "uint32"),
            ("IFLA_NETKIT_SCRUB", "uint32"),
            ("IFLA_NETKIT_PEER_SCRUB", "uint32"),
        )

        peer_info = staticmethod(lambda *_arguments, **_fields: ifinfveth)

    ifinfmsg.ifinfo.data_map["netkit"] = netkit_data
    layer_2 = forward = no_scrub = 0
    return [
        ("IFLA_NETKIT_PEER_INFO", {"attrs": peer}),
        ("IFLA_NETKIT_POLICY", forward),
        ("IFLA_NETKIT_PEER_POLICY", forward),
        ("IFLA_NETKIT_MODE", layer_2),
        ("IFLA_NETKIT_SCRUB", no_scrub),
        ("IFLA_NETKIT_PEER_SCRUB", no_scrub),
    ]
