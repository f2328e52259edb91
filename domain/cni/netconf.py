"""The network configuration on stdin, as values: every field with its type, default and error.

The tables at the end say where each key's value goes and which type it must have; `json_fields` has the rules of
matching. Types are checked for all keys, also those that another dataplane or the other plugin uses.

Invariant: past this module nobody looks at the JSON again; texts passed on to other plugins are the original text.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.json_fields import (
    WrongType,
    flag,
    integer,
    members,
    read_fields,
    section,
    text,
    text_or_flag,
    texts,
    unknown_members,
    unsigned,
)
from domain.cni.plugin_conf import OWN_IPAM, Delegate, PluginConf
from domain.json_text import JsonError, dumps, kind_of, parse
from domain.resource import NO_LABELS
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from domain.cni.json_fields import Fields, Reader
    from domain.json_text import Json


BOTH_OFF = "ipam.assign_ipv4 and ipam.assign_ipv6 are both off, so no address is assigned"


class KeepAddresses(Value):
    """Ours. Addresses stay with pods whose controller is of such a kind, and with those that ask for it.

    They do so for `seconds` once no pod has them. A node may have `max_per_node` of them, 0 for any number, and a pool
    gives that share of its addresses to them. `unknown` are members that mean nothing: nobody else reads this section,
    so they are mistakes.
    """

    owners: tuple[str, ...] = ("StatefulSet",)
    seconds: int = 86_400
    max_per_node: int = 256
    max_pool_percent: int = 50
    unknown: tuple[str, ...] = ()


class KeepAs(Value):
    """What the network plugin tells the IPAM plugin about a pod whose addresses are to stay."""

    name: str = ""
    pod_uid: str = ""
    owner: str = ""


class IpamSettings(Delegate):
    """`assign_ipv4` and `assign_ipv6` are None when absent. IPv4 is off only if the one says `"false"`, IPv6 is on only
    if the other says `"true"` (Calico quirk).

    With `optional_families` (ours) a version that no pool serves is left out of the answer. `keep_addresses` is None
    where none are to stay with a name; `keep_as` is the one of this very pod.
    """

    name: str = ""
    subnet: str = ""
    assign_ipv4: str | None = None
    assign_ipv6: str | None = None
    ipv4_pools: tuple[str, ...] = ()
    ipv6_pools: tuple[str, ...] = ()
    optional_families: bool = False
    keep_addresses: KeepAddresses | None = None
    keep_as: KeepAs | None = None

    @property
    def why_nothing(self) -> str:
        """Why the plugin answers without an address, as far as this says it."""
        off = self.type == OWN_IPAM and self.assign_ipv4 == "false" and self.assign_ipv6 != "true"
        return BOTH_OFF if off else ""


class PolicySettings(Value):
    type: str = ""
    k8s_api_root: str = ""
    k8s_auth_token: str = ""
    k8s_client_certificate: str = ""
    k8s_client_key: str = ""
    k8s_certificate_authority: str = ""

    @property
    def is_kubernetes(self) -> bool:
        """Whether policy is Kubernetes' own, so that pods are asked for at its API server."""
        return self.type == "k8s"


class KubernetesSettings(Value):
    kubeconfig: str = ""
    k8s_api_root: str = ""
    node_name: str = ""


