"""What a network configuration says to Windows nodes: endpoint policies, name servers, the kind of network.

Linux nodes ignore all of it, so what is more than a flag is read here, by whoever connects a container on Windows, and
not with the rest of the configuration.

Invariant: a policy is kept as it was given, in the words of the older generation of HNS, whichever it was written in.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.json_fields import WrongType, members, read_fields, section, sections, text, texts
from domain.cni.result import Dns
from domain.json_text import dumps, parse
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from domain.cni.json_fields import Fields
    from domain.cni.netconf import NetConf
    from domain.json_text import Json

VXLAN = "vxlan"
OUTBOUND_NAT = "OutBoundNAT"
_ENDPOINT_POLICY = "EndpointPolicy"
_DEFAULT_MAC_PREFIX, _DEFAULT_VNI, _LEAST_VNI = "0E-2A", 4096, 4096
_DEFAULT_TIMEOUT = 600
_PREFIX_DIGITS = frozenset("0123456789abcdefABCDEF")


class Policy(Value):
    """A policy of an endpoint. `settings` is the JSON text of all its members but `Type`, keys sorted."""

    type: str
    settings: str = "{}"

    @classmethod
    def of(cls, type: str, **settings: Json) -> Policy:
        return cls(type, dumps({name: settings[name] for name in sorted(settings)}))

    def is_of(self, type: str) -> bool:
        return self.type.lower() == type.lower()

    def members(self) -> dict[str, Json]:
        found = parse(self.settings)
        return found if isinstance(found, dict) else {}


class _NoType(ValueError):
    """A policy that does not say what it is."""


class WindowsConf(Value):
    """`name` is the network's. `dns` is what the runtime wants, else what the configuration has.

    `deletion_timeout` is for how many seconds a sandbox that was deleted may not come back.
    """

    name: str
    is_overlay: bool = False
    single_network: bool = False
    default_deny: bool = True
    loopback_dsr: bool = False
    host_subnet_exclusion: bool = True
    vni: int = _DEFAULT_VNI
    mac_prefix: str = _DEFAULT_MAC_PREFIX
    policies: tuple[Policy, ...] = ()
    dns: Dns = Dns()
    deletion_timeout: int = _DEFAULT_TIMEOUT


def read_windows_conf(netconf: NetConf) -> WindowsConf:
    """CniError 999 for what Windows cannot use: the texts about MAC prefix and VNI are the original's."""
    is_overlay = netconf.mode == VXLAN
    if is_overlay:
        _check_overlay(netconf)
    try:
        found = _read(netconf)
    except (WrongType, _NoType) as error:
        raise CniError(INTERNAL, f"failed to load netconf: {error}") from None
    return WindowsConf(
        netconf.name,
        is_overlay=is_overlay,
        single_network=netconf.windows_use_single_network,
        default_deny=not netconf.windows_disable_default_deny_all_policy,
        loopback_dsr=netconf.windows_loopback_dsr,
        host_subnet_exclusion=not netconf.windows_disable_host_subnet_nat_exclusion,
        vni=netconf.vxlan_vni or _DEFAULT_VNI,
        mac_prefix=netconf.vxlan_mac_prefix or _DEFAULT_MAC_PREFIX,
        policies=tuple([policy for policy in found.get("policies", ()) if policy is not None]),
        dns=_wanted_dns(netconf) or found.get("dns", Dns()),
        deletion_timeout=netconf.windows_pod_deletion_timestamp_timeout or _DEFAULT_TIMEOUT,
    )


def _check_overlay(netconf: NetConf) -> None:
    prefix = netconf.vxlan_mac_prefix
    well_formed = len(prefix) == 5 and prefix[2] == "-" and _PREFIX_DIGITS.issuperset(prefix[:2] + prefix[3:])
    if prefix and not well_formed:
        raise CniError(INTERNAL, f"endpointMacPrefix [{prefix}] is invalid, value must be of the format xx-xx")
    if netconf.vxlan_vni and netconf.vxlan_vni < _LEAST_VNI:
        raise CniError(INTERNAL, "Windows does not support VXLANVNI < 4096")


def _wanted_dns(netconf: NetConf) -> Dns | None:
    wanted = netconf.runtime_dns
    return Dns(wanted.servers, wanted.domain, wanted.searches, wanted.options) if wanted.servers else None


def _read(netconf: NetConf) -> dict[str, Any]:
    return read_fields({"dns": _parsed(netconf.dns), "policies": _parsed(netconf.policies)}, _KEYS, "NetConf")


def _parsed(text: str) -> Json:
    return parse(text) if text else None


def _given(found: dict[str, Any]) -> Policy | None:
    """An entry of `policies`, if it is about endpoints."""
    value = found.get("value", {})
    return _policy(value) if found.get("name", "").lower() == _ENDPOINT_POLICY.lower() else None


def _policy(value: dict[str, Json]) -> Policy:
    type = _member(value, "type")
    if not isinstance(type, str) or not type:
        raise _NoType(f'an EndpointPolicy of "policies" has no "Type": {dumps(value)}')
    settings = _member(value, "settings")
    if isinstance(settings, dict):  # it is written for the newer generation
        return Policy.of(type, **{_OLDER.get(name, name): item for name, item in settings.items()})
    return Policy.of(type, **{name: item for name, item in value.items() if name.lower() != "type"})


_OLDER = {"Exceptions": "ExceptionList"}


def _member(document: dict[str, Json], name: str) -> Json:
    return next((item for key, item in document.items() if key.lower() == name), None)


_DNS: Fields = {
    "nameservers": ("nameservers", texts),
    "domain": ("domain", text),
    "search": ("search", texts),
    "options": ("options", texts),
}
_POLICY: Fields = {"name": ("name", text), "value": ("value", members)}
_KEYS: Fields = {
    "dns": ("dns", section(_DNS, lambda found: Dns(**found), "types.DNS", "dns.")),
    "policies": ("policies", sections(_POLICY, "hns.Policy", "policies.", _given)),
}
