"""Which datastore a call is about, and which cluster: by its configuration and its environment, in the original's way.

What the configuration says is put into the environment, so that IPAM plugins see it. Then each setting is read first
under the prefix CALICO_, so that a prefixed variable beats the configuration.

Invariant: nothing is opened, and no adapter loaded, before a use case first asks for the port.
"""

from __future__ import annotations

from domain.cni.datastores import ETCD, KUBERNETES, SQLITE, inherited
from domain.value import Value
from entrypoints.wiring.this_program import wants_library
from ports.errors import BadConfiguration, NoWay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from domain.cni.netconf import NetConf
    from entrypoints.wiring.kubernetes import ApiServers
    from ports.clock import Clock
    from ports.cluster import Cluster
    from ports.datastore import Datastore
    from ports.log import Log

DEFAULT_SQLITE_PATH = "/var/lib/tortie/datastore.db"
NO_INLINE: Mapping[str, str] = {}


def whole(netconf: NetConf, datastore_type: str) -> NetConf:
    """BadConfiguration for half a configuration, which would lead to another datastore, if to any."""
    if why := netconf.lost_for(datastore_type):
        raise BadConfiguration(why)
    return netconf


def exported(netconf: NetConf, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with the configuration's datastore settings in it, as IPAM plugins inherit it."""
    return {**environ, **inherited(netconf)}


def setting(environment: Mapping[str, str], name: str) -> str:
    """CALICO_<name> if it is set at all, else <name>."""
    return environment.get(f"CALICO_{name}", environment.get(name, ""))


def api_servers(
    netconf: NetConf, environment: Mapping[str, str], clock: Clock, *, hasty: bool = False
) -> Callable[[], ApiServers]:
    """Those of one call, made when they are first asked for. `hasty` is as `Api` has it."""
    made: list[ApiServers] = []

    def servers() -> ApiServers:
        from entrypoints.wiring.kubernetes import ApiServers

        if not made:
            made.append(
                ApiServers(
                    netconf,
                    environment,
                    lambda name: setting(environment, name),
                    clock,
                    library=lambda: wants_library(environment),
                    hasty=hasty,
                )
            )
        return made[0]

    return servers


class Opening(Value):
    """What a kind of datastore may need to be opened.

    An operator's command alone has a missing embedded datastore made (`create`), has certificates in its configuration
    file (`inline`), and is `hasty`.
    """

    environment: Mapping[str, str]
    sqlite_path: str
    clock: Clock
    servers: Callable[[], ApiServers]
    create: bool = False
    inline: Mapping[str, str] = NO_INLINE
    log: Log | None = None
    hasty: bool = False


def datastore(
    environment: Mapping[str, str], sqlite_path: str, clock: Clock, servers: Callable[[], ApiServers], **options: Any
) -> Datastore:
    """The kind that is asked for. `options` are Opening's."""
    kind = datastore_kind(environment)
    if kind not in _OPENERS:
        known = 'set "datastore_type" or DATASTORE_TYPE to "kubernetes", "etcdv3" or "sqlite"'
        raise NoWay(f"unknown datastore type: {kind}", details=known)
    return _OPENERS[kind](Opening(environment, sqlite_path, clock, servers, **options))


def datastore_kind(environment: Mapping[str, str]) -> str:
    """What is asked for; without that etcd if endpoints are given, else Kubernetes."""
    default = ETCD if setting(environment, "ETCD_ENDPOINTS") else KUBERNETES
    return setting(environment, "DATASTORE_TYPE") or default


def datastore_of(netconf: NetConf, environ: Mapping[str, str]) -> str:
    """The kind that a call is about, for metrics: one that is known, or `unknown`."""
    kind = datastore_kind(exported(netconf, environ))
    return kind if kind in _OPENERS else "unknown"


def _sqlite_datastore(opening: Opening) -> Datastore:
    """It is closed when the process ends, which folds the write-ahead log into the file."""
    import atexit

    from adapters.sqlite.datastore import SqliteDatastore

    path = opening.sqlite_path or setting(opening.environment, "TORTIE_SQLITE_PATH") or DEFAULT_SQLITE_PATH
    opened = SqliteDatastore(path, opening.clock, create=opening.create, log=opening.log)
    atexit.register(opened.close)
    return opened


def _etcd_datastore(opening: Opening) -> Datastore:
    """Settings are read, and complained about, before a library is loaded."""
    from adapters.etcdv3.datastore import EtcdDatastore
    from adapters.etcdv3.settings import read_settings

    warn = opening.log.warning if opening.log else _unheard
    settings = read_settings(lambda name: setting(opening.environment, name), opening.inline, warn)
    if not wants_library(opening.environment):
        from adapters.etcdv3.transport_lean import open_lean

        return EtcdDatastore(settings, opening.clock, open_lean, hasty=opening.hasty)
    from adapters.etcdv3.load_etcd3 import load_etcd3
    from adapters.linux.process.signals import Withheld

    try:
        opener = load_etcd3(settings.tls, Withheld)
    except ImportError as error:
        raise BadConfiguration(f'TORTIE_TRANSPORT "library" needs the packages of the extra "etcd": {error}') from error
    return EtcdDatastore(settings, opening.clock, opener, hasty=opening.hasty)


_OPENERS: Mapping[str, Callable[[Opening], Datastore]] = {
    SQLITE: _sqlite_datastore,
    ETCD: _etcd_datastore,
    KUBERNETES: lambda opening: opening.servers().datastore(),
}


def _unheard(_text: str) -> None:
    """A warning that nobody listens to."""


def cluster(netconf: NetConf, environment: Mapping[str, str], servers: Callable[[], ApiServers]) -> Cluster:
    """What the configuration names, else the cluster that this process is a pod of."""
    kubernetes, policy = netconf.kubernetes, netconf.policy
    named = kubernetes.kubeconfig or kubernetes.k8s_api_root or policy.k8s_api_root
    if named or environment.get("KUBERNETES_SERVICE_HOST"):
        return servers().cluster()
    from adapters.linux.cluster_absent import AbsentCluster

    return AbsentCluster()


def datastore_cluster(netconf: NetConf, environment: Mapping[str, str], servers: Callable[[], ApiServers]) -> Cluster:
    """For whoever has no network configuration but the datastore's settings: the cluster that the datastore is in."""
    if datastore_kind(environment) == KUBERNETES:
        return servers().datastore_cluster()
    return cluster(netconf, environment, servers)
