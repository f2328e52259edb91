"""Hosts on whose way to a real kube-apiserver single requests can be delayed, refused, lost and kept waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.register_assert_rewrite(
    "integration.plugin.host", "integration.plugin.store", "integration.pods.world", "integration.kubefaults.kube_rig"
)

from integration.kubefaults.kube_rig import KubeRig, KubeRigs  # noqa: E402 - so that their assertions say what they saw
from integration.plugin.conftest import _orphans, binaries  # noqa: E402
from integration.plugin.kubernetes_store import Served  # noqa: E402

__all__ = ["_orphans", "binaries"]  # fixtures

RIGS = 6  # faults are mostly waiting, so more than there are processors


@pytest.fixture(scope="session", params=["v1", "v3"])
def kind(request: pytest.FixtureRequest) -> str:
    """The group of Calico's resources that the cluster serves."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def rig(binaries: Path, tmp_path: Path, served: Served, kind: str) -> Iterator[KubeRig]:
    """In an empty cluster with one pool."""
    with ExitStack() as undo:
        rig = KubeRig(binaries, tmp_path, undo, kind, served)
        rig.begin()
        yield rig


@pytest.fixture
def v1(binaries: Path, tmp_path: Path, served: Served) -> Iterator[KubeRig]:
    """The same, where one of the groups is enough."""
    with ExitStack() as undo:
        rig = KubeRig(binaries, tmp_path, undo, "v1", served)
        rig.begin()
        yield rig


@pytest.fixture
def rigs(binaries: Path, tmp_path_factory: pytest.TempPathFactory, served: Served) -> Iterator[KubeRigs]:
    """Several in one such cluster."""
    with ExitStack() as undo:
        folders = [tmp_path_factory.mktemp(f"rig{number}") for number in range(RIGS)]
        rigs = KubeRigs([KubeRig(binaries, folder, undo, "v1", served) for folder in folders])
        rigs.one.begin()
        yield rigs
