"""A real API server that manifests are applied to. It is ours alone: they define resources and change rights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.kubefaults.kube_rig import KubeRig
from integration.plugin.conftest import _orphans, binaries
from integration.plugin.kubernetes_store import Served
from services.apiserver import ApiServer
from services.manifests import applied, read, remove

__all__ = ["_orphans", "binaries"]  # fixtures

FOLDER = Path(__file__).resolve().parents[3] / "manifests"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


@pytest.fixture
def fresh(binaries: Path, tmp_path: Path, server: ApiServer) -> Iterator[KubeRig]:
    """A node of a cluster that nothing has been done to but `kubectl apply -f manifests/fresh.yaml`."""
    documents = read(FOLDER / "fresh.yaml")
    with ExitStack() as undo:
        served = undo.enter_context(Served(server))
        undo.callback(remove, server.client, documents)
        undo.callback(server.cluster.clear)
        applied(server.client, documents)
        yield KubeRig(binaries, tmp_path, undo, "v1", served)
