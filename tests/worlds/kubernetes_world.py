"""Connections of the product to a Kubernetes API server that tests run, past its configuration."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Self

from adapters.kubernetes.api import Api
from adapters.kubernetes.credentials.outside import Outside
from adapters.kubernetes.credentials.settings import read_datastore_settings
from adapters.kubernetes.datastore import KubernetesDatastore
from adapters.kubernetes.transport.open_transport import open_transport
from adapters.kubernetes.transport.seam import ApiTransport
from ports.clock import Clock
from ports.datastore import IPPoolKey, NodeKey
from services.custom_resources import GROUPS
from services.kube_client import KubeClient
from services.kubernetes_server import KubernetesServer


def open_to(server: KubernetesServer, *, token: str = "", url: str = "", library: bool = False):
    """A transport as the server's administrator, or as the holder of a token; `url` leads there another way."""
    with tempfile.TemporaryDirectory() as folder:
        path = server.kubeconfig(Path(folder) / "config", token=token, server=url or server.url)
        settings = read_datastore_settings(lambda name: {"KUBECONFIG": str(path)}.get(name, ""), _OUTSIDE)
    settings = settings.replace(qps=0.0)  # tests wait for nobody
    return open_transport(settings, lambda: settings, _OUTSIDE, library=library)


class Shared:
    """One server for a module's tests, and the product's connections to it: the plugins' own, and the library's."""

    def __init__(self, server: KubernetesServer) -> None:
        self.server = server
        self.transport = open_to(server)
        self.library_transport = open_to(server, library=True)
        self._groups: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.transport.close()
        self.library_transport.close()

    def fresh(self, *groups: str) -> KubeClient:
        """An administrator of the server, which has nothing in it and serves these groups."""
        if groups != self._groups:
            self.server.cluster.serve(*groups)
            self._groups = groups
        self.server.cluster.clear()
        return self.server.client


class Administered(KubernetesDatastore):
    """The datastore, with an administrator behind it who makes nodes, and makes a pool again that cannot be changed."""

    def __init__(self, transport: ApiTransport, clock: Clock, client: KubeClient, group: str) -> None:
        super().__init__(Api(transport, clock), clock, group=GROUPS[group])
        self._client = client

    def create(self, key, record, deadline):
        if not isinstance(key, NodeKey):
            return super().create(key, record, deadline)
        self._client.create("/api/v1/nodes", {"metadata": {"name": key.name, "labels": dict(record.metadata.labels)}})
        return self.get(key, deadline)

    def update(self, key, record, replaces, deadline):
        if isinstance(key, IPPoolKey):
            self.delete(key, replaces, deadline)
            return self.create(key, record, deadline)
        if not isinstance(key, NodeKey):
            return super().update(key, record, replaces, deadline)
        metadata = {"name": key.name, "labels": dict(record.metadata.labels), "resourceVersion": replaces}
        self._client.put(f"/api/v1/nodes/{key.name}", {"metadata": metadata})
        return self.get(key, deadline)


def _run(program, seconds):
    raise OSError("no programs here")


_OUTSIDE = Outside({}, time.time_ns, time.sleep, _run)
