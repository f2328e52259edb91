"""The answer to an ADD, in one internal form, read and written in every CNI version's shape.

Three shapes exist: one address a family (0.1, 0.2), lists with each address's version (0.3 to 0.4), lists without it
(1.0). Key orders are the original's, since answers are compared as texts.

Invariant: what `result_text` writes for a version, `parse_result` reads back, but for what that version cannot say.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.go_quote import go_quoted
from domain.cni.json_fields import WrongType, integer, read_fields, section, sections, text, texts
from domain.ipam.address import V4, V6, Address, Cidr
from domain.json_text import JsonError, dumps, kind_of, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.cni.json_fields import Fields
    from domain.json_text import Json

_SINGLE = ("0.1.0", "0.2.0")
_VERSIONED = ("0.3.0", "0.3.1", "0.4.0")
_READABLE = (*_SINGLE, *_VERSIONED, "1.0.0", "1.1.0")


class ResultInterface(Value):
    """`mtu` 0 and texts that are "" are left out of the answer."""

    name: str
    mac: str = ""
    mtu: int = 0
    sandbox: str = ""
    socket_path: str = ""
    pci_id: str = ""


class ResultIp(Value):
    """`address` keeps its host bits and mask; `interface` is an index into `interfaces`."""

    address: Cidr
    interface: int | None = None
    gateway: Address | None = None


class ResultRoute(Value):
    """`dst` keeps its host bits. `table` and `scope` are the kernel's numbers; 0 elsewhere leaves it to the kernel."""

    dst: Cidr
    gateway: Address | None = None
    mtu: int = 0
    advmss: int = 0
    priority: int = 0
    table: int | None = None
    scope: int | None = None


class Dns(Value):
    nameservers: tuple[str, ...] = ()
    domain: str = ""
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Result(Value):
    interfaces: tuple[ResultInterface, ...] = ()
    ips: tuple[ResultIp, ...] = ()
    routes: tuple[ResultRoute, ...] = ()
    dns: Dns = Dns()


def result_text(result: Result, version: str) -> str:
    """The answer as that CNI version has it, indented by four, no newline at the end.

    CniError 999 `cannot convert: no valid IP addresses` for 0.1 and 0.2 without any address.
    """
    shape = _single if version in _SINGLE else _versioned if version in _VERSIONED else _unversioned
    return dumps({"cniVersion": version, **shape(result)}, indent=4)


def _kept(members: dict[str, Json]) -> dict[str, Json]:
    """Without the members that say nothing; 0 is an interface's index, so it stays."""
    return {name: item for name, item in members.items() if item not in (None, "", [], {})}


def _gateway(gateway: Address | None) -> str:
    return str(gateway) if gateway else ""


def _route(route: ResultRoute) -> dict[str, Json]:
    return _kept({"dst": str(route.dst), "gw": _gateway(route.gateway)})


def _routes(routes: tuple[ResultRoute, ...]) -> list[Json]:
    """With what 1.1 says of a route: the CNI library shows it in all versions but the oldest two."""
    return [
        _route(route)
        | _kept(
            {
                "mtu": route.mtu or None,
                "advmss": route.advmss or None,
                "priority": route.priority or None,
                "table": route.table,
                "scope": route.scope,
            }
        )
        for route in routes
    ]


def _dns(dns: Dns) -> dict[str, Json]:
    return _kept(
        {
            "nameservers": list(dns.nameservers),
            "domain": dns.domain,
            "search": list(dns.search),
            "options": list(dns.options),
        }
    )


def _single(result: Result) -> dict[str, Json]:
    """The first address of each family with that family's routes; interfaces cannot be said."""
    answer: dict[str, Json] = {}
    for name, family in (("ip4", V4), ("ip6", V6)):
        ip = next((ip for ip in result.ips if ip.address.version == family), None)
        if ip:
            routes: list[Json] = [_route(route) for route in result.routes if route.dst.version == family]
            answer[name] = _kept({"ip": str(ip.address), "gateway": _gateway(ip.gateway), "routes": routes})
    if not answer:
        raise CniError(INTERNAL, "cannot convert: no valid IP addresses")
    return {**answer, "dns": _dns(result.dns)}


def _versioned(result: Result) -> dict[str, Json]:
    interfaces: list[Json] = [
        _kept({"name": interface.name, "mac": interface.mac, "sandbox": interface.sandbox})
        for interface in result.interfaces
    ]
    ips: list[Json] = [
        _kept(
            {
                "version": str(ip.address.version),
                "interface": ip.interface,
                "address": str(ip.address),
                "gateway": _gateway(ip.gateway),
            }
        )
        for ip in result.ips
    ]
    return {
        **_kept({"interfaces": interfaces, "ips": ips, "routes": _routes(result.routes)}),
        "dns": _dns(result.dns),
    }


