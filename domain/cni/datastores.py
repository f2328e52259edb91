"""What leads to a datastore: one row for each setting, whoever reads it under whichever name.

The network configuration, the environment and calicoctl's configuration file say the same things. IPAM plugins inherit
the configuration's as variables, a DEL looks for those that it has lost, and an operator's command reads the file. A
new kind of datastore has its rows here.

Invariant: a setting stands in one row; the empty name says that nobody reads it there.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from domain.value import Value

    Place: TypeAlias = tuple[str, ...]
    Setting: TypeAlias = tuple[str, Place, str, str, str]

ANY, ETCD, KUBERNETES, SQLITE = "", "etcdv3", "kubernetes", "sqlite"
DATASTORES = (ETCD, KUBERNETES, SQLITE)
TEXT, FILE, NUMBER, INLINE = "text", "file", "number", "inline"  # inline: a certificate or key itself
LEADS, LEADING_FILE = "leads", "leading file"  # without it another datastore would be found, or none

# Kind of datastore, place in the network configuration, variable, member of calicoctl's file, what it is.
SETTINGS: tuple[Setting, ...] = (
    (ANY, ("datastore_type",), "DATASTORE_TYPE", "datastoreType", LEADS),
    (SQLITE, ("sqlite_path",), "", "", LEADS),
    (ETCD, ("etcd_endpoints",), "ETCD_ENDPOINTS", "etcdEndpoints", LEADS),
    (ETCD, ("etcd_discovery_srv",), "ETCD_DISCOVERY_SRV", "etcdDiscoverySrv", LEADS),
    (ETCD, ("etcd_authority",), "ETCD_AUTHORITY", "", TEXT),
    (ETCD, ("etcd_scheme",), "ETCD_SCHEME", "", TEXT),
    (ETCD, ("etcd_key_file",), "ETCD_KEY_FILE", "etcdKeyFile", LEADING_FILE),
    (ETCD, ("etcd_cert_file",), "ETCD_CERT_FILE", "etcdCertFile", LEADING_FILE),
    (ETCD, ("etcd_ca_cert_file",), "ETCD_CA_CERT_FILE", "etcdCACertFile", LEADING_FILE),
    (ETCD, (), "", "etcdKey", INLINE),
    (ETCD, (), "", "etcdCert", INLINE),
    (ETCD, (), "", "etcdCACert", INLINE),
    (ETCD, (), "ETCD_USERNAME", "etcdUsername", TEXT),
    (ETCD, (), "ETCD_PASSWORD", "etcdPassword", TEXT),
    (KUBERNETES, ("kubernetes", "kubeconfig"), "KUBECONFIG", "kubeconfig", LEADING_FILE),
    (KUBERNETES, ("kubernetes", "k8s_api_root"), "K8S_API_ENDPOINT", "k8sAPIEndpoint", LEADS),
    (KUBERNETES, ("kubernetes", "node_name"), "", "", TEXT),
    (KUBERNETES, ("policy", "k8s_api_root"), "", "", LEADS),
    (KUBERNETES, ("policy", "k8s_auth_token"), "K8S_API_TOKEN", "", TEXT),
    (KUBERNETES, ("policy", "k8s_client_certificate"), "", "", FILE),
    (KUBERNETES, ("policy", "k8s_client_key"), "", "", FILE),
    (KUBERNETES, ("policy", "k8s_certificate_authority"), "", "", FILE),
    (KUBERNETES, ("calico_api_group",), "CALICO_API_GROUP", "calicoAPIGroup", LEADS),
    (KUBERNETES, ("qps",), "K8S_CLIENT_QPS", "k8sClientQPS", NUMBER),
    (KUBERNETES, ("burst",), "K8S_CLIENT_BURST", "k8sClientBurst", NUMBER),
    (KUBERNETES, (), "KUBECONFIG_INLINE", "kubeconfigInline", TEXT),
    (KUBERNETES, (), "K8S_KEY_FILE", "k8sKeyFile", FILE),
    (KUBERNETES, (), "K8S_CERT_FILE", "k8sCertFile", FILE),
    (KUBERNETES, (), "K8S_CA_FILE", "k8sCAFile", FILE),
    (KUBERNETES, (), "K8SAPITOKEN", "k8sAPIToken", TEXT),
    (KUBERNETES, (), "K8S_INSECURE_SKIP_TLS_VERIFY", "k8sInsecureSkipTLSVerify", TEXT),
    (KUBERNETES, (), "K8S_DISABLE_NODE_POLL", "k8sDisableNodePoll", TEXT),
    (KUBERNETES, (), "USE_POD_CIDR", "k8sUsePodCIDR", TEXT),
    (KUBERNETES, (), "K8S_CURRENT_CONTEXT", "k8sCurrentContext", TEXT),
)


def said_at(conf: Value, place: Place) -> Any:
    """What the network configuration says there."""
    said: Any = conf
    for name in place:
        said = getattr(said, name)
    return said


def inherited(conf: Value) -> Mapping[str, str]:
    """The variables that say what the configuration does."""
    said = [(variable, said_at(conf, place)) for _, place, variable, _, _ in SETTINGS if place and variable]
    return {variable: str(value) for variable, value in said if value}


def kind_that_needs(place: Place) -> str:
    """The kind of datastore for which what is said there matters; "" for any."""
    return next((kind for kind, known, *_ in SETTINGS if known == place), ANY)
