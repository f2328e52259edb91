"""Our values → the documents of HNS, of either generation, and what is read out of those.

The newer generation wraps a policy's members in `Settings`, and calls some policies and members otherwise.

A service may answer anything, and policies of others are among what it shows: a member of the wrong form counts as
absent. An id of the wrong form is an error, since each request needs it.

Invariant: pure; a document that is made here leaves out its empty members.
"""

from __future__ import annotations

from adapters.windows.seam import FAILED, hns_error
from domain.ipam.address import Address, Cidr
from domain.json_text import dumps
from domain.windows.conf import OUTBOUND_NAT
from domain.windows.policies import MANAGEMENT, MANAGEMENT_SUBNET, PROVIDER_ADDRESS, ROUTE
from domain.windows.steps import OVERLAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from adapters.windows.seam import Document
    from domain.json_text import Json
    from domain.windows.conf import Policy
    from domain.windows.steps import Endpoint, EnsureHostEndpoint, EnsureNetwork, EnsureRemoteEndpoint

SCHEMA: Document = {"Major": 2, "Minor": 0}
DENY_ID = "CNIDefaultDenyAllPolicy"
HOST_COMPARTMENT = 1
NO_NAMESPACE = "00000000-0000-0000-0000-000000000000"  # that of an endpoint which is in none
_ANY_PROTOCOL, _LAST_PRIORITY = 256, 65500
_DENY = {"Action": "Block", "Direction": "In", "RuleType": "Switch", "Priority": _LAST_PRIORITY}
_NEWER_TYPES = {ROUTE.lower(): "SDNRoute", "sdnroute": "SDNRoute", PROVIDER_ADDRESS.lower(): "ProviderAddress"}
_NEWER_MEMBERS = {
    (OUTBOUND_NAT, "ExceptionList"): "Exceptions",
    (OUTBOUND_NAT, "VIP"): "VirtualIP",
    ("ProviderAddress", "PA"): "ProviderAddress",
}


class Found:
    """What the host has told while a plan was made true: the address it manages a network by, and that one's subnet."""

    def __init__(self) -> None:
        self.management: Address | None = None
        self.management_subnet: Cidr | None = None

    def fill(self, value: Json) -> Json:
        """The value with each placeholder replaced."""
        if isinstance(value, str):
            filled = value.replace(MANAGEMENT_SUBNET, str(self.management_subnet and self.management_subnet.network))
            return filled.replace(MANAGEMENT, str(self.management))
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            return {name: self.fill(item) for name, item in value.items()}
        return value


def needs_subnet(policies: Iterable[Policy]) -> bool:
    return any(MANAGEMENT_SUBNET in policy.settings for policy in policies)


def older_policy(policy: Policy, found: Found) -> Document:
    """`{"ExceptionList":[…],"Type":"OutBoundNAT"}`"""
    document = {**policy.members(), "Type": policy.type}
    return {name: found.fill(document[name]) for name in sorted(document)}


def newer_policy(policy: Policy, found: Found) -> Document:
    """`{"Type":"OutBoundNAT","Settings":{"Exceptions":[…]}}`"""
    type = OUTBOUND_NAT if policy.is_of(OUTBOUND_NAT) else _NEWER_TYPES.get(policy.type.lower(), policy.type)
    settings = {_NEWER_MEMBERS.get((type, name), name): found.fill(item) for name, item in policy.members().items()}
    return {"Type": type, "Settings": settings}


def older_deny() -> Document:
    return {"Type": "ACL", "Id": DENY_ID, "Protocol": _ANY_PROTOCOL, **_DENY}


def newer_deny() -> Document:
    return {"Type": "ACL", "Settings": {"Protocols": str(_ANY_PROTOCOL), **_DENY}}


def network(action: EnsureNetwork) -> Document:
    subnet: Document = {"AddressPrefix": str(action.subnet), "GatewayAddress": str(action.gateway)}
    if action.type == OVERLAY:
        subnet["Policies"] = [{"Type": "VSID", "VSID": action.vsid}]
    return {"Name": action.name, "Type": action.type, "Subnets": [subnet]}


def text(document: Document, name: str) -> str:
    """A member that is a text; "" for anything else."""
    found = document.get(name)
    return found if isinstance(found, str) else ""


