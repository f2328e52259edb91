"""The ways to tell the executables where the API server is and who they are, each made for one rig.

Invariant: each leads to the rig's server, as the user whom the shipped manifest makes.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from integration.kubefaults.kube_rig import KubeRig
from integration.plugin.kubernetes_store import ACCOUNT
from services.apiserver import ApiServer
from services.http_proxy import HttpProxy
from services.kube_client import Object
from services.kube_proxy import HOSTS, KubeProxy
from services.request_faults import close_when_idle, every
from services.tcp_proxy import TcpProxy

PLUGINS_NAME = "system:serviceaccount:kube-system:calico-cni-plugin"
V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


@dataclass
class Given:
    """What the calls get: members of the configuration, variables, and shell text that prepares the process.

    `seen` is where the requests must come through; a token does not get through `rig.way`, which sees none.
    """

    netconf: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    through: str = ""
    seen: KubeProxy | None = None

    @classmethod
    def kubeconfig(cls, path: Path | str, **more: Any) -> Given:
        return cls(netconf={"kubernetes": {"kubeconfig": str(path)}}, **more)


Form = Callable[[KubeRig], Given]
FORMS: dict[str, Form] = {}


def form(made: Form) -> Form:
    FORMS[made.__name__.replace("_", " ")] = made
    return made


# --- who ------------------------------------------------------------------------------------------------------------


@form
def token(rig: KubeRig) -> Given:
    return Given.kubeconfig(rig.proxy.kubeconfig(rig.folder / "k", token=rig.served.token), seen=rig.proxy)


@form
def token_file(rig: KubeRig) -> Given:
    """Its path is relative to the kubeconfig's folder; it wins over a token beside it."""
    (rig.folder / "secrets").mkdir()
    (rig.folder / "secrets" / "token").write_text(rig.served.token + "\n")
    user = {"tokenFile": "secrets/token", "token": "not-this-one"}
    return Given.kubeconfig(rig.proxy.kubeconfig(rig.folder / "k", user=user), seen=rig.proxy)


def certificate(rig: KubeRig, *, inline: bool) -> Object:
    """Of somebody with the plugin's rights. A certificate does not get through the proxy that sees requests."""
    server = rig.served.server
    assert isinstance(server, ApiServer)
    return server.client_certificate(PLUGINS_NAME, inline=inline)


@form
def client_certificate_files(rig: KubeRig) -> Given:
    """Relative to the kubeconfig's folder, the authority's too."""
    user = certificate(rig, inline=False)
    for member, path in list(user.items()):
        user[member] = Path(shutil.copy(path, rig.folder)).name
    server = f"https://127.0.0.1:{rig.way.port}"
    path = rig.served.server.kubeconfig(rig.folder / "k", user=user, ca_file=True, server=server)
    path.write_text(path.read_text().replace(f"{rig.folder}/", ""))
    return Given.kubeconfig(path)


@form
def client_certificate_inline(rig: KubeRig) -> Given:
    server = f"https://127.0.0.1:{rig.way.port}"
    user = certificate(rig, inline=True)
    return Given.kubeconfig(rig.served.server.kubeconfig(rig.folder / "k", user=user, server=server))


def plugin(rig: KubeRig, status: Object, version: str = V1, **more: Any) -> Object:
    """A user with an exec plugin beside the kubeconfig."""
    path = rig.folder / "give"
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    path.write_text(f'#!/bin/sh\n[ "$1" = please ] && [ -n "$KUBERNETES_EXEC_INFO" ] && printf %s \'{answer}\'\n')
    path.chmod(0o700)
    return {"exec": {"apiVersion": version, "command": "./give", "args": ["please"], **more}}


@form
def exec_plugin_with_a_token(rig: KubeRig) -> Given:
    user = plugin(rig, {"token": rig.served.token}, interactiveMode="Never", provideClusterInfo=True)
    return Given.kubeconfig(rig.proxy.kubeconfig(rig.folder / "k", user=user), seen=rig.proxy)


