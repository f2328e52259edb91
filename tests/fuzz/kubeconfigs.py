"""How the API server is found: kubeconfigs and their YAML, variables, exec plugins' answers, proxies, tokens."""

from __future__ import annotations

import base64
import json
from typing import Any

import yaml

from adapters.etcdv3.discovery import name_servers
from adapters.etcdv3.settings import read_settings
from adapters.grpc.transport import parse_target
from adapters.kubernetes.credentials.exec_plugin import ExecPlugin, obtain
from adapters.kubernetes.credentials.fields import expiry, header_text, shown_expiry
from adapters.kubernetes.credentials.kubeconfig import ClusterEntry, User, _parse, inline_kubeconfig
from adapters.kubernetes.credentials.outside import Outside
from adapters.kubernetes.credentials.server import Server, choose_proxy, parse_server
from adapters.kubernetes.credentials.settings import read_datastore_settings
from adapters.kubernetes.credentials.yaml_subset import parse_yaml
from domain.json_text import JsonError, parse
from fuzz.records import with_file
from fuzz.target import Allowed, Target, attempt, octets_of, one_in, require, text_of
from ports.errors import BadConfiguration, PortError

# --- YAML ------------------------------------------------------------------------------------------------------------


class _Oracle(yaml.SafeLoader):
    """PyYAML with what ours has: nulls and booleans, keys that are texts, and no key twice."""


class _OtherYaml(Exception):
    """What ours does not have."""


def _mapping(loader: _Oracle, node: yaml.MappingNode) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in found:
            raise _OtherYaml
        found[key.value] = loader.construct_object(value, deep=True)
    return found


_Oracle.add_constructor("tag:yaml.org,2002:map", _mapping)
_Oracle.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag.rpartition(":")[2] in ("null", "bool")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_ENDS_OF_LINES = "\x85\u2028\u2029"  # for PyYAML; YAML 1.2 took that back


def _yaml(octets: bytes) -> None:
    text = text_of(octets)
    read, found = attempt(lambda: parse_yaml(text), ValueError)
    if not read or attempt(lambda: parse(text), JsonError)[0] or any(one in text for one in _ENDS_OF_LINES):
        return  # a refusal is always right, and JSON has numbers
    try:
        theirs = yaml.load(text, _Oracle)  # noqa: S506 - derived from the safe one
    except (yaml.YAMLError, ValueError, _OtherYaml, RecursionError) as error:
        if "\r" in text or "'\\t' that cannot start any token" in str(error):
            return  # a tab alone on a line is nothing to YAML, but to the library
        if any(not (one.isprintable() or one in "\n\t\ufeff") for one in text):
            return  # characters that YAML forbids are the library's to refuse
        require(False, "we take what the library refuses", text, found, str(error))
    else:
        require(found == theirs, "we read different values", text, found, theirs)


# --- kubeconfigs -----------------------------------------------------------------------------------------------------


def _outside(**environment: str) -> Outside:
    return Outside(environment, lambda: 10**18, lambda _seconds: None, lambda _program, _seconds: (1, b""))


def _kubeconfig(octets: bytes) -> None:
    text = text_of(octets)
    if one_in(8, octets):
        with Allowed(BadConfiguration):
            cluster, user = inline_kubeconfig(text, "")
            require(isinstance(cluster, ClusterEntry) and isinstance(user, User), "nothing", text)
            _compare_with_library(text, cluster, user)
    with Allowed(PortError):
        settings = read_datastore_settings(lambda _name: "", _outside(), text)
        line = "".join(f"{name}{value}" for name, value in settings.headers) + settings.server.authority
        require(settings.server.port in range(1, 65536), "no port", settings)
        repr(settings), str(settings.server), repr(line)


def _compare_with_library(text: str, cluster: ClusterEntry, user: User) -> None:
    """The kubernetes package takes the same server, token and name out of what both can read."""
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.kube_config import KubeConfigLoader

    document = _parse(text)
    try:
        loader = KubeConfigLoader(config_dict=document)
        entry, person = loader._cluster, loader._user
        server = entry["server"] if entry and "server" in entry else None
        token = person["token"] if person and "token" in person else None
        name = person["username"] if person and "username" in person else None
    except (ConfigException, AttributeError, KeyError, TypeError):
        return  # it asks for members that we leave out
    for ours, theirs in ((cluster.server, server), (user.token, token), (user.name, name)):
        if isinstance(theirs, str) and cluster != ClusterEntry():
            require(ours == theirs, "we read different settings", text, ours, theirs)