def objects(value: Any) -> list[Document]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def identity(document: Document) -> str:
    """`HnsError` for an object without one."""
    found = text(document, "ID")
    if not found:
        raise hns_error("read an object", FAILED, f"it has no ID: {dumps(document)}")
    return found


def is_network(document: Document, action: EnsureNetwork) -> bool:
    """Whether it is the one that is wanted: its type, and its one subnet with the gateway and number of that."""
    (wanted,) = network(action)["Subnets"]
    subnets = objects(document.get("Subnets"))
    if text(document, "Type").lower() != action.type.lower() or len(subnets) != 1:
        return False
    there = subnets[0]
    numbers = [policy.get("VSID") for policy in objects(there.get("Policies")) if policy.get("Type") == "VSID"]
    same = all(there.get(name) == wanted[name] for name in ("AddressPrefix", "GatewayAddress"))
    return same and (action.type != OVERLAY or numbers == [action.vsid])


def host_endpoint(action: EnsureHostEndpoint, network_id: str) -> Document:
    return {"Name": action.name, "VirtualNetwork": network_id, "IPAddress": str(action.address)}


def remote_endpoint(action: EnsureRemoteEndpoint, network_id: str, management: Address, mac: str) -> Document:
    return {
        "Name": action.name,
        "VirtualNetwork": network_id,
        "IPAddress": str(action.address),
        "MacAddress": mac,
        "IsRemoteEndpoint": True,
        "Policies": [{"Type": PROVIDER_ADDRESS, "PA": str(management)}],
    }


def provider_address(document: Document) -> str:
    """Of a remote endpoint, "" without one."""
    policies = objects(document.get("Policies"))
    return next((text(policy, "PA") for policy in policies if policy.get("Type") == PROVIDER_ADDRESS), "")


def older_endpoint(endpoint: Endpoint, network_id: str, found: Found) -> Document:
    return _saying(
        {
            "Name": endpoint.name,
            "VirtualNetwork": network_id,
            "DNSServerList": ",".join(endpoint.dns.nameservers),
            "DNSSuffix": ",".join(endpoint.dns.search),
            "GatewayAddress": str(endpoint.gateway),
            "IPAddress": str(endpoint.address.address),
            "MacAddress": endpoint.mac,
            "Policies": [older_policy(policy, found) for policy in endpoint.policies],
        }
    )


def newer_endpoint(endpoint: Endpoint, network_id: str, found: Found) -> Document:
    dns = endpoint.dns
    return _saying(
        {
            "Name": endpoint.name,
            "HostComputeNetwork": network_id,
            "Dns": _saying(
                {
                    "Domain": dns.domain,
                    "Search": list(dns.search),
                    "ServerList": list(dns.nameservers),
                    "Options": list(dns.options),
                }
            ),
            "MacAddress": endpoint.mac,
            "Routes": [{"NextHop": str(endpoint.gateway), "DestinationPrefix": "0.0.0.0/0"}],
            "IpConfigurations": [{"IpAddress": str(endpoint.address.address), "PrefixLength": endpoint.address.length}],
            "Policies": [newer_policy(policy, found) for policy in endpoint.policies],
            "SchemaVersion": SCHEMA,
        }
    )


def _saying(document: Document) -> Document:
    return {name: item for name, item in document.items() if item not in ("", [], {})}


def query(**members: str) -> Document:
    """What finds the objects with all of these members; without any, all objects."""
    return {"SchemaVersion": SCHEMA, "Flags": 0, "Filter": dumps(dict(members)) if members else ""}


def policy_change(*policies: Document) -> Document:
    return {"ResourceType": "Policy", "RequestType": "Add", "Settings": {"Policies": list(policies)}}


def endpoint_change(request: str, endpoint: str) -> Document:
    """`request` is Add or Remove: of an endpoint to a namespace, or from it."""
    return {"ResourceType": "Endpoint", "RequestType": request, "Settings": {"EndpointId": endpoint}}


def addresses(document: Document) -> list[str]:
    """Of an endpoint as the newer generation shows it."""
    return [text(entry, "IpAddress") for entry in objects(document.get("IpConfigurations"))]


def policy_settings(document: Document, type: str) -> Document | None:
    """Of the first policy of that type that a network or endpoint of the newer generation has; None without one."""
    for policy in objects(document.get("Policies")):
        if policy.get("Type") == type:
            found = policy.get("Settings")
            return found if isinstance(found, dict) else {}
    return None