@form
def exec_plugin_v1beta1_in_path(rig: KubeRig) -> Given:
    user = plugin(rig, {"token": rig.served.token}, V1BETA1)
    user["exec"]["command"] = "give"
    path = f"{rig.folder}:{os.environ['PATH']}"
    kubeconfig = rig.proxy.kubeconfig(rig.folder / "k", user=user)
    return Given.kubeconfig(kubeconfig, environment={"PATH": path}, seen=rig.proxy)


@form
def exec_plugin_with_a_certificate(rig: KubeRig) -> Given:
    inside = certificate(rig, inline=True)
    names = {"client-certificate-data": "clientCertificateData", "client-key-data": "clientKeyData"}
    status = {names[name]: base64.b64decode(text).decode() for name, text in inside.items()}
    user = plugin(rig, status, interactiveMode="IfAvailable")
    server = f"https://127.0.0.1:{rig.way.port}"
    return Given.kubeconfig(rig.served.server.kubeconfig(rig.folder / "k", user=user, server=server))


@form
def token_of_the_policy(rig: KubeRig) -> Given:
    """The configuration names server, authority and token; there is no kubeconfig."""
    ca = rig.folder / "ca.pem"
    ca.write_bytes(rig.proxy.ca)
    policy = {"type": "k8s", "k8s_api_root": rig.proxy.url, "k8s_auth_token": rig.served.token}
    policy["k8s_certificate_authority"] = str(ca)
    variables = {"K8S_CA_FILE": str(ca), "CALICO_K8SAPITOKEN": rig.served.token}
    netconf = {"kubernetes": {"k8s_api_root": rig.proxy.url}, "policy": policy}
    return Given(netconf=netconf, environment=variables, seen=rig.proxy)


# --- which ----------------------------------------------------------------------------------------------------------


def wrong(path: Path) -> Object:
    """A configuration of somewhere else."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "other", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "other", "user": {"token": f"of {path.name}"}}],
        "contexts": [{"name": "other", "context": {"cluster": "other", "user": "other"}}],
    }


@form
def two_contexts(rig: KubeRig) -> Given:
    """The current one counts."""
    path = rig.proxy.kubeconfig(rig.folder / "k", token=rig.served.token)
    config, other = json.loads(path.read_text()), wrong(path)
    for kind in ("clusters", "users", "contexts"):
        config[kind] = other[kind] + config[kind]
    path.write_text(json.dumps(config))
    return Given.kubeconfig(path, seen=rig.proxy)


@form
def merged_list(rig: KubeRig) -> Given:
    """Each file has a part; one is missing; what an earlier one says about a name wins."""
    path = rig.proxy.kubeconfig(rig.folder / "k", token=rig.served.token)
    config = json.loads(path.read_text())
    parts = {
        "a": {"apiVersion": "v1", "kind": "Config", "current-context": "test", "contexts": config["contexts"]},
        "b": {"apiVersion": "v1", "kind": "Config", "clusters": config["clusters"], "current-context": "nowhere"},
        "c": {"apiVersion": "v1", "kind": "Config", "clusters": wrong(path)["clusters"], "users": config["users"]},
    }
    parts["c"]["clusters"][0]["name"] = "test"
    for name, part in parts.items():
        (rig.folder / name).write_text(json.dumps(part))
    path.unlink()
    names = ["a", "missing", "b", "c"]
    return Given.kubeconfig(":".join(str(rig.folder / name) for name in names), seen=rig.proxy)


@form
def yaml_as_kubectl_writes_it(rig: KubeRig) -> Given:
    path = rig.proxy.kubeconfig(rig.folder / "k", token=rig.served.token)
    text = yaml.safe_dump(json.loads(path.read_text()) | {"preferences": {}}, default_flow_style=False)
    assert text.startswith("apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: ")
    path.write_text(text)
    return Given.kubeconfig(path, seen=rig.proxy)


@form
def yaml_as_installers_write_it(rig: KubeRig) -> Given:
    """Calico's own installer: a comment, and lists that are not indented."""
    path = rig.folder / "calico-kubeconfig"
    authority = base64.b64encode(rig.proxy.ca).decode()
    path.write_text(
        f"""# Kubeconfig file for Calico CNI plugin. Installed by calico/node.
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: {rig.proxy.url}
    certificate-authority-data: "{authority}"
users:
- name: calico
  user:
    token: {rig.served.token}
contexts:
- name: calico-context
  context:
    cluster: local
    user: calico
current-context: calico-context
"""
    )
    return Given.kubeconfig(path, seen=rig.proxy)


