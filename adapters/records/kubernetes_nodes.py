"""A Kubernetes node → the Calico node that it is as well.

With Kubernetes as the datastore there is no second object: what Calico knows of a node stands in annotations of the
Kubernetes one, which is written by others, but for those of `tunnel_patch`.

Invariant: labels are the union of both, and where they differ Kubernetes is right.
"""

from __future__ import annotations

from adapters.records.kubernetes_objects import read_object
from adapters.records.members import Members
from domain.cluster import Node
from domain.json_text import JsonError, dumps, parse
from domain.resource import Metadata
from domain.workload.identity import KUBERNETES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from domain.json_text import Json
    from ports.datastore import Revision

_PREFIX, _TUNNEL = "projectcalico.org/", "IPv4IPIPTunnelAddr"
_BGP = (
    ("ipv4Address", "IPv4Address"),
    ("ipv6Address", "IPv6Address"),
    ("ipv4IPIPTunnelAddr", _TUNNEL),
    ("routeReflectorClusterID", "RouteReflectorClusterID"),
)
_VXLAN = (
    ("ipv4VXLANTunnelAddr", "IPv4VXLANTunnelAddr"),
    ("vxlanTunnelMACAddr", "VXLANTunnelMACAddr"),
    ("ipv6VXLANTunnelAddr", "IPv6VXLANTunnelAddr"),
    ("vxlanTunnelMACAddrV6", "VXLANTunnelMACAddrV6"),
)
_WIREGUARD = (
    ("interfaceIPv4Address", "IPv4WireguardInterfaceAddr"),
    ("interfaceIPv6Address", "IPv6WireguardInterfaceAddr"),
)
_KEYS = (("wireguardPublicKey", "WireguardPublicKey"), ("wireguardPublicKeyV6", "WireguardPublicKeyV6"))
_LARGEST_AS = 2**32 - 1


def decode_kubernetes_node(source: Json) -> Node:
    """The Calico node that GET of a node answers. BadRecord when it, or an annotation of Calico's, cannot be read."""
    return read_object(source, "Node", _node)


def _node(members: Members, metadata: Members) -> Node:
    name, annotations = metadata.text("name"), metadata.labels("annotations")
    labels = {**_texts(annotations, "labels"), **metadata.labels("labels")}
    resource = Metadata(
        name,
        uid=metadata.text("uid"),
        created=metadata.text("creationTimestamp"),
        labels=labels,
        annotations=_texts(annotations, "annotations"),
    )
    status: dict[str, Json] = _present(annotations, _KEYS)
    cidrs = _pod_cidrs(members.inner("spec"))
    if cidrs:
        status["podCIDRs"] = list(cidrs)
    spec = _spec(name, annotations, members.inner("status"))
    return Node(resource, dumps(spec), dumps(status))


def _texts(annotations: Mapping[str, str], name: str) -> dict[str, str]:
    """The strings that an annotation holds as a JSON object; `null` is how Go writes none."""
    name = _PREFIX + name
    text = annotations.get(name)
    return Members.of_text(text, f"the annotation {name}").all_texts() if text and text != "null" else {}


def _present(annotations: Mapping[str, str], names: Iterable[tuple[str, str]]) -> dict[str, Json]:
    found = [(member, annotations.get(_PREFIX + name, "")) for member, name in names]
    return {member: text for member, text in found if text}


def _spec(name: str, annotations: Mapping[str, str], status: Members) -> dict[str, Json]:
    bgp = _present(annotations, _BGP)
    number = _as_number(annotations.get(_PREFIX + "ASNumber", ""))
    if number is not None:
        bgp = {"asNumber": number, **bgp}
    addresses: list[Json] = [
        {"address": bgp[member], "type": "CalicoNodeIP"} for member in ("ipv4Address", "ipv6Address") if member in bgp
    ]
    for one in status.objects("addresses"):
        kind = one.text("type")
        if kind in {"InternalIP", "ExternalIP"}:
            addresses.append({"address": one.text("address"), "type": kind})
    spec: dict[str, Json] = {
        "bgp": bgp,
        **_present(annotations, _VXLAN),
        "orchRefs": [{"nodeName": name, "orchestrator": KUBERNETES}],
        "wireguard": _present(annotations, _WIREGUARD),
        "addresses": addresses,
        "interfaces": _interfaces(annotations.get(_PREFIX + "Interfaces", "")),
    }
    return {member: value for member, value in spec.items() if value}


def _interfaces(text: str) -> Json:
    """A list that only operators look at: one that cannot be read must not keep pods from the node."""
    try:
        found = parse(text)
    except JsonError:
        return None
    return found if isinstance(found, list) else None


def _as_number(text: str) -> int | None:
    """`64512` or `1.10`, which is 65546; None for what is no number of an autonomous system."""
    parts = text.split(".")
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        return None
    if len(parts) == 1:
        return int(text) if int(text) <= _LARGEST_AS else None
    high, low = (int(part) for part in parts) if len(parts) == 2 else (1 << 16, 0)
    return high << 16 | low if high < 1 << 16 and low < 1 << 16 else None


def tunnel_patch(node: Node, revision: Revision) -> str:
    """The patch of a node's status that stores what its record says of its tunnels over that version of it; "" for a
    record that says nothing of them.
    """
    (_, address), (_, mac) = _VXLAN[:2]
    said = {_TUNNEL: node.tunnel_address, **dict(zip((address, mac), node.vxlan_tunnel))}
    annotations: dict[str, Json] = {_PREFIX + name: text for name, text in said.items() if text}
    return dumps({"metadata": {"resourceVersion": revision, "annotations": annotations}}) if annotations else ""


def pod_cidrs(source: Json) -> tuple[str, ...]:
    """The ranges that Kubernetes gave to a node: `spec.podCIDRs`, else `spec.podCIDR`, else none."""
    return read_object(source, "Node", lambda members, _metadata: _pod_cidrs(members.inner("spec")))


def _pod_cidrs(spec: Members) -> tuple[str, ...]:
    only = spec.text("podCIDR")
    return spec.texts("podCIDRs") or ((only,) if only else ())
