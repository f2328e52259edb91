"""Which adapter serves which port: one plain function per port, each importing its adapter inside.

A plugin process thus loads only what its call uses. Settings come from the configuration and the environment in the
original's way: what the configuration says is put into the environment (so that IPAM plugins see it), then each
setting is read first under the prefix CALICO_, so that a prefixed variable beats the configuration.

Invariant: nothing is opened, and no adapter loaded, before a use case first asks for the port.
"""

from __future__ import annotations

import sys

from domain.cni.datastores import ETCD, KUBERNETES, SQLITE, inherited
from domain.cni.plugin_conf import OWN_IPAM
from domain.value import Value
from ports.errors import BadConfiguration, NoWay, Refused
from ports.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from domain.cni.netconf import NetConf
    from entrypoints.wiring.kubernetes import ApiServers
    from ports.clock import Clock
    from ports.cluster import Cluster
    from ports.dataplane import Dataplane
    from ports.datastore import Datastore
    from ports.former import Former
    from ports.host_view import HostView
    from ports.ipam_plugin import IpamPlugin
    from ports.lock import Lock
    from ports.log import Log
    from ports.node import ThisNode
    from ports.readiness import Readiness


DEFAULT_SQLITE_PATH = "/var/lib/tortie/datastore.db"
NETWORK_PLUGIN = "calico"
NO_INLINE: Mapping[str, str] = {}
ON_WINDOWS = "nt" in sys.builtin_module_names
SELF_CONTAINED = "_tortie_syscalls" in sys.builtin_module_names  # the executable of `make dist`, without libraries


def open_runtime(netconf: NetConf, environ: Mapping[str, str], log: Log) -> Runtime:
    """The ports of one plugin call."""
    if ON_WINDOWS:
        from entrypoints.wiring.windows import open_windows_runtime

        return open_windows_runtime(netconf, environ, log)
    timepiece = clock()
    environment = exported(netconf, environ)
    servers = api_servers(netconf, environment, timepiece)
    runtime = Runtime(
        datastore=lambda: datastore(
            environment, whole(netconf, netconf.datastore_type).sqlite_path, timepiece, servers, log=log
        ),
        cluster=lambda: cluster(whole(netconf, "kubernetes"), environment, servers),
        dataplane=lambda: _dataplane(netconf, timepiece, log, environment),
        ipam_plugin=lambda: ipam_plugin(netconf, environment, runtime),
        node=node,
        lock=lambda: lock(netconf.ipam_lock_file, timepiece, log),
        readiness=lambda: readiness(timepiece),
        former=lambda: former(environ, runtime, log),
        clock=timepiece,
        log=log,
    )
    return runtime


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


def wants_library(environment: Mapping[str, str]) -> bool:
    """Whether TORTIE_TRANSPORT asks for the transports on well-known libraries instead of our own lean ones."""
    choice = environment.get("TORTIE_TRANSPORT", "") or "lean"
    if choice not in ("lean", "library"):
        raise BadConfiguration(f'TORTIE_TRANSPORT "{choice}" is unknown; set "lean" or "library"')
    if choice == "library" and SELF_CONTAINED:
        raise BadConfiguration(
            'TORTIE_TRANSPORT "library": this executable has lean transports only; unset it, or use the Python packages'
        )
    return choice == "library"


def _dataplane(netconf: NetConf, clock: Clock, log: Log, environment: Mapping[str, str]) -> Dataplane:
    from entrypoints.wiring.dataplanes import dataplane

    return dataplane(netconf, clock, log, environment)


def ipam_plugin(netconf: NetConf, environment: Mapping[str, str], runtime: Runtime) -> IpamPlugin:
    """Our own calico-ipam works in this process if it is what CNI_PATH has; anything else is executed."""
    if netconf.ipam.type == NETWORK_PLUGIN and _is_own(netconf.ipam.type, environment):
        raise BadConfiguration(f'ipam.type "{NETWORK_PLUGIN}" is the network plugin itself; set "{OWN_IPAM}"')

    if netconf.ipam.type == OWN_IPAM and _is_own(netconf.ipam.type, environment):
        from entrypoints.wiring.own_ipam import OwnIpamPlugin

        return OwnIpamPlugin(runtime)
    from adapters.linux.process.plugin_exec import ExecutedIpamPlugin

    return ExecutedIpamPlugin(environment, runtime.clock, runtime.log)


def _is_own(type: str, environment: Mapping[str, str]) -> bool:
    from adapters.plugin_path import find_plugin, is_this_program

    own = own_path()
    try:
        path = find_plugin(type, tuple(environment.get("CNI_PATH", "").split(":")))
    except Refused:
        return False  # the executed plugin will say why it cannot be found
    return bool(own) and is_this_program(path, own)


def own_path() -> str:
    """Where the executable is that we are; "" where there is none, as in tests."""
    path: str = getattr(sys.modules["__main__"], "__file__", None) or ""
    return path


def node() -> ThisNode:
    from adapters.linux.node_files import NodeFiles

    return NodeFiles()


def host_view(clock: Clock, root: str) -> HostView:
    """This host's, or that of the root which is mounted there."""
    from adapters.linux.host_view import LinuxHost

    return LinuxHost(clock, root)


def lock(path: str, clock: Clock, log: Log) -> Lock:
    from adapters.linux.lock_file import LockFile

    return LockFile(path, clock, log)


def readiness(clock: Clock) -> Readiness:
    from adapters.linux.readiness_http import HttpReadiness

    return HttpReadiness(clock)


def former(environ: Mapping[str, str], runtime: Runtime, log: Log) -> Former:
    from entrypoints.wiring.former import WiredFormer

    return WiredFormer(environ, runtime, lambda netconf: open_runtime(netconf, environ, log))


def clock() -> Clock:
    from adapters.linux.clock import SystemClock

    return SystemClock()
