"""The network configuration on stdin, as values: every field with its type, default and error.

The tables at the end say where each key's value goes and which type it must have; `json_fields` has the rules of
matching. Types are checked for all keys, also those that another dataplane or the other plugin uses. A DEL ignores
spoilt members that it can do without, since a container has to end whatever has become of its configuration.

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
    sections,
    text,
    text_or_flag,
    texts,
    unsigned,
    without,
)
from domain.cni.plugin_conf import OWN_IPAM, Delegate, PluginConf
from domain.json_text import JsonError, dumps, kind_of, parse
from domain.resource import NO_LABELS
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from domain.cni.json_fields import Fields
    from domain.json_text import Json


BOTH_OFF = "ipam.assign_ipv4 and ipam.assign_ipv6 are both off, so no address is assigned"


class IpamSettings(Delegate):
    """`assign_ipv4` and `assign_ipv6` are None when absent. IPv4 is off only if the one says `"false"`, IPv6 is on only
    if the other says `"true"` (Calico quirk).

    With `optional_families` (ours) a version that no pool serves is left out of the answer.
    """

    name: str = ""
    subnet: str = ""
    assign_ipv4: str | None = None
    assign_ipv6: str | None = None
    ipv4_pools: tuple[str, ...] = ()
    ipv6_pools: tuple[str, ...] = ()
    optional_families: bool = False

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
    given. host-local's own settings are read by who needs them, from the original text. `lost` are settings that a DEL
    needs and cannot read: (keys that lead there, why). `lost_ipam` is why it cannot read which IPAM plugin there is.
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
    windows_pod_deletion_timestamp_timeout: int = 0
    runtime_dns: RuntimeDns = RuntimeDns()
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
        for place, why in self.lost:
            value: Any = self
            for name in place:
                value = getattr(value, name)
            if not value and datastore_type in ("", _MATTERS_TO.get(place[0], datastore_type)):
                return why
        return ""


def parse_netconf(netconf_text: str) -> NetConf:
    """CniError 999 `failed to load netconf: <why>` for what is not JSON or has a member of a wrong type."""
    try:
        document = parse(netconf_text)
    except JsonError as error:
        raise CniError(INTERNAL, f"failed to load netconf: {error}") from None
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
        raise CniError(INTERNAL, f"failed to load netconf: {why}")
    found: dict[str, Any] = {}
    try:
        if verb == "DEL":
            found = _without_spoilt(document, _NEEDED_BY_IPAM if ipam_only else _NEEDED_BY_NETWORK)
        else:
            found = read_fields(document, _NETCONF, "NetConf")
    except ValueError as error:
        raise CniError(INTERNAL, f"failed to load netconf: {error}") from None
    for spread in _SPREAD:
        found.update(found.pop(spread, {}))
    netconf = NetConf(**found)
    return netconf.replace(warnings=netconf.warnings + _odd_families(netconf.ipam)) if verb == "ADD" else netconf


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


def _without_spoilt(document: dict[str, Json], needed: frozenset[tuple[str, ...]]) -> dict[str, Any]:
    """The members as DEL takes them, with `warnings`. WrongType for one that is needed."""
    warnings: tuple[str, ...] = ()
    best: dict[str, Any] = {}
    lost: tuple[tuple[tuple[str, ...], str], ...] = ()
    lost_ipam = ""
    while True:
        try:
            told = {"warnings": warnings, "lost": lost, "lost_ipam": lost_ipam}
            return {**read_fields(document, _NETCONF, "NetConf"), **best, **told}
        except WrongType as error:
            if error.place in needed:
                raise
            document = without(document, error.spelt)
            warnings += (f'DEL does without "{".".join(error.spelt)}" of the network configuration; mend it: {error}',)
            if error.place in _WHERE_RECORDS:
                lost += ((_WHERE_RECORDS[error.place], f"failed to load netconf: {error}"),)
            if error.place in _WHO_GAVE_ADDRESSES:
                lost_ipam = f"failed to load netconf: {error}"
            best.update(_INSTEAD.get(error.place, {}))


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


def _mesos(found: dict[str, Any]) -> dict[str, Any]:
    """Three nested objects come down to a name and a list of labels."""
    info: dict[str, Any] = found.get("mesos", {}).get("info", {})
    labels: tuple[tuple[str, str], ...] = info.get("labels", {}).get("labels", ())
    return {"mesos_network_name": info.get("name", ""), "mesos_labels": labels}


# DEL needs to know under which node's name records are; that of the network plugin also which plugin holds the
# addresses and which one the device. With another value there than ADD had it would look in the wrong place, find
# nothing and call that a success. `name` and `cniVersion` are read before (`domain.cni.request`).
_NEEDED_BY_IPAM = frozenset([("nodename",), ("nodename_file",), ("hostname",)])
_NEEDED_BY_NETWORK = _NEEDED_BY_IPAM | {("dataplane_options",)}
# Who gave the addresses is found out otherwise, as far as that can be.
_WHO_GAVE_ADDRESSES = {("ipam",), ("ipam", "type")}
# Likewise where records are; but the rest is done without them. Each with the place that a value has to be found for.
_WHERE_RECORDS = {
    place: place
    for place in [
        *(("datastore_type",), ("sqlite_path",), ("etcd_endpoints",), ("etcd_discovery_srv",), ("calico_api_group",)),
        *(("etcd_key_file",), ("etcd_cert_file",), ("etcd_ca_cert_file",)),
        *(("kubernetes", "kubeconfig"), ("kubernetes", "k8s_api_root"), ("policy", "k8s_api_root")),
    ]
}
_WHERE_RECORDS["kubernetes",] = ("kubernetes", "kubeconfig")
_MATTERS_TO = {
    "sqlite_path": "sqlite",
    **dict.fromkeys([place[0] for place in _WHERE_RECORDS if place[0].startswith("etcd_")], "etcdv3"),
    **dict.fromkeys(("kubernetes", "policy", "calico_api_group"), "kubernetes"),
}
# What stands for a member of a wrong type where its default would hold DEL up.
_INSTEAD: dict[tuple[str, ...], dict[str, Any]] = {("nodename_file_optional",): {"nodename_file_optional": True}}

# Names that several keys spread over fields of NetConf, each read as a mapping of those fields.
_SPREAD = ("dataplane", "feature_control", "container_settings", "args", "runtime_config")

_IPAM: Fields = {
    "type": ("type", text),
    "Name": ("name", text),
    "subnet": ("subnet", text),
    "assign_ipv4": ("assign_ipv4", text_or_flag),
    "assign_ipv6": ("assign_ipv6", text_or_flag),
    "ipv4_pools": ("ipv4_pools", texts),
    "ipv6_pools": ("ipv6_pools", texts),
    "optional_families": ("optional_families", flag),
}
# The original's type has no name, so Go prints all of it (recorded in the answer to `"ipam": "x"`).
_IPAM_GO_TYPE = (
    'struct { Name string; Type string "json:\\"type\\""; Subnet string "json:\\"subnet\\""; '
    'AssignIpv4 *string "json:\\"assign_ipv4\\""; AssignIpv6 *string "json:\\"assign_ipv6\\""; '
    'IPv4Pools []string "json:\\"ipv4_pools,omitempty\\""; IPv6Pools []string "json:\\"ipv6_pools,omitempty\\"" }'
)
_POLICY: Fields = {
    "type": ("type", text),
    "k8s_api_root": ("k8s_api_root", text),
    "k8s_auth_token": ("k8s_auth_token", text),
    "k8s_client_certificate": ("k8s_client_certificate", text),
    "k8s_client_key": ("k8s_client_key", text),
    "k8s_certificate_authority": ("k8s_certificate_authority", text),
}
_KUBERNETES: Fields = {
    "kubeconfig": ("kubeconfig", text),
    "k8s_api_root": ("k8s_api_root", text),
    "node_name": ("node_name", text),
}
_FEATURES: Fields = {"ip_addrs_no_ipam": ("ip_addrs_no_ipam", flag), "floating_ips": ("floating_ips", flag)}
_CONTAINER: Fields = {"allow_ip_forwarding": ("allow_ip_forwarding", flag)}
_DNS: Fields = {
    "servers": ("servers", texts),
    "domain": ("domain", text),
    "searches": ("searches", texts),
    "options": ("options", texts),
}
_RUNTIME: Fields = {
    "dns": ("runtime_dns", section(_DNS, lambda found: RuntimeDns(**found), "types.RuntimeDNS", "runtimeConfig.dns."))
}
_MESOS = "args.org.apache.mesos."
_LABEL: Fields = {"key": ("key", text), "value": ("value", text)}
_LABELS: Fields = {
    "labels": (
        "labels",
        sections(
            _LABEL,
            "types.Label",
            _MESOS + "network_info.labels.labels.",
            lambda found: (found.get("key", ""), found.get("value", "")),
        ),
    )
}
_INFO: Fields = {
    "name": ("name", text),
    "labels": ("labels", section(_LABELS, _spread, "types.Labels", _MESOS + "network_info.labels.")),
}
_APACHE: Fields = {"network_info": ("info", section(_INFO, _spread, "types.NetworkInfo", _MESOS + "network_info."))}
_ARGS: Fields = {"org.apache.mesos": ("mesos", section(_APACHE, _spread, "types.Mesos", _MESOS))}

_NETCONF: Fields = {
    "cniVersion": ("cni_version", text),
    "name": ("name", text),
    "type": ("type", text),
    "mode": ("mode", text),
    "vxlan_mac_prefix": ("vxlan_mac_prefix", text),
    "vxlan_vni": ("vxlan_vni", unsigned),
    "qps": ("qps", integer),
    "burst": ("burst", integer),
    "mtu": ("mtu", integer),
    "num_queues": ("num_queues", integer),
    "nodename": ("nodename", text),
    "nodename_file": ("nodename_file", text),
    "nodename_file_optional": ("nodename_file_optional", flag),
    "hostname": ("hostname", text),
    "require_mtu_file": ("require_mtu_file", flag),
    "datastore_type": ("datastore_type", text),
    "sqlite_path": ("sqlite_path", text),
    "etcd_endpoints": ("etcd_endpoints", text),
    "etcd_discovery_srv": ("etcd_discovery_srv", text),
    "etcd_authority": ("etcd_authority", text),
    "etcd_scheme": ("etcd_scheme", text),
    "etcd_key_file": ("etcd_key_file", text),
    "etcd_cert_file": ("etcd_cert_file", text),
    "etcd_ca_cert_file": ("etcd_ca_cert_file", text),
    "calico_api_group": ("calico_api_group", text),
    "device_type": ("device_type", text),
    "include_default_routes": ("include_default_routes", flag),
    "dataplane_options": ("dataplane", _dataplane),
    "readiness_gates": ("readiness_gates", texts),
    "policy_setup_timeout_seconds": ("policy_setup_timeout_seconds", integer),
    "endpoint_status_dir": ("endpoint_status_dir", text),
    "ipam_lock_file": ("ipam_lock_file", text),
    "timeout_seconds": ("timeout_seconds", integer),
    "log_level": ("log_level", text),
    "log_file_path": ("log_file_path", text),
    "log_file_max_size": ("log_file_max_size", integer),
    "log_file_max_age": ("log_file_max_age", integer),
    "log_file_max_count": ("log_file_max_count", integer),
    "windows_use_single_network": ("windows_use_single_network", flag),
    "windows_disable_default_deny_all_policy": ("windows_disable_default_deny_all_policy", flag),
    "windows_loopback_DSR": ("windows_loopback_dsr", flag),
    "windows_pod_deletion_timestamp_timeout": ("windows_pod_deletion_timestamp_timeout", integer),
    "ipam": ("ipam", section(_IPAM, lambda found: IpamSettings(**found), _IPAM_GO_TYPE, "ipam.", "")),
    "policy": ("policy", _section("policy", _POLICY, lambda found: PolicySettings(**found), "types.Policy")),
    "kubernetes": (
        "kubernetes",
        _section("kubernetes", _KUBERNETES, lambda found: KubernetesSettings(**found), "types.Kubernetes"),
    ),
    "feature_control": (
        "feature_control",
        _section("feature_control", _FEATURES, _spread, "types.FeatureControl"),
    ),
    "container_settings": (
        "container_settings",
        _section("container_settings", _CONTAINER, _spread, "types.ContainerSettings"),
    ),
    "args": ("args", _section("args", _ARGS, _mesos, "types.Args")),
    "runtimeConfig": ("runtime_config", _section("runtimeConfig", _RUNTIME, _spread, "types.RuntimeConfig")),
    "prevResult": ("prev_result", _raw),
}