class RuntimeDns(Value):
    """`runtimeConfig.dns`: what the runtime wants in the container; only Windows uses it."""

    servers: tuple[str, ...] = ()
    domain: str = ""
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class NetConf(PluginConf):
    """One field per key of the configuration, under the key's own name where Python allows it.

    `dataplane_options` holds the string-valued options; `dataplane_type` is None when `dataplane_options.type` is
    absent, and a text that names no dataplane when it is no string. `mesos_labels` are (key, value) in the order
    given. `dns` and `policies` are JSON texts, which only Windows reads. host-local's own settings are read by who
    needs them, from the original text. `lost` are settings that a DEL needs and cannot read: (keys that lead there,
    why). `lost_ipam` is why it cannot read which IPAM plugin there is.
    """

    mode: str = ""
    vxlan_mac_prefix: str = ""
    vxlan_vni: int = 0
    qps: int = 0
    burst: int = 0
    mtu: int = 0
    num_queues: int = 0
    nodename: str = ""
    nodename_file: str = ""
    nodename_file_optional: bool = False
    hostname: str = ""
    require_mtu_file: bool = False
    datastore_type: str = ""
    sqlite_path: str = ""
    etcd_endpoints: str = ""
    etcd_discovery_srv: str = ""
    etcd_authority: str = ""
    etcd_scheme: str = ""
    etcd_key_file: str = ""
    etcd_cert_file: str = ""
    etcd_ca_cert_file: str = ""
    calico_api_group: str = ""
    device_type: str = ""
    include_default_routes: bool = False
    dataplane_type: str | None = None
    dataplane_options: Mapping[str, str] = NO_LABELS
    readiness_gates: tuple[str, ...] = ()
    policy_setup_timeout_seconds: int = 0
    endpoint_status_dir: str = "/var/run/calico/endpoint-status"
    ipam_lock_file: str = ""
    windows_use_single_network: bool = False
    windows_disable_default_deny_all_policy: bool = False
    windows_loopback_dsr: bool = False
    windows_disable_host_subnet_nat_exclusion: bool = False
    windows_pod_deletion_timestamp_timeout: int = 0
    runtime_dns: RuntimeDns = RuntimeDns()
    dns: str = ""
    policies: str = ""
    ipam: IpamSettings = IpamSettings()
    policy: PolicySettings = PolicySettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    ip_addrs_no_ipam: bool = False
    floating_ips: bool = False
    allow_ip_forwarding: bool = False
    mesos_network_name: str = ""
    mesos_labels: tuple[tuple[str, str], ...] = ()
    lost: tuple[tuple[tuple[str, ...], str], ...] = ()
    lost_ipam: str = ""

    def lost_for(self, datastore_type: str) -> str:
        """Why a datastore of that type ("": of whichever it may be) cannot be found; "" if it can.

        What was lost may have been found elsewhere since, or matter to another type only.
        """
        if not self.lost:
            return ""
        from domain.cni.datastores import kind_that_needs, said_at

        for place, why in self.lost:
            if not said_at(self, place) and (not datastore_type or kind_that_needs(place) in ("", datastore_type)):
                return why
        return ""


def parse_netconf(netconf_text: str) -> NetConf:
    """CniError 999 `failed to load netconf: <why>` for what is not JSON or has a member of a wrong type."""
    try:
        document = parse(netconf_text)
    except JsonError as error:
        raise _unreadable(error) from None
    return read_netconf(document)


def read_netconf(document: Json, verb: str = "ADD", *, ipam_only: bool = False) -> NetConf:
    """The same from JSON that is parsed already. `null` is a configuration that says nothing.

    For a DEL a member of a wrong type counts as absent, with a warning; one that says where records are is `lost`, and
    of the rest that DEL needs it is refused. `ipam_only` is the DEL of the IPAM plugin, which makes no devices and
    delegates to nobody.
    """
    if document is None:
        return NetConf()
    if not isinstance(document, dict):
        why = f"json: cannot unmarshal {kind_of(document)} into Go value of type types.NetConf"
        raise _unreadable(why)
    try:
        found = _read_members(document)
    except WrongType as error:
        if verb != "DEL":
            raise _unreadable(error) from None
        found = _without_spoilt(document, ipam_only=ipam_only)
    for spread in _SPREAD:
        found.update(found.pop(spread, {}))
    netconf = NetConf(**found)
    return netconf.replace(warnings=netconf.warnings + _odd_settings(netconf.ipam)) if verb == "ADD" else netconf


