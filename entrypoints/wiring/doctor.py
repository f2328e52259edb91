"""What `tortie doctor` reaches beside the host's files and kernel: the plugins' datastore, and their credentials.

The datastore is opened as a plugin would open it, by the network configuration alone: what is in an operator's
environment is in no runtime's. Only the paths are those at which this process finds the host's files.

Invariant: nothing is opened before a check asks for it.
"""

from __future__ import annotations

from domain.cni.netconf import KubernetesSettings, NetConf
from domain.doctor.seen import CredentialsSeen
from entrypoints.tortie.client_config import DEFAULT_PATH, client_config
from entrypoints.wiring import datastores
from usecases.doctor.patient import Ways

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapters.kubernetes.credentials.kubeconfig import User
    from entrypoints.tortie.session import Session
    from ports.datastore import Datastore
    from ports.host_view import HostView
    from ports.log_history import LogHistory

_OWN_PATHS = ("etcd_key_file", "etcd_cert_file", "etcd_ca_cert_file")
_WHO = ("KUBECONFIG", "CALICO_KUBECONFIG", "KUBERNETES_SERVICE_HOST")
_KEPT = ("PATH", "HOME", "TORTIE_TRANSPORT")


def ways(session: Session, host: HostView, path: str, config: str) -> Ways:
    """`path` and `config` are what the command line says of a datastore, "" if nothing."""
    environment = session.environment
    prefixes = tuple(
        [one.strip() for one in environment.get("FELIX_INTERFACEPREFIX", "cali").split(",") if one.strip()]
    )
    return Ways(
        datastore=lambda netconf: _datastore(session, host, netconf, path, config),
        credentials=lambda kubeconfig: _credentials(session, host.place(kubeconfig)),
        prefixes=prefixes or ("cali",),
        as_operator=_operators(session) if any(environment.get(name) for name in _WHO) else None,
        own_datastore=bool(path or config),
    )


def log_history(host: HostView, path: str) -> LogHistory:
    """Of the log file that the host has at that path."""
    from adapters.linux.log_history import LogFiles

    return LogFiles(host.place(path))


def _datastore(session: Session, host: HostView, netconf: NetConf | None, path: str, config: str) -> Datastore:
    inline: Mapping[str, str] = datastores.NO_INLINE
    if netconf is None:
        netconf = NetConf(sqlite_path=path)
        environment: Mapping[str, str] = {**session.environment, "CALICO_DATASTORE_TYPE": "sqlite"}
        if not path:
            chosen = client_config(session.environment, config, DEFAULT_PATH)
            environment, inline = chosen.environment, chosen.inline
    else:
        netconf = _placed(netconf, host)
        environment = {name: text for name, text in session.environment.items() if name in _KEPT}
    exported = datastores.exported(netconf, environment)
    servers = datastores.api_servers(netconf, exported, session.clock, hasty=True)
    return datastores.datastore(
        exported, netconf.sqlite_path, session.clock, servers, inline=inline, log=session.log, hasty=True
    )


def _operators(session: Session) -> Callable[[NetConf], Datastore]:
    """A cluster's datastore by the environment's credentials: an operator's, or those of the pod that this is."""

    def open_datastore(netconf: NetConf) -> Datastore:
        settings = {"DATASTORE_TYPE": "kubernetes", "CALICO_API_GROUP": netconf.calico_api_group}
        environment = {**session.environment, **settings}
        servers = datastores.api_servers(NetConf(), environment, session.clock, hasty=True)
        return datastores.datastore(environment, "", session.clock, servers, hasty=True)

    return open_datastore


def _placed(netconf: NetConf, host: HostView) -> NetConf:
    """The same with the paths of files where this process finds them."""
    own = {name: host.place(text) for name in _OWN_PATHS if (text := getattr(netconf, name))}
    kubeconfig = netconf.kubernetes.kubeconfig
    kubernetes: KubernetesSettings = netconf.kubernetes
    if kubeconfig:
        kubernetes = kubernetes.replace(kubeconfig=host.place(kubeconfig))
    return netconf.replace(
        **own, kubernetes=kubernetes, sqlite_path=host.place(netconf.sqlite_path or datastores.DEFAULT_SQLITE_PATH)
    )


def _credentials(session: Session, path: str) -> CredentialsSeen:
    from adapters.kubernetes.credentials.kubeconfig import load_kubeconfig

    cluster, user = load_kubeconfig([path], "", session.clock.sleep)
    return CredentialsSeen(cluster.server or "(none)", _way(user), user.token)


def _way(user: User) -> str:
    if user.token_file:
        return f"the token file {user.token_file}"
    if user.exec is not None:
        return "an exec plugin"
    if user.cert.data or user.cert.path:
        return "a client certificate"
    return "a user and password" if user.name else "no credentials"
