"""Ranges and routes that a node's own `host-local` configuration leaves to its cluster.

`usePodCidr` and `usePodCidrIPv6` stand for the ranges that the cluster gave to the node; host-local itself knows
neither. A release goes by container, so any range will do: a DEL works even when the node's record, or the whole
cluster, is gone.

Invariant: a configuration without placeholders is passed on to the letter, and with them all its other members are.
"""

from __future__ import annotations

from domain.ipam.address import V4, V6, Cidr
from domain.json_text import JsonError, dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from domain.cni.netconf import NetConf
    from domain.json_text import Json

HOST_LOCAL = "host-local"
_PLACEHOLDERS = {"usepodcidr": V4, "usepodcidripv6": V6}
_EVERYTHING = {V4: "0.0.0.0/0", V6: "::/0"}
_NOTHING_CONFIGURED = {
    V4: "usePodCidr found but there is no IPv4 CIDR configured",
    V6: "usePodCidrIPv6 found but there is no IPv6 CIDR configured",
}


class BadSettings(ValueError):
    """host-local's section cannot be used; the text is the original's."""


def needs_pod_cidrs(text: str) -> bool:
    """Whether the configuration has a placeholder, so that the node's record must be read. BadSettings as below."""
    return any(_placeholder(holder) for holder in _holders(parse(text), strict=True))


def text_for_assignment(text: str, node: str = "", pod_cidrs: Iterable[str] = ()) -> str:
    """The configuration with the node's own ranges put in; without a placeholder only its shape is checked.

    BadSettings for a wrong shape, a node without ranges, and a placeholder without a range;
    ValueError for a malformed range.
    """
    document = parse(text)
    holders = [holder for holder in _holders(document, strict=True) if _placeholder(holder)]
    return _replaced(text, document, holders, _ranges(node, pod_cidrs)) if holders else text


def text_for_release(netconf: NetConf, text: str) -> str:
    """What an IPAM plugin is given on its stdin when it is to release: without what only the cluster could answer.

    Placeholders are replaced by all there is. Odd shapes, and another plugin's configuration, stay as they are.
    """
    if netconf.ipam.type != HOST_LOCAL:
        return text
    try:
        document = parse(text)
    except JsonError:
        return text
    holders = [holder for holder in _holders(document, strict=False) if _placeholder(holder)]
    return _replaced(text, document, holders, _EVERYTHING)


def pod_routes(text: str, *, include_default_routes: bool = False) -> tuple[Cidr, ...]:
    """What the pod reaches through its gateway: the configured destinations, or everything where there are none.

    A configured gateway is ignored, as the pod's only neighbour is its host. ValueError for a malformed section.
    """
    from domain.workload.attachment import DEFAULT_ROUTES  # a DEL does without

    document = parse(text)
    ipam = document.get("ipam") if isinstance(document, dict) else None
    routes = ipam.get("routes") if isinstance(ipam, dict) else None
    if routes is not None and not isinstance(routes, list):
        raise BadSettings(f"failed to parse host-local IPAM routes section; expecting list, not: {_shown(ipam)}")
    custom = tuple([_destination(route["dst"]) for route in map(_route, routes or ()) if "dst" in route])
    if not custom:
        return DEFAULT_ROUTES
    return DEFAULT_ROUTES + custom if include_default_routes else custom


def _replaced(text: str, document: Json, holders: list[dict[str, Json]], ranges: Mapping[int, str]) -> str:
    """The document's text once each holder in it has its range; the given text where none is to have one."""
    for holder in holders:
        version = _placeholder(holder)
        if version not in ranges:
            raise BadSettings(_NOTHING_CONFIGURED[version])
        holder["subnet"] = ranges[version]
    return dumps(document) if holders else text


def _ranges(node: str, pod_cidrs: Iterable[str]) -> dict[int, str]:
    """By IP version, without host bits. ValueError for none at all, for two of one version, and for a malformed one."""
    texts = tuple(pod_cidrs)
    if not texts:
        raise BadSettings(f"no podCidr for node {node}")
    ranges = {cidr.version: str(cidr) for cidr in [Cidr.parse(text).network for text in texts]}
    if len(texts) > 1 and len(ranges) < 2:
        raise BadSettings("ClusterCIDR contains two ranges of the same type")
    return ranges


def _placeholder(holder: Mapping[str, Json]) -> int:
    """The IP version that a subnet stands for; 0 when it is an ordinary one."""
    subnet = holder.get("subnet")
    return _PLACEHOLDERS.get(subnet.lower(), 0) if isinstance(subnet, str) else 0


def _holders(document: Json, *, strict: bool) -> list[dict[str, Json]]:
    """All objects that may have a subnet: the section itself, and each range of each set."""
    ipam = _object(document.get("ipam") if isinstance(document, dict) else None, strict=strict)
    holders = [ipam]
    ranges = ipam.get("ranges")
    for range_set in _list("ranges section", [] if ranges is None else ranges, strict=strict):
        holders += [_object(holder, strict=strict) for holder in _list("range set", range_set, strict=strict)]
    return holders


def _object(value: Json, *, strict: bool) -> dict[str, Json]:
    if strict and not isinstance(value, dict):
        raise BadSettings(f"failed to parse host-local IPAM data; was expecting a dict, not: {_shown(value)}")
    return value if isinstance(value, dict) else {}


def _list(what: str, value: Json, *, strict: bool) -> list[Json]:
    if strict and not isinstance(value, list):
        raise BadSettings(f"failed to parse host-local IPAM {what}; was expecting a list, not: {_shown(value)}")
    return value if isinstance(value, list) else []


def _route(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise BadSettings(f"invalid IPAM routes section; was expecting a dict, not: {_shown(value)}")
    return value


def _destination(value: Json) -> Cidr:
    if not isinstance(value, str):
        raise BadSettings(f"invalid IPAM routes section; expecting 'dst' to be a string, not: {_shown(value)}")
    return Cidr.parse(value).network


def _shown(value: Json) -> str:
    """As Go's `%v` shows what it decoded."""
    if isinstance(value, dict):
        return "map[" + " ".join([f"{key}:{_shown(value[key])}" for key in sorted(value)]) + "]"
    if isinstance(value, list):
        return "[" + " ".join([_shown(item) for item in value]) + "]"
    return value if isinstance(value, str) else {"null": "<nil>"}.get(shown := dumps(value), shown)
