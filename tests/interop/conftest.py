"""Two implementations on one host, and one etcd or one cluster: ours, and the original's executables in TORTIE_PEER.

`make interop PEER=…` sets it. Without it there is nothing to compare with, and the tests say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.plugin.conftest import binaries
from integration.plugin.kubernetes_store import Served
from integration.pods.world import PodHost
from interop.pair import Implementation, Pair, PodPair, host_on_etcd
from services.apiserver import shared_apiserver
from services.etcd import Etcd

__all__ = ["binaries"]  # a fixture

PROGRAMS = ("calico", "calico-ipam")


@pytest.fixture(scope="session")
def peer() -> Implementation:
    folder = os.environ.get("TORTIE_PEER")
    if not folder:
        pytest.skip("INTEROP NOT RUN: make interop PEER=<folder with the original's calico and calico-ipam>")
    missing = [name for name in PROGRAMS if not os.access(Path(folder) / name, os.X_OK)]
    if missing:
        pytest.fail(f"PEER={folder} has no executable {' and no '.join(missing)}")
    return Implementation("peer", Path(folder).resolve())


@pytest.fixture(scope="session")
def ours(peer: Implementation, binaries: Path) -> Implementation:
    assert not binaries.samefile(peer.bin), "PEER is the very folder of our own executables"
    return Implementation("ours", binaries)


@pytest.fixture(scope="module")
def etcd(peer: Implementation) -> Iterator[Etcd]:
    with Etcd() as etcd:
        yield etcd


@pytest.fixture(scope="module")
def served(peer: Implementation) -> Iterator[Served]:
    with shared_apiserver() as server, Served(server) as served:
        yield served


@pytest.fixture
def pair(ours: Implementation, peer: Implementation, etcd: Etcd, tmp_path: Path) -> Iterator[Pair]:
    """On etcd."""
    with ExitStack() as undo:
        yield Pair((ours, peer), host_on_etcd(ours.bin, etcd, tmp_path, undo))


@pytest.fixture(scope="module", params=["v1", "v3"])
def group(request: pytest.FixtureRequest) -> str:
    """Which of its two groups Calico's resources have in the cluster."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def pod_pair(
    ours: Implementation, peer: Implementation, served: Served, group: str, tmp_path: Path
) -> Iterator[PodPair]:
    """On Kubernetes."""
    with ExitStack() as undo:
        yield PodPair((ours, peer), PodHost(ours.bin, tmp_path, undo, group, served, None))