# --- where ----------------------------------------------------------------------------------------------------------


def proxy_at(rig: KubeRig, **more: Any) -> KubeProxy:
    return rig.undo.enter_context(KubeProxy(rig.served.server, **more))


@form
def ipv6_address(rig: KubeRig) -> Given:
    there = proxy_at(rig, netns=rig.net.path, host="::1")
    assert there.url.startswith("https://[::1]:")
    return Given.kubeconfig(there.kubeconfig(rig.folder / "k", token=rig.served.token), seen=there)


@form
def path_prefix(rig: KubeRig) -> Given:
    """As management platforms put many clusters behind one host."""
    there = proxy_at(rig, netns=rig.net.path, prefix="/k8s/clusters/c-m-1")
    path = there.kubeconfig(rig.folder / "k", token=rig.served.token, server=there.url + "/")
    return Given.kubeconfig(path, seen=there)


@form
def server_name_of_its_own(rig: KubeRig) -> Given:
    """The certificate is for another name than the one that leads there."""
    assert "DNS:api.test" in HOSTS
    path = rig.proxy.kubeconfig(rig.folder / "k", token=rig.served.token, tls_server_name="api.test")
    return Given.kubeconfig(path, seen=rig.proxy)


@form
def not_verified(rig: KubeRig) -> Given:
    path = rig.proxy.kubeconfig(rig.folder / "k", token=rig.served.token, insecure_skip_tls_verify=True)
    return Given.kubeconfig(path, seen=rig.proxy)


def http_proxy(rig: KubeRig, user: str = "") -> tuple[KubeProxy, HttpProxy, int]:
    """A server that can only be reached through a proxy; the port is the proxy's in the host's namespace."""
    there = proxy_at(rig)
    forward = rig.undo.enter_context(HttpProxy(there.port, user=user))
    return there, forward, rig.undo.enter_context(TcpProxy(forward.port, netns=rig.net.path)).port


@form
def https_proxy_variable(rig: KubeRig) -> Given:
    there, _, port = http_proxy(rig)
    path = there.kubeconfig(rig.folder / "k", token=rig.served.token, server="https://api.test:6443")
    variables = {"HTTPS_PROXY": f"http://127.0.0.1:{port}", "NO_PROXY": "10.0.0.0/8,.other.test"}
    return Given.kubeconfig(path, environment=variables, seen=there)


@form
def proxy_of_the_kubeconfig(rig: KubeRig) -> Given:
    """With a name and a password."""
    there, _, port = http_proxy(rig, "us er:p@ss")
    url = f"http://us%20er:p%40ss@127.0.0.1:{port}"
    server = "https://api.test:6443"
    path = there.kubeconfig(rig.folder / "k", token=rig.served.token, server=server, proxy_url=url)
    return Given.kubeconfig(path, environment={"HTTPS_PROXY": "http://127.0.0.1:1"}, seen=there)


@form
def in_a_cluster(rig: KubeRig) -> Given:
    """As in a pod: the service account's folder is where it always is, in a private view of /run."""
    account = rig.folder / "account"
    account.mkdir()
    (account / "token").write_text(rig.served.token)
    (account / "ca.crt").write_bytes(rig.proxy.ca)
    (account / "namespace").write_text(ACCOUNT[0])
    view = rig.folder / "run"
    view.mkdir()
    inside = f"{view}/secrets/kubernetes.io/serviceaccount"
    through = f"""
        mount -t tmpfs none {view}; mkdir -p {view}/netns {inside}; mount --rbind /run/netns {view}/netns
        cp {account}/* {inside}; mount --rbind {view} /run; exec "$@"
    """
    variables = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(rig.proxy.port)}
    return Given(netconf={"kubernetes": {}}, environment=variables, through=through, seen=rig.proxy)


@form
def server_that_closes_idle_connections(rig: KubeRig) -> Given:
    """After each answer; the next request finds the connection ended."""
    rig.proxy.arm(every, close_when_idle)
    return Given.kubeconfig(rig.proxy.kubeconfig(rig.folder / "k", token=rig.served.token), seen=rig.proxy)