_NAMES = (
    *("KUBECONFIG", "K8S_API_ENDPOINT", "K8S_CURRENT_CONTEXT", "K8SAPITOKEN", "K8S_INSECURE_SKIP_TLS_VERIFY"),
    *("K8S_CLIENT_QPS", "K8S_CLIENT_BURST"),
)
_AROUND = ("HTTPS_PROXY", "NO_PROXY", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HOME")


def _variables(octets: bytes) -> None:
    """Values of variables, one a line; no files but those that are not there."""
    values = octets.decode("utf-8", "surrogateescape").split("\n")
    given = dict(zip((*_NAMES, *_AROUND), values, strict=False))
    given |= {name: f"/proc/fuzz/{given[name]}" for name in ("KUBECONFIG", "HOME") if given.get(name)}
    around = {name: given[name] for name in _AROUND if name in given}
    with Allowed(PortError):
        settings = read_datastore_settings(lambda name: given.get(name, ""), _outside(**around))
        require(settings.qps == settings.qps and settings.burst == int(settings.burst), "no numbers", settings)
        repr(settings)


def _exec(octets: bytes) -> None:
    """The first octet is the plugin's status, if it is not small."""
    status = (octets[0] if octets else 0) if octets[:1] > b"\7" else 0
    outside = Outside({}, lambda: 10**18, lambda _seconds: None, lambda _program, _seconds: (status, octets[1:]))
    with Allowed(PortError):
        given = obtain(ExecPlugin("/bin/true", wants_cluster=True), {"a": "b"}, outside)
        require(given.token or given.cert, "credentials that are none", octets)
        require(given.expires is None or isinstance(given.expires, int), "no time", octets)
        with Allowed(PortError):
            header_text(given.token, "x")
        shown_expiry(expiry(given.token), 5)


def _server(octets: bytes) -> None:
    """A server, a proxy and rules, one a line."""
    server_text, proxy, rules = [*text_of(octets).split("\n", 2), "", ""][:3]
    with Allowed(ValueError):
        server = parse_server(server_text)
        require(server.port in range(1, 65536) and not set(server.authority) & set(" \r\n"), "no server", octets)
        require("\n" not in str(server) and " " not in server.prefix, "not one line", octets)
        with Allowed(PortError):
            found = choose_proxy(proxy, server, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": rules})
            require(found is None or isinstance(found, Server), "no proxy", octets)


_PLANTED = "planted-secret"


def _etcd(octets: bytes) -> None:
    """Endpoints, a domain and a user, one a line; and the first as a gRPC service's target."""
    values = octets.decode("utf-8", "surrogateescape").split("\n")
    given = dict(zip(("ETCD_ENDPOINTS", "ETCD_DISCOVERY_SRV", "ETCD_USERNAME"), values, strict=False))
    given["ETCD_PASSWORD"] = _PLANTED
    told: list[str] = []
    with Allowed(PortError):
        settings = read_settings(lambda name: given.get(name, ""), {}, told.append)
        for endpoint in settings.endpoints:
            require(endpoint.port in range(1, 65536) and endpoint.host, "no endpoint", octets, endpoint)
            require(not set(endpoint.host) & set(" @\0"), "no host", octets, endpoint)
        if values[0].count(_PLANTED) == values[0].count(f"//u:{_PLANTED}@") and _PLANTED not in "".join(values[1:]):
            require(_PLANTED not in f"{settings!r} {told}", "a password is shown", octets)
    target = parse_target(values[0])
    require(target.path or target.port in range(100_000), "neither a path nor a port", octets, target)
    require(isinstance(target.authority, str), "no authority", octets)


def _resolver(octets: bytes) -> None:
    with_file(octets, _name_servers)


def _name_servers(path: str) -> None:
    with Allowed(PortError):
        for _, port in name_servers(path):
            require(port in range(100_000), "no port", port)


_CONFIG = """apiVersion: v1
kind: Config
current-context: x
contexts:
- name: x
  context: {cluster: c, user: u, namespace: "n"}
clusters:
  - name: c
    cluster:
      server: https://10.0.0.1:6443/a
      certificate-authority-data: QUJD
      insecure-skip-tls-verify: false
      tls-server-name: 'it''s'
      proxy-url: http://u:p@proxy:3128
      extensions: [{name: client.authentication.k8s.io/exec, extension: {a: b}}]
users:
- name: u
  user:
    token: >-
      abc
      def
    username: "a\\tb"
    as: someone
    as-groups: [a, b]
    as-user-extra: {k: [v]}
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./aws
      args: [get-token]
      env: [{name: A, value: "1"}]
      interactiveMode: Never
      provideClusterInfo: true
"""
_WHOLE = """a: &a
  cluster: &c {server: https://h:6443, certificate-authority-data: !!binary QUJD}
clusters:
- {name: c, <<: *a}
contexts: [{name: x, context: {cluster: c, user: !!str u}}]
current-context: x
users:
- name: u
  user:
    ? as-user-extra
    : {a: [b], true: [c], ~: [d]}
    username: !x y
    exec: *c
--- second
"""
_CREDENTIAL = {
    "kind": "ExecCredential",
    "apiVersion": "client.authentication.k8s.io/v1",
    "status": {
        "token": "t",
        "expirationTimestamp": "2026-11-29T13:06:12Z",
        "clientCertificateData": "c",
        "clientKeyData": "k",
    },
}
_CLAIMS = base64.urlsafe_b64encode(b'{"exp": 1800000000.5}').decode().rstrip("=")
_JWT = {**_CREDENTIAL, "status": {"token": f"a.{_CLAIMS}.c"}}
TARGETS = (
    Target(
        "yaml_subset",
        _yaml,
        octets_of(
            _CONFIG,
            *(
                "a: |2-\n   x\n  y\n\nb: >+\n  c\n\n\n",
                "- a\n- - b\n  - c: d\n",
                "{a: [b, 'c', \"d\\\n  e\"], f: }",
                "--- \na\n...\n",
            ),
            *(
                "'a\n\n b': c #d\n",
                "a: b c\n  d\n\n  e\nf:\n- g\n",
                "? a\n: b",
                "a: *b",
                "%YAML 1.1\n---\n",
                "\ufeffa: ~\n",
            ),
        ),
        form="text",
        most=1024,
    ),
    Target(
        "kubeconfig",
        _kubeconfig,
        octets_of(_CONFIG, _WHOLE, json.dumps(yaml.safe_load(_CONFIG))),
        form="text",
        most=2048,
    ),
    Target(
        "kubernetes_variables",
        _variables,
        octets_of(
            "\nhttps://h:6443\nx\ntoken\ntrue\n5.5\n7\nhttp://p:1\n10.0.0.0/8,.x\n::1\n443\n/h",
            "a:b\n\n\n\n\ninf\nnan",
            "\nh\n\n\n\n1e999\n-1e400",
        ),
        form="text",
        most=512,
    ),
    Target(
        "exec_credential",
        _exec,
        octets_of("\0" + json.dumps(_CREDENTIAL), "\0" + json.dumps(_JWT)),
        form="json",
        skips=1,
    ),
    Target(
        "etcd_settings",
        _etcd,
        octets_of(
            f"http://a:2379,https://u:{_PLANTED}@[fd00::1]:2379/x, b:1\n\nme",
            "\nexample.org\nu",
            *("unix:///run/x", "dns:///h:443", "unix-abstract:x", "passthrough:///[::1]:5", "ftp://a:1"),
        ),
        form="text",
        most=512,
    ),
    Target("name_servers", _resolver, octets_of("nameserver 10.0.0.1#53\nnameserver\n#"), form="text", most=512),
    Target(
        "server_url",
        _server,
        octets_of(
            "https://u:p%40@h.x:6443/a b?c#d\nhttp://p\n*,.x,10.0.0.0/8,h:80,[::1]:5",
            "https://[fd00::1%25eth0]/\n\n::1,localhost,*.x",
        ),
        form="text",
        most=512,
    ),
)
