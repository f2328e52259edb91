"""host-local's ranges on a Windows node, which keeps the first addresses of a subnet and the last one for itself.

Invariant: only IPv4 ranges change, and of those only their two ends; what was configured within the limits stays.
"""

from __future__ import annotations

from domain.ipam.address import V4, Address, Cidr
from domain.json_text import dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

_FIRST = 3  # the network itself, its gateway and the host come before


def with_pinned_ranges(text: str) -> str:
    """The configuration's text with `rangeStart` and `rangeEnd` of each IPv4 range."""
    document = parse(text)
    ipam = document.get("ipam") if isinstance(document, dict) else None
    if not isinstance(ipam, dict):
        return text
    holders: list[Json] = [ipam]
    ranges = ipam.get("ranges")
    for range_set in ranges if isinstance(ranges, list) else ():
        holders += range_set if isinstance(range_set, list) else ()
    for holder in holders:
        if isinstance(holder, dict):
            _pin(holder)
    return dumps(document)


def _pin(holder: dict[str, Json]) -> None:
    try:
        subnet = Cidr.parse(str(holder.get("subnet", "")))
    except ValueError:
        return
    if subnet.version != V4:
        return
    limits = range(subnet.first + _FIRST, subnet.end - 1)
    if not limits:
        return  # too small for Windows: host-local finds nothing to give, or the plan says so
    holder["rangeStart"] = str(_within(holder.get("rangeStart"), limits, limits[0]))
    holder["rangeEnd"] = str(_within(holder.get("rangeEnd"), limits, limits[-1]))


def _within(given: Json, limits: range, otherwise: int) -> Address:
    try:
        address = Address.parse(str(given))
    except ValueError:
        return Address(V4, otherwise)
    inside = address.version == V4 and address.number in limits
    return address if inside else Address(V4, otherwise)