def _read_members(document: dict[str, Json]) -> dict[str, Any]:
    return read_fields(document, _NETCONF, "NetConf")


def _without_spoilt(document: dict[str, Json], *, ipam_only: bool) -> dict[str, Any]:
    from domain.cni.spoilt_netconf import without_spoilt  # few configurations are spoilt

    try:
        return without_spoilt(document, _read_members, ipam_only=ipam_only)
    except WrongType as error:
        raise _unreadable(error) from None


def _unreadable(why: object) -> CniError:
    return CniError(INTERNAL, f"failed to load netconf: {why}")


def _odd_settings(ipam: IpamSettings) -> tuple[str, ...]:
    odd = _odd_families(ipam)
    if ipam.keep_addresses is not None and ipam.keep_addresses.unknown:
        known = ", ".join(_KEEP)
        odd += tuple(
            [f'ipam.keep_addresses has no member "{key}"; it has {known}' for key in ipam.keep_addresses.unknown]
        )
    return odd


def _odd_families(ipam: IpamSettings) -> tuple[str, ...]:
    """What the two flags' texts do not say, and mean all the same."""
    flags = (("assign_ipv4", ipam.assign_ipv4, "true", "false"), ("assign_ipv6", ipam.assign_ipv6, "false", "true"))
    return tuple(
        [
            f'ipam.{name} "{text}" counts as "{meant}", as everything but "{other}" does; write "true" or "false"'
            for name, text, meant, other in flags
            if text not in (None, "", "true", "false")
        ]
    )


def _same(read: Reader, *keys: str) -> dict[str, tuple[str, Reader]]:
    """Rows of keys whose fields are called as they are."""
    return {key: (key, read) for key in keys}


def _raw(value: Json, _where: str) -> str:
    return dumps(value)


def _spread(found: dict[str, Any]) -> dict[str, Any]:
    return found


def _section(name: str, fields: Fields, build: Any, go_type: str) -> Any:
    return section(fields, build, go_type, f"{name}.")


def _go_text(value: Json) -> str:
    """What the original calls, in an error, an option that should have been a text."""
    return "<nil>" if value is None else value if isinstance(value, str) else dumps(value)


def _dataplane(value: Json, where: str) -> dict[str, Any]:
    options = members(value, where)
    chosen = {"dataplane_type": _go_text(options["type"])} if "type" in options else {}
    return {**chosen, "dataplane_options": {key: item for key, item in options.items() if isinstance(item, str)}}


def _args(value: Json, where: str) -> dict[str, Any]:
    from domain.cni.mesos_args import read_args  # few runtimes give any

    found: dict[str, Any] = read_args(value, where)
    return found


def _noting_unknown(fields: Fields) -> Reader:
    known = _section("ipam.keep_addresses", fields, _keep, "types.KeepAddresses")

    def read(value: Json, where: str) -> KeepAddresses:
        settings: KeepAddresses = known(value, where)
        return settings.replace(unknown=unknown_members(members(value, where), fields))

    return read


def _keep(found: dict[str, Any]) -> KeepAddresses:
    return KeepAddresses(**found)


def _keep_as(found: dict[str, Any]) -> KeepAs:
    return KeepAs(**found)


# Names that several keys spread over fields of NetConf, each read as a mapping of those fields.
_SPREAD = ("dataplane", "features", "container", "args", "runtime_config")

