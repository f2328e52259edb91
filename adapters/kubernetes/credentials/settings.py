"""What it takes to reach a kube-apiserver, read from settings as the original names them.

Two clients exist: the datastore's, which goes by the environment, and the pods', which goes by the network
configuration. Each begins with a kubeconfig, or with the credentials that Kubernetes gives a pod, and lays its own
settings over it.

Invariant: settings that exist are complete: files have been read, and what is wrong has been said. Reading connects to
nothing and runs nothing; an exec plugin runs when a connection is opened (`with_plugin`).
"""

from __future__ import annotations

import os

from adapters.kubernetes.credentials.fields import expiry, header_text, shown_expiry
from adapters.kubernetes.credentials.kubeconfig import ClusterEntry, Material, User, inline_kubeconfig, load_kubeconfig
from adapters.kubernetes.credentials.outside import read_file
from adapters.kubernetes.credentials.server import choose_proxy, parse_server
from domain.value import Value
from ports.cluster import NOT_CONFIGURED
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapters.kubernetes.credentials.exec_plugin import ExecPlugin
    from adapters.kubernetes.credentials.outside import Outside
    from adapters.kubernetes.credentials.server import Server
    from domain.cni.netconf import NetConf
    from domain.json_text import Json

DEFAULT_QPS, DEFAULT_BURST = 5.0, 100
_MOST_REQUESTS = 1_000_000_000
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("", "0", "f", "F", "false", "FALSE", "False")


class ApiTls(Value):
    """PEM texts, b"" for none; without `ca` the system's authorities count. `server_name` is whom the certificate has
    to be for; "": the server's host.
    """

    ca: bytes = b""
    cert: bytes = b""
    key: bytes = b""
    server_name: str = ""
    insecure: bool = False

    def __repr__(self) -> str:
        return f"ApiTls(insecure={self.insecure})"  # not the key


_WHERE = (
    'name a kubeconfig with "kubernetes": {"kubeconfig": PATH} in the network configuration, or with KUBECONFIG in the '
    "environment"
)


class Settings(Value):
    """`headers` go with every request and hold the secret, if there is one. `credentials` says for errors where they
    come from and until when they are good. `exec` is a plugin that has still to be asked, and `about_cluster` what it
    is told.
    """

    server: Server
    tls: ApiTls = ApiTls()
    headers: tuple[tuple[str, str], ...] = ()
    proxy: Server | None = None
    qps: float = DEFAULT_QPS
    burst: int = DEFAULT_BURST
    credentials: str = "no credentials"
    exec: ExecPlugin | None = None
    about_cluster: Json = None

    def __repr__(self) -> str:
        return f"Settings({self.server}, {self.credentials})"  # not the headers

    def same_connection(self, other: Settings) -> bool:
        """Whether one connection can serve both."""
        return self == other.replace(qps=self.qps, burst=self.burst, credentials=self.credentials)


class NothingConfigured(BadConfiguration):
    """No setting says where an API server is. The text is the original's."""


class Overrides(Value):
    """What counts more than a kubeconfig. Certificates are paths; `origin` says where `token` comes from."""

    server: str = ""
    context: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""
    token: str = ""
    origin: str = ""
    insecure: bool = False

    def __repr__(self) -> str:
        return f"Overrides({self.server!r})"


def read_datastore_settings(setting: Callable[[str], str], outside: Outside, inline: str = "") -> Settings:
    """`setting` gives the value of a name such as KUBECONFIG, "" when it is not set; `inline` is the text of a
    kubeconfig from an operator's configuration file. BadConfiguration.
    """
    overrides = Overrides(
        server=setting("K8S_API_ENDPOINT").strip(),
        context=setting("K8S_CURRENT_CONTEXT"),
        ca=setting("K8S_CA_FILE"),
        cert=setting("K8S_CERT_FILE"),
        key=setting("K8S_KEY_FILE"),
        token=setting("K8SAPITOKEN"),
        origin="the token in CALICO_K8SAPITOKEN",
        insecure=read_flag("K8S_INSECURE_SKIP_TLS_VERIFY", setting),
    )
    if inline:
        cluster, user = inline_kubeconfig(inline, overrides.context)
    else:
        paths = [path for path in setting("KUBECONFIG").split(os.pathsep) if path]
        if not paths and not overrides.server:
            paths = _at_home(outside)
        try:
            cluster, user = _basis(paths, overrides, outside)
        except NothingConfigured as error:
            raise BadConfiguration(f"{error}; {_WHERE}") from None
    settings = _assemble(cluster, user, overrides, outside)
    qps, burst = _read_number("K8S_CLIENT_QPS", setting), _read_number("K8S_CLIENT_BURST", setting)
    return settings.replace(qps=qps or DEFAULT_QPS, burst=int(burst) or DEFAULT_BURST)


