"""`host-local`, the CNI project's IPAM plugin: its configuration, and which address comes next.

It is built in for machines that have no other plugins. Addresses come from range sets, one from each, round robin after
the last one given out. Rules, order and texts are host-local's own, since both may work on one directory.

Invariant: pure; a range set that passed has ranges of one family that share no address, and hands out no gateway.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.json_fields import WrongType, read_fields, section, text
from domain.cni.result import RESULT_ROUTES, BadAddress, ResultRoute, read_address, read_cidr
from domain.cni.versions import BadVersion, parse_version
from domain.ipam.address import BITS, V4, Address, Cidr
from domain.json_text import JsonError, kind_of, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from domain.cni.json_fields import Fields
    from domain.json_text import Json

DEFAULT_DIRECTORY = "/var/lib/cni/networks"
_FIRST_WITH_MANY = (0, 3, 0)  # the CNI version that introduced more than one address of a family


class Range(Value):
    """`first` and `last` are inclusive."""

    subnet: Cidr
    first: Address
    last: Address
    gateway: Address

    def __contains__(self, address: Address) -> bool:
        return address.version == self.first.version and self.first.number <= address.number <= self.last.number

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def overlaps(self, other: Range) -> bool:
        return self.first in other or self.last in other or other.first in self or other.last in self


class RangeSet(Value):
    ranges: tuple[Range, ...]

    def __str__(self) -> str:
        return ",".join([str(part) for part in self.ranges])

    def range_of(self, address: Address) -> Range | None:
        return next((part for part in self.ranges if address in part), None)

    def overlaps(self, other: RangeSet) -> bool:
        return any(part.overlaps(two) for part in self.ranges for two in other.ranges)

    def candidates(self, last: Address | None) -> Iterator[tuple[Address, Range]]:
        """Every address once, beginning after `last` if that is one of ours; gateways are passed over."""
        start = self.range_of(last) if last is not None else None
        if start is None or last is None:
            for one in self.ranges:
                yield from _span(one, one.first.number, one.last.number)
            return
        at = self.ranges.index(start)
        yield from _span(start, last.number + 1, start.last.number)
        for one in (*self.ranges[at + 1 :], *self.ranges[:at]):
            yield from _span(one, one.first.number, one.last.number)
        yield from _span(start, start.first.number, last.number)


def _span(one: Range, first: int, last: int) -> Iterator[tuple[Address, Range]]:
    number = first
    while number <= last:
        if number != one.gateway.number:
            yield Address(one.first.version, number), one
        number += 1


class HostLocalConf(Value):
    """`requested` are addresses that somebody wants in particular; `resolv_conf` a file's path or ""."""

    name: str
    sets: tuple[RangeSet, ...]
    requested: tuple[Address, ...] = ()
    routes: tuple[ResultRoute, ...] = ()
    resolv_conf: str = ""
    directory: str = DEFAULT_DIRECTORY


class _BadRange(ValueError):
    """`str()` is the reason; `where` the place of the member at fault, if it is one."""

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(why)
        self.where = where


class HostLocalPlace(Value):
    """Where a network's addresses are kept: all that giving them back needs. `complaint` is "" if it says so."""

    name: str
    directory: str
    complaint: str = ""


def read_host_local_conf(netconf_text: str, requested: Address | None) -> HostLocalConf:
    """`requested` is the `IP=` of CNI_ARGS. CniError 999 with host-local's texts; the key is in the details."""
    try:
        document = parse(netconf_text)
        if not isinstance(document, dict):
            raise JsonError(f"json: cannot unmarshal {kind_of(document)} into Go value of type allocator.Net")
        found = read_fields(document, _NET, "Net")
        if "ipam" not in found:
            raise _BadRange("IPAM config missing 'ipam' key")
        return _read(found, requested)
    except (JsonError, WrongType) as error:
        raise CniError(INTERNAL, str(error)) from None
    except (_BadRange, BadAddress) as error:
        structure, _, key = error.where.partition(".")
        where = f"ipam.{key}" if structure == "Route" else key
        raise CniError(INTERNAL, str(error), f"in {where}" if where else "") from None


def read_host_local_place(netconf_text: str) -> HostLocalPlace:
    """Whatever else the configuration says: the default directory if it names none that can be."""
    document = parse(netconf_text)
    members = document if isinstance(document, dict) else {}
    name: str = read_fields(members, {"name": _NET["name"]}, "Net").get("name", "")
    try:
        return HostLocalPlace(name, _directory(read_fields(members, _NET_PLACE, "Net").get("ipam", {})))
    except (WrongType, _BadRange) as error:
        return HostLocalPlace(name, DEFAULT_DIRECTORY, str(error))


def _directory(ipam: dict[str, Any]) -> str:
    directory: str = ipam.get("directory", "") or DEFAULT_DIRECTORY
    if "\0" in directory:
        raise _BadRange("a path cannot have a zero byte in it", "Net.ipam.dataDir")
    return directory


def _read(found: dict[str, Any], requested: Address | None) -> HostLocalConf:
    ipam: dict[str, Any] = found["ipam"]
    runtime: dict[str, Any] = found.get("runtime", {})
    sets = [*runtime.get("ranges", ()), *_single(ipam), *ipam.get("ranges", ())]
    if not sets:
        raise _BadRange("no IP ranges specified")
    wanted = () if requested is None else (requested,)
    return HostLocalConf(
        name=found.get("name", ""),
        sets=_checked(sets, found.get("version", "")),
        requested=(*wanted, *found.get("args", {}).get("ips", ()), *runtime.get("ips", ())),
        routes=ipam.get("routes", ()),
        resolv_conf=ipam.get("resolv_conf", ""),
        directory=_directory(ipam),
    )