_KEEP: Fields = {**_same(texts, "owners"), **_same(integer, "seconds", "max_per_node", "max_pool_percent")}
_KEEP_AS = _same(text, "name", "pod_uid", "owner")
_IPAM: Fields = {
    "Name": ("name", text),
    **_same(text, "type", "subnet"),
    **_same(text_or_flag, "assign_ipv4", "assign_ipv6"),
    **_same(texts, "ipv4_pools", "ipv6_pools"),
    **_same(flag, "optional_families"),
    "keep_addresses": ("keep_addresses", _noting_unknown(_KEEP)),
    "keep_as": ("keep_as", _section("ipam.keep_as", _KEEP_AS, _keep_as, "types.KeepAs")),
}
# The original's type has no name, so Go prints all of it (recorded in the answer to `"ipam": "x"`).
_IPAM_GO_TYPE = (
    'struct { Name string; Type string "json:\\"type\\""; Subnet string "json:\\"subnet\\""; '
    'AssignIpv4 *string "json:\\"assign_ipv4\\""; AssignIpv6 *string "json:\\"assign_ipv6\\""; '
    'IPv4Pools []string "json:\\"ipv4_pools,omitempty\\""; IPv6Pools []string "json:\\"ipv6_pools,omitempty\\"" }'
)
_POLICY = _same(text, "type", "k8s_api_root", "k8s_auth_token", "k8s_client_certificate", "k8s_client_key")
_POLICY |= _same(text, "k8s_certificate_authority")
_KUBERNETES = _same(text, "kubeconfig", "k8s_api_root", "node_name")
_FEATURES = _same(flag, "ip_addrs_no_ipam", "floating_ips")
_CONTAINER = _same(flag, "allow_ip_forwarding")
_DNS = {**_same(texts, "servers", "searches", "options"), **_same(text, "domain")}
_RUNTIME: Fields = {
    "dns": ("runtime_dns", section(_DNS, lambda found: RuntimeDns(**found), "types.RuntimeDNS", "runtimeConfig.dns."))
}

_NETCONF: Fields = {
    "cniVersion": ("cni_version", text),
    "dataplane_options": ("dataplane", _dataplane),
    "windows_loopback_DSR": ("windows_loopback_dsr", flag),
    **_same(text, "name", "type", "mode", "vxlan_mac_prefix", "nodename", "nodename_file", "hostname", "device_type"),
    **_same(text, "datastore_type", "sqlite_path", "calico_api_group", "etcd_endpoints", "etcd_discovery_srv"),
    **_same(text, "etcd_authority", "etcd_scheme", "etcd_key_file", "etcd_cert_file", "etcd_ca_cert_file"),
    **_same(text, "endpoint_status_dir", "ipam_lock_file", "metrics_dir"),
    **_same(text, "log_level", "log_format", "log_file_path"),
    **_same(integer, "qps", "burst", "mtu", "num_queues", "timeout_seconds", "policy_setup_timeout_seconds"),
    **_same(integer, "log_file_max_size", "log_file_max_age", "log_file_max_count"),
    **_same(integer, "windows_pod_deletion_timestamp_timeout"),
    **_same(flag, "nodename_file_optional", "require_mtu_file", "include_default_routes"),
    **_same(flag, "windows_use_single_network", "windows_disable_default_deny_all_policy"),
    **_same(flag, "windows_disable_host_subnet_nat_exclusion"),
    **_same(_raw, "dns", "policies"),
    **_same(unsigned, "vxlan_vni"),
    **_same(texts, "readiness_gates"),
    "ipam": ("ipam", section(_IPAM, lambda found: IpamSettings(**found), _IPAM_GO_TYPE, "ipam.", "")),
    "policy": ("policy", _section("policy", _POLICY, lambda found: PolicySettings(**found), "types.Policy")),
    "kubernetes": (
        "kubernetes",
        _section("kubernetes", _KUBERNETES, lambda found: KubernetesSettings(**found), "types.Kubernetes"),
    ),
    "feature_control": ("features", _section("feature_control", _FEATURES, _spread, "types.FeatureControl")),
    "container_settings": ("container", _section("container_settings", _CONTAINER, _spread, "types.ContainerSettings")),
    "args": ("args", _args),
    "runtimeConfig": ("runtime_config", _section("runtimeConfig", _RUNTIME, _spread, "types.RuntimeConfig")),
    "prevResult": ("prev_result", _raw),
}
