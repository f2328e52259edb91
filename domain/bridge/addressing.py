"""From what IPAM answered to the result: whose the addresses are, which gateways and default routes there are.

Invariant: every address of the result belongs to the container's interface; a family gets at most one default route
of ours, and none if IPAM gave one.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.result import Result, ResultIp, ResultRoute
from domain.ipam.address import BITS, V4, V6, Address, Cidr

MAIN_TABLE = 254
# The greatest number that the kernel takes for each property of a route.
_LAST = {"mtu": 0xFFFFFFFF, "advmss": 0xFFFFFFFF, "priority": 0xFFFFFFFF, "table": 0xFFFFFFFF, "scope": 0xFF}
LINK_LOCAL = Cidr(V6, 0xFE80 << 112, 10)
CONTAINER_AT = 2  # the container's interface in the result: after the bridge and the host's device


def complete(answer: Result, *, is_gateway: bool, is_default_gateway: bool) -> Result:
    """IPAM's result with the interface's index, gateways that it left out, and default routes.

    CniError 999 for what no kernel can be told.
    """
    for route in answer.routes:
        _refuse_impossible(route)
    ips = tuple([_with_gateway(ip, is_gateway=is_gateway) for ip in answer.ips])
    routes = list(answer.routes)
    if is_default_gateway:
        for ip in ips:
            if ip.gateway is not None and not _has_default(routes, ip.address.version):
                routes.append(ResultRoute(_everything(ip.address.version), ip.gateway))
    return answer.replace(ips=ips, routes=tuple(routes))


def _refuse_impossible(route: ResultRoute) -> None:
    for name, last in _LAST.items():
        number = getattr(route, name)
        if number is not None and not 0 <= number <= last:
            raise CniError(INTERNAL, f"route {route.dst}: {name} {number} is not between 0 and {last}")
    if route.gateway is not None and route.gateway.version != route.dst.version:
        raise CniError(INTERNAL, f"route {route.dst}: gw {route.gateway} is of the other IP version")


def _with_gateway(ip: ResultIp, *, is_gateway: bool) -> ResultIp:
    """By default the first address of the subnet."""
    gateway = ip.gateway
    if is_gateway:
        network = ip.address.network
        if gateway is None:
            gateway = Address(network.version, network.number + 1)
        if gateway.version != network.version or gateway.number >> BITS[network.version]:
            why = f"gateway {ip.gateway} is of the other IP version" if ip.gateway else "has no room for a gateway"
            raise CniError(INTERNAL, f"address {ip.address}: {why}")
    return ip.replace(interface=CONTAINER_AT, gateway=gateway)


def _has_default(routes: list[ResultRoute], version: int) -> bool:
    """One without a gateway counts too: it will lead through the family's first. (The reference adds it twice.)"""
    return any(
        is_default(route.dst) and route.dst.version == version and route.table in {None, MAIN_TABLE} for route in routes
    )


def is_default(destination: Cidr) -> bool:
    return destination.length == 0


def _everything(version: int) -> Cidr:
    return Cidr(version, 0, 0)


def in_the_way(present: Cidr, wanted: Cidr) -> bool:
    """Whether an address that the gateway's device has and the one that it shall have cannot both be its.

    Link-local ones are no matter: the kernel gives such an address to each device by itself.
    """
    if LINK_LOCAL.overlaps(wanted):
        return False
    return present.version == wanted.version and (wanted.version == V4 or present.network.overlaps(wanted.network))


def gateways(result: Result) -> tuple[Cidr, ...]:
    """The addresses that the host has as gateway, IPv4 first, each once, with their subnets' lengths."""
    found = [
        Cidr(ip.address.version, ip.gateway.number, ip.address.length) for ip in result.ips if ip.gateway is not None
    ]
    ordered = sorted(found, key=lambda cidr: cidr.version != V4)
    return tuple(dict.fromkeys(ordered))


def first_gateway(result: Result, version: int) -> Address | None:
    """Where routes of a family lead that name no gateway themselves."""
    candidates = [ip.gateway for ip in result.ips if ip.address.version == version]
    return next((gateway for gateway in candidates if gateway is not None), None)