def _unversioned(result: Result) -> dict[str, Json]:
    """All keys in alphabetical order; the MTU is a member of 1.1 that the original shows in 1.0 (Calico quirk)."""
    interfaces: list[Json] = [
        _kept(
            {
                "mac": one.mac,
                "mtu": one.mtu or None,
                "name": one.name,
                "pciID": one.pci_id,
                "sandbox": one.sandbox,
                "socketPath": one.socket_path,
            }
        )
        for one in result.interfaces
    ]
    ips: list[Json] = [
        _kept({"address": str(ip.address), "gateway": _gateway(ip.gateway), "interface": ip.interface})
        for ip in result.ips
    ]
    dns: dict[str, Json] = dict(sorted(_dns(result.dns).items()))
    return _kept({"dns": dns, "interfaces": interfaces, "ips": ips, "routes": _routes(result.routes)})


def parse_result(answer: str, default_version: str) -> Result:
    """A plugin's answer, or a `prevResult`. `default_version` counts when the answer names none; "" there is 0.1.0.

    Unknown keys are ignored. CniError 999 with the reason for what cannot be read.
    """
    try:
        document = parse(answer)
        if not isinstance(document, dict):
            raise JsonError(f"json: cannot unmarshal {kind_of(document)} into Go value of type types.Result")
        declared: str = read_fields(document, {"cniVersion": ("version", text)}, "Result").get("version", "")
        version = declared or default_version or "0.1.0"
        if version not in _READABLE:
            raise JsonError(f"unsupported CNI result version {go_quoted(version)}")
        return _read_single(document) if version in _SINGLE else _read_lists(document)
    except (JsonError, WrongType, BadAddress) as error:
        raise CniError(INTERNAL, str(error)) from None


class BadAddress(ValueError):
    """A text in a result that should have been an address. `where` is its place, as in `WrongType`."""

    def __init__(self, why: str, where: str) -> None:
        super().__init__(why)
        self.where = where


def read_cidr(value: Json, where: str) -> Cidr:
    try:
        return Cidr.parse(text(value, where))
    except WrongType:
        raise
    except ValueError as error:
        raise BadAddress(str(error), where) from None


def read_address(value: Json, where: str) -> Address | None:
    spelled = text(value, where)
    try:
        return Address.parse(spelled) if spelled else None
    except ValueError as error:
        raise BadAddress(str(error), where) from None


def _placed(found: dict[str, Any]) -> ResultIp:
    if "address" not in found:
        raise BadAddress("invalid CIDR address: ", "IPConfig.ips.address")
    return ResultIp(**found)


def _routed(found: dict[str, Any]) -> ResultRoute:
    if "dst" not in found:
        raise BadAddress("invalid CIDR address: ", "Route.routes.dst")
    return ResultRoute(**found)


_ROUTE: Fields = {
    "dst": ("dst", read_cidr),
    "gw": ("gateway", read_address),
    "mtu": ("mtu", integer),
    "advmss": ("advmss", integer),
    "priority": ("priority", integer),
    "table": ("table", integer),
    "scope": ("scope", integer),
}
RESULT_ROUTES = sections(_ROUTE, "types.Route", "routes.", _routed)
_INTERFACE: Fields = {
    "name": ("name", text),
    "mac": ("mac", text),
    "mtu": ("mtu", integer),
    "sandbox": ("sandbox", text),
    "socketPath": ("socket_path", text),
    "pciID": ("pci_id", text),
}
_IP: Fields = {
    "address": ("address", read_cidr),
    "interface": ("interface", integer),
    "gateway": ("gateway", read_address),
}
_DNS: Fields = {
    "nameservers": ("nameservers", texts),
    "domain": ("domain", text),
    "search": ("search", texts),
    "options": ("options", texts),
}
read_dns = section(_DNS, lambda found: Dns(**found), "types.DNS", "dns.")
_LISTS: Fields = {
    "interfaces": (
        "interfaces",
        sections(_INTERFACE, "types.Interface", "interfaces.", lambda found: ResultInterface(**{"name": "", **found})),
    ),
    "ips": ("ips", sections(_IP, "types.IPConfig", "ips.", _placed)),
    "routes": ("routes", RESULT_ROUTES),
    "dns": ("dns", read_dns),
}
_FAMILY: Fields = {
    "ip": ("address", read_cidr),
    "gateway": ("gateway", read_address),
    "routes": ("routes", RESULT_ROUTES),
}
_SINGLES: Fields = {
    "ip4": ("ip4", section(_FAMILY, dict, "types020.IPConfig", "ip4.")),
    "ip6": ("ip6", section(_FAMILY, dict, "types020.IPConfig", "ip6.")),
    "dns": ("dns", read_dns),
}


def _read_lists(document: dict[str, Json]) -> Result:
    return Result(**read_fields(document, _LISTS, "Result"))


def _read_single(document: dict[str, Json]) -> Result:
    found = read_fields(document, _SINGLES, "Result")
    ips: list[ResultIp] = []
    routes: list[ResultRoute] = []
    for family in ("ip4", "ip6"):
        if family in found:
            routes += found[family].pop("routes", ())
            ips.append(_placed(found[family]))
    return Result(ips=tuple(ips), routes=tuple(routes), dns=found.get("dns", Dns()))
