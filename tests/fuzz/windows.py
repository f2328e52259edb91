"""What only Windows nodes read: parts of the configuration, PowerShell's answers, documents of HNS."""

from __future__ import annotations

import json

from adapters.windows import documents
from adapters.windows.documents import Found, newer_policy, older_policy
from adapters.windows.seam import HnsError
from domain.cni.errors import CniError
from domain.cni.netconf import parse_netconf
from domain.install.windows import supports_dsr
from domain.ipam.address import Address, Cidr
from domain.json_text import JsonError, dumps, parse
from domain.windows.conf import read_windows_conf
from domain.windows.host_local import with_pinned_ranges
from domain.windows.policies import OutgoingNat, endpoint_policies
from domain.windows.steps import EnsureNetwork
from fuzz.target import Allowed, Target, octets_of, require, text_of

_ADDRESS, _SUBNET = Address.parse("10.0.1.7"), Cidr.parse("10.0.1.0/26")
_WANTED = EnsureNetwork("n", "Overlay", _SUBNET, _SUBNET.at(1), 4096)
_CONF = {
    "name": "n",
    "mode": "vxlan",
    "vxlan_vni": 4096,
    "vxlan_mac_prefix": "0E-2A",
    "windows_loopback_DSR": True,
    "DNS": {"Nameservers": ["10.96.0.10"], "Search": ["a"], "domain": "d", "options": ["o"]},
    "policies": [
        {"Name": "EndpointPolicy", "Value": {"Type": "OutBoundNAT", "ExceptionList": ["10.96.0.0/12"]}},
        {"name": "EndpointPolicy", "value": {"type": "ROUTE", "Settings": {"DestinationPrefix": "10.0.0.0/8"}}},
    ],
}
_SEEN = {
    "ID": "8e9a1c32",
    "Type": "Overlay",
    "ManagementIP": "10.0.0.1",
    "Subnets": [
        {"AddressPrefix": "10.0.1.0/26", "GatewayAddress": "10.0.1.1", "Policies": [{"Type": "VSID", "VSID": 4096}]}
    ],
    "IpConfigurations": [{"IpAddress": "10.0.1.7", "PrefixLength": 26}],
    "Policies": [
        {"Type": "PA", "PA": "10.0.0.1"},
        {"Type": "DrMacAddress", "Settings": {"Address": "00-15-5D-AA-BB-CC"}},
    ],
}


def _conf(octets: bytes) -> None:
    with Allowed(CniError):
        conf = read_windows_conf(parse_netconf(text_of(octets)))
        found = Found()
        found.management, found.management_subnet = _ADDRESS, _SUBNET
        for policy in endpoint_policies(conf, OutgoingNat(exceptions=(_SUBNET,)), _ADDRESS):
            for document in (older_policy(policy, found), newer_policy(policy, found)):
                require(bool(document["Type"]), "a policy without a type", document)
                dumps(document)


def _ranges(octets: bytes) -> None:
    with Allowed(JsonError):
        text = text_of(octets)
        pinned = with_pinned_ranges(text)
        require(with_pinned_ranges(pinned) == pinned, "pinned ranges are not", pinned)


def _version(octets: bytes) -> None:
    with Allowed(ValueError):
        supports_dsr(text_of(octets))


def _document(octets: bytes) -> None:
    with Allowed(JsonError, HnsError):
        seen = parse(text_of(octets))
        if isinstance(seen, dict):
            documents.is_network(seen, _WANTED)
            documents.provider_address(seen)
            documents.addresses(seen)
            documents.policy_settings(seen, "DrMacAddress")
            documents.identity(seen)


TARGETS = (
    Target("windows_conf", _conf, octets_of(json.dumps(_CONF)), form="json"),
    Target(
        "windows_ranges",
        _ranges,
        octets_of(
            json.dumps({"ipam": {"subnet": "10.0.0.0/26", "ranges": [[{"subnet": "10.0.1.0/24", "rangeEnd": "x"}]]}})
        ),
        form="json",
    ),
    Target(
        "windows_version",
        _version,
        octets_of("\r\na b c\r\n- - -\r\n1809 17763 10.0.17763.1432\r\n"),
        form="text",
        most=256,
    ),
    Target("hns_document", _document, octets_of(json.dumps(_SEEN)), form="json"),
)
