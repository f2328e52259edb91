"""How each generation of HNS shows the objects that both have, for the one over dicts.

Endpoints are kept as the newer one has them; the older one calls policies and members otherwise, and lays them flat.

Invariant: what one generation writes it reads again unchanged, through either of the two functions for each thing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.windows.seam import Document

SCHEMA: Document = {"Major": 2, "Minor": 0}
NOWHERE = "00000000-0000-0000-0000-000000000000"
_OLDER_TYPES = {"SDNRoute": "ROUTE", "ProviderAddress": "PA"}
_NEWER_TYPES = {older: newer for newer, older in _OLDER_TYPES.items()}
_OLDER_MEMBERS = {("OutBoundNAT", "Exceptions"): "ExceptionList", ("ProviderAddress", "ProviderAddress"): "PA"}
_NEWER_MEMBERS = {(type, older): newer for (type, newer), older in _OLDER_MEMBERS.items()}


def older_policy(policy: Document) -> Document:
    type = str(policy["Type"])
    settings = policy.get("Settings") or {}
    named = {_OLDER_MEMBERS.get((type, name), name): item for name, item in settings.items()}
    return {"Type": _OLDER_TYPES.get(type, type), **named}


def newer_policy(policy: Document) -> Document:
    older = str(policy["Type"])
    type = _NEWER_TYPES.get(older, older)
    rest = {name: item for name, item in policy.items() if name != "Type"}
    return {"Type": type, "Settings": {_NEWER_MEMBERS.get((type, name), name): item for name, item in rest.items()}}


def newer_endpoint(older: Document) -> Document:
    """What the older generation has been asked for."""
    address = {"IpAddress": older["IPAddress"], "PrefixLength": older.get("PrefixLength", 0)}
    servers = [one for one in older.get("DNSServerList", "").split(",") if one]
    return {
        "Name": older["Name"],
        "IpConfigurations": [address],
        "MacAddress": older.get("MacAddress", ""),
        "Dns": {"Domain": older.get("DNSSuffix", ""), "ServerList": servers},
        "Routes": [{"NextHop": older.get("GatewayAddress", ""), "DestinationPrefix": "0.0.0.0/0"}],
        "Policies": [newer_policy(policy) for policy in older.get("Policies") or []],
        "Flags": int(older.get("IsRemoteEndpoint", False)),
    }


def older_endpoint(newer: Document) -> Document:
    address, dns = newer["IpConfigurations"][0], newer.get("Dns") or {}
    return {
        "ID": newer["ID"],
        "Name": newer["Name"],
        "VirtualNetwork": newer["HostComputeNetwork"],
        "IPAddress": address["IpAddress"],
        "PrefixLength": address["PrefixLength"],
        "MacAddress": newer["MacAddress"],
        "GatewayAddress": next((route["NextHop"] for route in newer.get("Routes") or []), ""),
        "DNSSuffix": dns.get("Domain", ""),
        "DNSServerList": ",".join(dns.get("ServerList") or []),
        "IsRemoteEndpoint": bool(newer.get("Flags")),
        "Policies": [older_policy(policy) for policy in newer.get("Policies") or []],
    }


def newer_network(older: Document, added: list[Document]) -> Document:
    """`added` are the policies that only this generation knows of."""
    subnets = [
        {
            "IpAddressPrefix": subnet["AddressPrefix"],
            "Routes": [{"NextHop": subnet["GatewayAddress"], "DestinationPrefix": "0.0.0.0/0"}],
        }
        for subnet in older["Subnets"]
    ]
    shown = {"ID": older["ID"], "Name": older["Name"], "Type": older["Type"], "SchemaVersion": SCHEMA}
    return {**shown, "Ipams": [{"Type": "Static", "Subnets": subnets}], "Policies": [*_own(older), *added]}


def _own(network: Document) -> list[Document]:
    """Those that an overlay gets from the service."""
    if network["Type"] != "Overlay":
        return []
    address = {"Type": "ProviderAddress", "Settings": {"ProviderAddress": network["ManagementIP"]}}
    return [{"Type": "DrMacAddress", "Settings": {"Address": "00-15-5D-AA-BB-CC"}}, address]