def read_pod_settings(netconf: NetConf, outside: Outside) -> Settings:
    """Those of the client that reads pods: `kubernetes` and `policy` of the network configuration.

    The original takes `kubernetes.kubeconfig` for one path here and for a list in the datastore's client; it is a list
    in both.
    """
    policy, kubernetes = netconf.policy, netconf.kubernetes
    overrides = Overrides(
        server=kubernetes.k8s_api_root or policy.k8s_api_root.partition("/api/")[0],
        ca=policy.k8s_certificate_authority,
        cert=policy.k8s_client_certificate,
        key=policy.k8s_client_key,
        token=policy.k8s_auth_token,
        origin="policy.k8s_auth_token",
    )
    cluster, user = _basis([path for path in kubernetes.kubeconfig.split(os.pathsep) if path], overrides, outside)
    settings = _assemble(cluster, user, overrides, outside)
    return settings.replace(qps=float(netconf.qps) or DEFAULT_QPS, burst=netconf.burst or DEFAULT_BURST)


def with_plugin(settings: Settings, outside: Outside) -> Settings:
    """The same settings with what their exec plugin, if there is one, gives now."""
    if settings.exec is None:
        return settings
    from adapters.kubernetes.credentials.exec_plugin import obtain

    given = obtain(settings.exec, settings.about_cluster, outside)
    tls = settings.tls.replace(cert=given.cert, key=given.key) if given.cert else settings.tls
    expires = given.expires if given.expires is not None else expiry(given.token)
    headers = settings.headers
    if given.token:
        headers = (("Authorization", f"Bearer {header_text(given.token, 'the token of the exec plugin')}"), *headers)
    shown = f"{settings.credentials}, exec plugin {settings.exec.command!r}{shown_expiry(expires, outside.now())}"
    return settings.replace(exec=None, tls=tls, headers=headers, credentials=shown)


def read_flag(name: str, setting: Callable[[str], str]) -> bool:
    value = setting(name)
    if value not in _TRUE + _FALSE:
        raise BadConfiguration(f"failed to load config from env vars: {name} is {value!r}, neither true nor false")
    return value in _TRUE


def _read_number(name: str, setting: Callable[[str], str]) -> float:
    value = setting(name)
    try:
        number = float(value or 0)
    except ValueError:
        number = float("nan")
    if not abs(number) <= _MOST_REQUESTS:  # neither is one that is no number
        raise BadConfiguration(f"failed to load config from env vars: {name} is {value!r}, no number of requests")
    return number


def _at_home(outside: Outside) -> list[str]:
    from os.path import isfile

    home = outside.environment.get("HOME", "")
    path = f"{home}/.kube/config"
    return [path] if home and isfile(path) else []


def _basis(paths: Sequence[str], overrides: Overrides, outside: Outside) -> tuple[ClusterEntry, User]:
    if paths:
        return load_kubeconfig(paths, overrides.context, outside.sleep)
    if overrides.server:
        return ClusterEntry(), User(shown="no credentials")
    host, port = [outside.environment.get(f"KUBERNETES_SERVICE_{word}", "") for word in ("HOST", "PORT")]
    from os.path import isfile

    token = f"{outside.service_account}/token"
    if not host or not port or not isfile(token):
        raise NothingConfigured(NOT_CONFIGURED)
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    user = User(token_file=token, shown="service account of this pod")
    return ClusterEntry(server, ca=Material(path=f"{outside.service_account}/ca.crt")), user


def _overridden(cluster: ClusterEntry, user: User, overrides: Overrides) -> tuple[ClusterEntry, User]:
    if overrides.server:
        cluster = cluster.replace(server=overrides.server, server_name="")
    if overrides.insecure or overrides.ca:
        cluster = cluster.replace(insecure=overrides.insecure, ca=Material(path=overrides.ca))
    if overrides.cert:
        user = user.replace(cert=Material(path=overrides.cert))
    if overrides.key:
        user = user.replace(key=Material(path=overrides.key))
    if overrides.token:
        user = user.replace(token=overrides.token, token_file="", name="", password="", shown=overrides.origin)
        user = user.replace(exec=None)
    return cluster, user


