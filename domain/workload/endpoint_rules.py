"""What a WorkloadEndpoint must look like to be stored.

The rules hold for an endpoint without addresses as well, so a use case checks what it knows before it asks for an
address or makes a device; the original finds out afterwards and leaves both behind.

Invariant: an endpoint that passes `check_endpoint` has the name that its own identifiers spell.
"""

from __future__ import annotations

from domain.ipam.address import BITS, Address
from domain.resource import Metadata
from domain.workload.identity import InvalidField, full_name, identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import Nat, Port, WorkloadEndpoint

NAMESPACE_LABEL = "projectcalico.org/namespace"
ORCHESTRATOR_LABEL = "projectcalico.org/orchestrator"
PROTOCOLS = ("TCP", "UDP", "SCTP")
MAX_NAME = 253
_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_ALPHANUMERIC = _LOWER | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_INTERFACE = _ALPHANUMERIC | frozenset("_.-")
_SUBDOMAIN_REASON = (
    "must consist of lower case alphanumeric characters, '-' or '.', must start and end with an alphanumeric "
    f"character, and must have at most {MAX_NAME} characters"
)


def _is_dashed_word(text: str, allowed: frozenset[str]) -> bool:
    """One or more allowed characters with dashes inside, none at either end."""
    return text != "" and allowed.issuperset(text.replace("-", "")) and text[0] != "-" and text[-1] != "-"


def is_subdomain(text: str) -> bool:
    """Whether it is a lower-case DNS-1123 subdomain of at most 253 characters."""
    return len(text) <= MAX_NAME and all(_is_dashed_word(label, _LOWER) for label in text.split("."))


def require_subdomain(field: str, text: str) -> None:
    """InvalidField unless it is one."""
    if not is_subdomain(text):
        raise InvalidField(field, text, _SUBDOMAIN_REASON)


def with_forced_labels(endpoint: WorkloadEndpoint) -> WorkloadEndpoint:
    """The endpoint with the two labels that always mirror its namespace and orchestrator."""
    forced = {NAMESPACE_LABEL: endpoint.metadata.namespace, ORCHESTRATOR_LABEL: endpoint.orchestrator}
    metadata: Metadata = endpoint.metadata.replace(labels={**endpoint.metadata.labels, **forced})
    return endpoint.replace(metadata=metadata)


def check_endpoint(endpoint: WorkloadEndpoint) -> None:
    """InvalidField for the first rule that is broken."""
    _check_name(endpoint)
    _check_identifiers(endpoint)
    _check_interface_name(endpoint.interface_name)
    for network in endpoint.ip_networks:
        if network.length != BITS[network.version]:
            raise InvalidField("ipNetworks", str(network), "must be a single address")
    for nat in endpoint.ip_nats:
        _check_nat(nat, endpoint)
    for port in endpoint.ports:
        _check_port(port)


def _check_name(endpoint: WorkloadEndpoint) -> None:
    expected = full_name(identity_of(endpoint))
    name = endpoint.metadata.name
    if name != expected:
        reason = (
            "the WorkloadEndpoint name does not match the primary identifiers assigned in the Spec: "
            f"expected name {expected}"
        )
        raise InvalidField("name", name, reason)
    require_subdomain("name", name)


def _check_identifiers(endpoint: WorkloadEndpoint) -> None:
    namespace = endpoint.metadata.namespace
    if not namespace or "/" in namespace:
        raise InvalidField("namespace", namespace, "must not be empty and must not contain a '/'")
    if endpoint.container_id and not _is_dashed_word(endpoint.container_id, _ALPHANUMERIC):
        reason = "must consist of alphanumeric characters or '-', and must start and end with an alphanumeric character"
        raise InvalidField("containerID", endpoint.container_id, reason)
    named = [
        ("node", endpoint.node),
        ("endpoint", endpoint.endpoint),
        *[("profiles", profile) for profile in endpoint.profiles],
    ]
    named += [pair for pair in (("pod", endpoint.pod), ("serviceAccountName", endpoint.service_account)) if pair[1]]
    for field, text in named:
        require_subdomain(field, text)


def _check_interface_name(name: str) -> None:
    if name != "*" and not (1 <= len(name) <= 15 and _INTERFACE.issuperset(name)):
        reason = "must have 1 to 15 characters, each alphanumeric, '_', '.' or '-', or be '*'"
        raise InvalidField("interfaceName", name, reason)


def _check_nat(nat: Nat, endpoint: WorkloadEndpoint) -> None:
    try:
        internal = Address.parse(nat.internal)
        Address.parse(nat.external)
    except ValueError as error:
        raise InvalidField("ipNATs", f"{nat.internal} -> {nat.external}", str(error)) from None
    if internal not in endpoint.addresses:
        raise InvalidField("ipNATs", nat.internal, "internalIP must be one of ipNetworks")


def _check_port(port: Port) -> None:
    shown = f"{port.name}:{port.protocol}/{port.port}"
    if not 0 < port.port <= 65535:
        raise InvalidField("ports", shown, "port must be between 1 and 65535")
    if port.protocol not in PROTOCOLS:
        raise InvalidField("ports", shown, f"protocol must be one of {', '.join(PROTOCOLS)}")
    if not port.name and not port.host_port:
        raise InvalidField("ports", shown, "port needs a name or a hostPort")
