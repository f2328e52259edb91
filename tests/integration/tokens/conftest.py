"""A node with a token refresher that has the account and the rights which the manifests give it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.kubefaults.conftest import own
from integration.kubefaults.kube_rig import KubeRig
from integration.plugin.conftest import _orphans, binaries
from integration.plugin.kubernetes_store import Served
from integration.tokens.pod import RefresherPod
from services.manifests import applied, read, remove

__all__ = ["_orphans", "binaries", "own"]  # fixtures

MANIFEST = Path(__file__).resolve().parents[3] / "manifests" / "fresh.yaml"
NODE = "tortie-node"


@pytest.fixture(scope="module")
def rights(own: Served) -> Iterator[str]:
    """The token of the manifests' node account."""
    documents = [
        one for one in read(MANIFEST) if one["metadata"]["name"] == NODE and one["kind"] not in {"DaemonSet", "Job"}
    ]
    applied(own.server.client, documents)
    yield own.server.cluster.token("kube-system", NODE, seconds=7200)
    remove(own.server.client, documents)


@pytest.fixture
def rig(binaries: Path, tmp_path: Path, own: Served) -> Iterator[KubeRig]:
    with ExitStack() as undo:
        yield KubeRig(binaries, tmp_path, undo, "v1", own)


@pytest.fixture
def pod(rig: KubeRig, rights: str) -> RefresherPod:
    return RefresherPod(rig, rights)
