"""Records that describe the cluster itself: whether it may be used, and its nodes.

Invariant: what we do not know of a record is kept, in its place.
"""

from __future__ import annotations

from domain.json_text import dumps, parse
from domain.resource import Metadata
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.json_text import Json

_TUNNEL = "ipv4IPIPTunnelAddr"
_VXLAN, _VXLAN_MAC = "ipv4VXLANTunnelAddr", "vxlanTunnelMACAddr"
_AFTER_TUNNEL = "routeReflectorClusterID"  # in the original's order of members


class ClusterInformation(Value):
    """`datastore_ready` None (the field is absent) counts as not ready."""

    metadata: Metadata
    cluster_guid: str = ""
    cluster_type: str = ""
    calico_version: str = ""
    datastore_ready: bool | None = None
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()


class Node(Value):
    """A Calico node. Allocation needs its name and labels; the rest of the spec and the status is kept as it was.

    `spec` is the JSON text of the whole spec, `status` that of the status ("{}" when empty).
    """

    metadata: Metadata
    spec: str = "{}"
    status: str = "{}"
    unknown: tuple[tuple[str, str], ...] = ()

    @property
    def tunnel_address(self) -> str:
        """Of the IPIP device, "" without one."""
        found = self._bgp().get(_TUNNEL)
        return found if isinstance(found, str) else ""

    def with_tunnel_address(self, address: object) -> Node:
        """The same node with that IPIP device; whatever else it says stays."""
        bgp = self._bgp()
        last = {_AFTER_TUNNEL: bgp.pop(_AFTER_TUNNEL)} if _AFTER_TUNNEL in bgp else {}
        spec = parse(self.spec)
        rest = {name: value for name, value in spec.items() if name != "bgp"} if isinstance(spec, dict) else {}
        return self.replace(spec=dumps({"bgp": {**bgp, _TUNNEL: str(address), **last}, **rest}))

    @property
    def vxlan_tunnel(self) -> tuple[str, str]:
        """Address and MAC of the VXLAN device, "" for what it does not have."""
        spec = parse(self.spec)
        found = [spec.get(name) if isinstance(spec, dict) else "" for name in (_VXLAN, _VXLAN_MAC)]
        address, mac = [one if isinstance(one, str) else "" for one in found]
        return address, mac

    def with_vxlan_tunnel(self, address: object, mac: str) -> Node:
        """The same node with that VXLAN device; whatever else it says stays."""
        spec = parse(self.spec)
        rest = dict(spec) if isinstance(spec, dict) else {}
        first = {name: rest.pop(name) for name in ("bgp",) if name in rest}
        return self.replace(spec=dumps({**first, **rest, _VXLAN: str(address), _VXLAN_MAC: mac}))

    def _bgp(self) -> dict[str, Json]:
        spec = parse(self.spec)
        bgp = spec.get("bgp") if isinstance(spec, dict) else None
        return dict(bgp) if isinstance(bgp, dict) else {}
