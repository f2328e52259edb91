"""A Kubernetes API server that somebody runs, and kubeconfig files that lead to it.

server = from_kubeconfig(path)
server.cluster.add_namespace("gold")
server.kubeconfig(tmp_path / "config", token=server.cluster.token("kube-system", "calico-cni-plugin"))
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import yaml

from services.cluster import Cluster
from services.kube_client import KubeClient, Object


class KubernetesServer:
    """A server that somebody runs, at `url`, and its administrator: `client` and `cluster` act as such."""

    def __init__(self, url: str, ca: bytes, admin: Object, *, accounts: bool) -> None:
        """`ca` is PEM, `admin` the `user` of a kubeconfig, with files named absolutely. `accounts`: see `Cluster`."""
        self.url, self.ca, self.admin, self.accounts = url, ca, admin, accounts
        self._clients: list[KubeClient] = []
        self.client = self.connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for one in self._clients:
            one.close()

    @cached_property
    def cluster(self) -> Cluster:
        return Cluster(self.client, accounts=self.accounts)

    def connect(self, token: str = "") -> KubeClient:
        """A client of the administrator, or of the holder of a token ("-" for a stranger); closed with this object."""
        context = ssl.create_default_context(cadata=self.ca.decode())
        if not token:
            token = self.admin.get("token", "")
            with tempfile.TemporaryDirectory() as folder:
                if pair := _pair(self.admin, Path(folder)):
                    context.load_cert_chain(*pair)
        self._clients.append(KubeClient(self.url, context, token.removeprefix("-")))
        return self._clients[-1]

    def kubeconfig(
        self,
        path: Path,
        *,
        token: str = "",
        token_file: Path | None = None,
        user: Object | None = None,
        ca_file: bool = False,
        **cluster: Any,
    ) -> Path:
        """Write one (mode 0600) for a token, or a file of it, or any `user`; without these, for the administrator.

        `ca_file` puts the authority's certificate beside it. `cluster` are more members of the kubeconfig's cluster,
        hyphens written as underscores: `server="https://127.0.0.1:7777"` for a proxy, `insecure_skip_tls_verify=True`.
        """
        authority: Object = {"certificate-authority-data": base64.b64encode(self.ca).decode()}
        if ca_file:
            beside = path.with_name(path.name + "-ca.pem")
            beside.write_bytes(self.ca)
            authority = {"certificate-authority": str(beside)}
        more = {name.replace("_", "-"): value for name, value in cluster.items()}
        if more.get("insecure-skip-tls-verify"):
            authority = {}
        if user is None:
            user = {"token": token} if token else {"tokenFile": str(token_file)} if token_file else self.admin
        text = json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": {"server": self.url} | authority | more}],
                "users": [{"name": "test", "user": user}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            },
            indent=1,
        )
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(text)
        return path


def from_kubeconfig(path: Path) -> KubernetesServer:
    """The server and user of the file's current context. Controllers are taken to be there, as in any cluster."""
    config = yaml.safe_load(path.read_text())

    def named(kind: str, name: str) -> Object:
        found: Object = next(one for one in config[f"{kind}s"] if one["name"] == name)[kind]
        for member in ("certificate-authority", "client-certificate", "client-key"):
            if member in found:
                found[member] = str((path.parent / found[member]).resolve())
        return found

    context = named("context", config["current-context"])
    cluster, user = named("cluster", context["cluster"]), named("user", context["user"])
    inside = base64.b64decode(cluster.get("certificate-authority-data", ""))
    ca = inside or Path(cluster["certificate-authority"]).read_bytes()
    return KubernetesServer(cluster["server"], ca, user, accounts=True)


def _pair(user: Object, folder: Path) -> tuple[Path, Path] | None:
    """Files of the client certificate and key of a kubeconfig's user, if it has them."""
    if "client-certificate" in user:
        return Path(user["client-certificate"]), Path(user["client-key"])
    if "client-certificate-data" not in user:
        return None
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(base64.b64decode(user["client-certificate-data"]))
    key.write_bytes(base64.b64decode(user["client-key-data"]))
    return cert, key
