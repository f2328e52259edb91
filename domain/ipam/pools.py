"""IP pools: which ranges exist, and which of them a request may draw from (spec: ipam 7).

Invariant: choosing is a pure function of the stored pools, the node's and namespace's labels and the request.
"""

from __future__ import annotations

from domain.ipam.address import V4, Cidr
from domain.resource import Metadata
from domain.value import Value

WORKLOAD, TUNNEL, LOAD_BALANCER = "Workload", "Tunnel", "LoadBalancer"
DEFAULT_BLOCK_SIZE = {4: 26, 6: 122}


class Pool(Value):
    """An IPPool. `cidr_text` is what the record says (possibly with host bits, possibly not a CIDR at all).

    `block_size` 0 and empty `allowed_uses`, `node_selector`, `assignment_mode` mean the defaults (the properties
    below give them). `conditions` are the status conditions as (type, status). `deleting` mirrors a deletionTimestamp.
    """

    metadata: Metadata
    cidr_text: str
    block_size: int = 0
    disabled: bool = False
    node_selector: str = ""
    namespace_selector: str = ""
    allowed_uses: tuple[str, ...] = ()
    assignment_mode: str = ""
    ipip_mode: str = ""
    vxlan_mode: str = ""
    nat_outgoing: bool = False
    disable_bgp_export: bool = False
    conditions: tuple[tuple[str, str], ...] = ()
    deleting: bool = False
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()

    @property
    def cidr(self) -> Cidr | None:
        """The canonical range; None when the record's text is no CIDR."""
        try:
            return Cidr.parse(self.cidr_text).network
        except ValueError:
            return None

    @property
    def block_length(self) -> int:
        """Prefix length of the pool's blocks."""
        version = self.cidr.version if self.cidr else V4
        return self.block_size or DEFAULT_BLOCK_SIZE[version]

    @property
    def uses(self) -> tuple[str, ...]:
        return self.allowed_uses or (WORKLOAD, TUNNEL)