def _assemble(cluster: ClusterEntry, user: User, overrides: Overrides, outside: Outside) -> Settings:
    cluster, user = _overridden(cluster, user, overrides)
    if not cluster.server:
        raise BadConfiguration(f"{user.shown}: no server is named for the cluster")
    tls = _read_tls(cluster, user)
    try:
        server = parse_server(cluster.server, scheme="https" if tls != ApiTls() else "http")
    except ValueError as error:
        raise BadConfiguration(f"{user.shown}: the server's URL cannot be used: {error}") from None
    headers, credentials = _authorize(user.replace(name=user.name or server.user.partition(":")[0]), server, outside)
    return Settings(
        server=server.replace(user=""),
        tls=tls if server.secure else ApiTls(),
        headers=headers + user.headers,
        proxy=choose_proxy(cluster.proxy_url, server, outside.environment),
        credentials=credentials,
        exec=user.exec,
        about_cluster=_about(cluster, tls) if user.exec and user.exec.wants_cluster else None,
    )


def _read_tls(cluster: ClusterEntry, user: User) -> ApiTls:
    ca = cluster.ca.read("certificate-authority")
    if ca and cluster.insecure:
        raise BadConfiguration(
            f"{user.shown}: specifying a root certificates file with the insecure flag is not allowed"
        )
    cert, key = user.cert.read("client-certificate"), user.key.read("client-key")
    if bool(cert) != bool(key):
        given, absent = ("certificate", "key") if cert else ("key", "certificate")
        raise BadConfiguration(f"{user.shown}: there is a client {given} without a client {absent}")
    for pem, word, what, path in (
        (ca, b"CERTIFICATE", "certificate-authority", cluster.ca.path),
        (cert, b"CERTIFICATE", "client-certificate", user.cert.path),
        (key, b"PRIVATE KEY", "client-key", user.key.path),
    ):
        if pem and not (b"-----BEGIN " in pem and word + b"-----" in pem):
            where = f"{what} {path}" if path else f"{user.shown}: {what}-data"
            raise BadConfiguration(f"{where}: no {word.decode().lower()} in PEM format in it")
        if path and not pem:
            raise BadConfiguration(f"{what} {path}: the file is empty")
    return ApiTls(ca, cert, key, cluster.server_name, cluster.insecure)


def _authorize(user: User, server: Server, outside: Outside) -> tuple[tuple[tuple[str, str], ...], str]:
    """The header that says who we are, and where that comes from."""
    token, shown = _token(user)
    if token:
        value = f"Bearer {header_text(token, shown)}"
        return (("Authorization", value),), shown + shown_expiry(expiry(token), outside.now())
    password = user.password or server.user.partition(":")[2]
    if user.name or password:
        from binascii import b2a_base64

        value = f"Basic {b2a_base64(f'{user.name}:{password}'.encode(), newline=False).decode()}"
        return (("Authorization", value),), user.shown
    return (), user.shown


def _token(user: User) -> tuple[str, str]:
    """The token and where it is. A token file comes before a token; if it cannot be read, after."""
    if not user.token_file:
        return user.token, user.shown
    try:
        token = read_file(f"{user.shown}, token file", user.token_file).decode("utf-8", "replace").strip()
        if not token:
            raise BadConfiguration(f"{user.shown}, token file {user.token_file}: the file is empty")
    except BadConfiguration:
        if user.token:
            return user.token, user.shown
        raise
    return token, f"{user.shown}, token file {user.token_file}"


def _about(cluster: ClusterEntry, tls: ApiTls) -> Json:
    """What an exec plugin that asks for it learns of the cluster."""
    from binascii import b2a_base64

    ca = b2a_base64(tls.ca, newline=False).decode()
    texts: dict[str, Json] = {
        "server": cluster.server,
        "tls-server-name": cluster.server_name,
        "certificate-authority-data": ca,
        "proxy-url": cluster.proxy_url,
    }
    about: dict[str, Json] = {name: value for name, value in texts.items() if value}
    if cluster.insecure:
        about["insecure-skip-tls-verify"] = True
    return about if cluster.exec_config is None else {**about, "config": cluster.exec_config}
