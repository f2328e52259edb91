"""The network configuration on stdin, as values: every field with its type, default and error (spec: cni-plugin 2).

Keys match case-insensitively, an exact match preferred; unknown keys are ignored; `null` leaves the default.

Invariant: past this module nobody looks at the JSON again; texts passed on to other plugins are the original text.
"""

from __future__ import annotations

from domain.resource import NO_LABELS
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class IpamSettings(Value):
    """`assign_ipv4` and `assign_ipv6` are None when absent; the texts decide (`"false"` / `"true"`)."""

    type: str = ""
    name: str = ""
    subnet: str = ""
    assign_ipv4: str | None = None
    assign_ipv6: str | None = None
    ipv4_pools: tuple[str, ...] = ()
    ipv6_pools: tuple[str, ...] = ()


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


class NetConf(Value):
    """One field per key of spec 2.1 and 2.2, under the key's own name where Python allows it.

    `dataplane_options` holds the string-valued options; `dataplane_type` is None when `dataplane_options.type` is
    absent. `mesos_labels` are (key, value) in the order given. `prev_result` is the raw JSON text of `prevResult`
    ("" if absent). `host_local_routes` and the like are parsed by who needs them, from the original text.
    """

    cni_version: str = ""
    name: str = ""
    type: str = ""
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
    timeout_seconds: int = 0
    log_level: str = ""
    log_file_path: str = ""
    log_file_max_size: int = 0
    log_file_max_age: int = 0
    log_file_max_count: int = 0
    windows_use_single_network: bool = False
    ipam: IpamSettings = IpamSettings()
    policy: PolicySettings = PolicySettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    ip_addrs_no_ipam: bool = False
    floating_ips: bool = False
    allow_ip_forwarding: bool = False
    mesos_network_name: str = ""
    mesos_labels: tuple[tuple[str, str], ...] = ()
    prev_result: str = ""
