"""WorkloadEndpoint, the record by which the rest of Calico knows a container's interface; and the profile of its
network, which says what an endpoint without any policy may do.

Invariant: all that is stored is here, known or not, so that a rewrite loses nothing.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.resource import NO_LABELS, Metadata
from domain.value import Value
from domain.workload.identity import KUBERNETES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Nat(Value):
    """A floating address: `external` is translated to `internal`. Texts, as stored."""

    internal: str
    external: str


class Port(Value):
    """A container port. `protocol` is TCP, UDP or SCTP; 0 and "" where the pod says nothing."""

    name: str
    protocol: str
    port: int
    host_port: int = 0
    host_ip: str = ""


class WorkloadEndpoint(Value):
    """All spec fields are omitted from the record when empty. `qos_controls` is JSON text or ""."""

    metadata: Metadata
    orchestrator: str = ""
    workload: str = ""
    node: str = ""
    container_id: str = ""
    pod: str = ""
    endpoint: str = ""
    service_account: str = ""
    ip_networks: tuple[Cidr, ...] = ()
    ip_nats: tuple[Nat, ...] = ()
    ipv4_gateway: str = ""
    ipv6_gateway: str = ""
    profiles: tuple[str, ...] = ()
    interface_name: str = ""
    mac: str = ""
    ports: tuple[Port, ...] = ()
    allowed_source_prefixes: tuple[str, ...] = ()
    qos_controls: str = ""
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(network.address for network in self.ip_networks)


class Rule(Value):
    """`action` is Allow, Deny, Log or Pass; `source` a selector or "". Other members are kept as JSON text."""

    action: str
    source_selector: str = ""
    unknown: tuple[tuple[str, str], ...] = ()


class Profile(Value):
    metadata: Metadata
    ingress: tuple[Rule, ...] = ()
    egress: tuple[Rule, ...] = ()
    labels_to_apply: Mapping[str, str] = NO_LABELS
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()


def allow_profile(network: str, orchestrator: str) -> Profile:
    """The profile made for a network that has none: endpoints of the network reach each other and everything out.

    Under Kubernetes anyone may come in, since policy is Kubernetes' own.
    """
    source = "" if orchestrator == KUBERNETES else f"has({network})"
    return Profile(Metadata(network), (Rule("Allow", source),), (Rule("Allow"),), {network: ""})
