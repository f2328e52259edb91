"""Hosts on whose way to a real kube-apiserver single requests can be delayed, refused, lost and kept waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from integration.kubefaults.kube_rig import KubeRig, KubeRigs
from integration.plugin.conftest import _orphans, binaries
from integration.plugin.kubernetes_store import Served
from services.apiserver import ApiServer

__all__ = ["_orphans", "binaries"]  # fixtures

RIGS = 6  # faults are mostly waiting, so more than there are processors


@pytest.fixture(scope="session", params=["v1", "v3"])
def kind(request: pytest.FixtureRequest) -> str:
    """The group of Calico's resources that the cluster serves."""
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="session")
def own(served: Served) -> Iterator[Served]:
    """A server of ours, to kill, to sign for and to change the rules of; the session's, unless somebody named that."""
    if isinstance(served.server, ApiServer):
        yield served
        return
    with ApiServer() as server, Served(server) as own:
        yield own


@contextmanager
def begun(binaries: Path, folders: list[Path], served: Served, kind: str) -> Iterator[KubeRigs]:
    """Rigs in an empty cluster with one pool."""
    with ExitStack() as undo:
        rigs = KubeRigs([KubeRig(binaries, folder, undo, kind, served) for folder in folders])
        rigs.one.begin()
        yield rigs


@pytest.fixture
def rig(binaries: Path, tmp_path: Path, served: Served, kind: str) -> Iterator[KubeRig]:
    with begun(binaries, [tmp_path], served, kind) as rigs:
        yield rigs.one


@pytest.fixture
def own_rig(binaries: Path, tmp_path: Path, own: Served, kind: str) -> Iterator[KubeRig]:
    """On a server of ours."""
    with begun(binaries, [tmp_path], own, kind) as rigs:
        yield rigs.one


@pytest.fixture
def v1(binaries: Path, tmp_path: Path, own: Served) -> Iterator[KubeRig]:
    """The same, where one of the groups is enough."""
    with begun(binaries, [tmp_path], own, "v1") as rigs:
        yield rigs.one


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"rig{number}" for number in range(RIGS)]
    for folder in found:
        folder.mkdir()
    return found


@pytest.fixture
def rigs(binaries: Path, folders: list[Path], served: Served) -> Iterator[KubeRigs]:
    """Several in one cluster."""
    with begun(binaries, folders, served, "v1") as rigs:
        yield rigs


@pytest.fixture
def own_rigs(binaries: Path, folders: list[Path], own: Served) -> Iterator[KubeRigs]:
    """The same on a server of ours."""
    with begun(binaries, folders, own, "v1") as rigs:
        yield rigs
