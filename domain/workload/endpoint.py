"""WorkloadEndpoint: the record by which the rest of Calico knows a container's interface."""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.resource import Metadata
from domain.value import Value


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