def _single(ipam: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The one range that older configurations have beside the other keys."""
    keys = ("subnet", "first", "last", "gateway")
    return [[{key: ipam[key] for key in keys if key in ipam}]] if "subnet" in ipam else []


def _checked(sets: list[list[dict[str, Any]]], version: str) -> tuple[RangeSet, ...]:
    checked = []
    for number, members in enumerate(sets):
        try:
            checked.append(_range_set(members))
        except _BadRange as error:
            raise _BadRange(f"invalid range set {number}: {error}", error.where) from None
    versions = [range_set.ranges[0].first.version for range_set in checked]
    if len(versions) > len(set(versions)) and not _can_say_many(version):
        raise _BadRange(f"CNI version {version} does not support more than 1 address per family")
    for number, one in enumerate(checked):
        for later in range(number + 1, len(checked)):
            if one.overlaps(checked[later]):
                raise _BadRange(f"range set {number} overlaps with {later}")
    return tuple(checked)


def _can_say_many(version: str) -> bool:
    try:
        return parse_version(version) >= _FIRST_WITH_MANY
    except BadVersion:
        return False


def _range_set(members: list[dict[str, Any]]) -> RangeSet:
    if not members:
        raise _BadRange("empty range set")
    ranges = tuple([_range(**member) for member in members])
    if len({part.first.version for part in ranges}) > 1:
        raise _BadRange("mixed address families")
    for number, one in enumerate(ranges):
        for other in ranges[number + 1 :]:
            if one.overlaps(other):
                raise _BadRange(f"subnets {one} and {other} overlap")
    return RangeSet(ranges)


def _range(
    subnet: Cidr | None = None,
    first: Address | None = None,
    last: Address | None = None,
    gateway: Address | None = None,
) -> Range:
    if subnet is None or subnet.length > BITS[subnet.version] - 2:
        raise _BadRange(f"Network {subnet or '<nil>'} too small to allocate from")
    network = subnet.network
    if network != subnet:
        why = f"For a subnet mask of length {subnet.length} the network address is {network.address}"
        raise _BadRange(f"Network has host bits set. {why}")
    for name, address in (("RangeStart", first), ("RangeEnd", last)):
        if address is not None and address not in network:
            raise _BadRange(f"{name} {address} not in network {subnet}")
    lowest, highest = network.first + 1, network.end - (2 if network.version == V4 else 1)
    return Range(
        subnet=network,
        first=first or Address(network.version, lowest),
        last=last or Address(network.version, highest),
        gateway=gateway or Address(network.version, lowest),
    )


def _wanted(value: Json, where: str) -> tuple[Address, ...]:
    """Addresses, each perhaps with a prefix length, which is ignored."""
    if not isinstance(value, list):
        raise WrongType(kind_of(value), where, "[]*ip.IP")
    spelled = [text(item, where).partition("/")[0] for item in value if item is not None]
    return tuple([address for text in spelled if (address := read_address(text, where)) is not None])


def _range_sets(value: Json, where: str) -> list[list[dict[str, Any]]]:
    if not isinstance(value, list):
        raise WrongType(kind_of(value), where, "[]allocator.RangeSet")
    sets = []
    for item in value:
        if not isinstance(item, list):
            raise WrongType(kind_of(item), where, "allocator.RangeSet")
        sets.append([_read_range(member, where) for member in item])
    return sets


_RANGE: Fields = {
    "subnet": ("subnet", read_cidr),
    "rangeStart": ("first", read_address),
    "rangeEnd": ("last", read_address),
    "gateway": ("gateway", read_address),
}
_read_range = section(_RANGE, lambda found: found, "allocator.Range", "ipam.ranges.")
_IPAM: Fields = {
    **_RANGE,
    "ranges": ("ranges", _range_sets),
    "routes": ("routes", RESULT_ROUTES),
    "resolvConf": ("resolv_conf", text),
    "dataDir": ("directory", text),
}
_RUNTIME: Fields = {"ipRanges": ("ranges", _range_sets), "ips": ("ips", _wanted)}
_CNI: Fields = {"ips": ("ips", _wanted)}
_ARGS: Fields = {"cni": ("cni", section(_CNI, lambda found: found, "allocator.IPAMArgs", "args.cni."))}
_NET: Fields = {
    "name": ("name", text),
    "cniVersion": ("version", text),
    "ipam": ("ipam", section(_IPAM, lambda found: found, "allocator.IPAMConfig", "ipam.")),
    "runtimeConfig": ("runtime", section(_RUNTIME, lambda found: found, "allocator.RuntimeConfig", "runtimeConfig.")),
    "args": ("args", section(_ARGS, lambda found: found.get("cni", {}), "allocator.Args", "args.")),
}
_IPAM_PLACE: Fields = {"dataDir": _IPAM["dataDir"]}
_NET_PLACE: Fields = {
    "ipam": ("ipam", section(_IPAM_PLACE, lambda found: found, "allocator.IPAMConfig", "ipam.")),
}
