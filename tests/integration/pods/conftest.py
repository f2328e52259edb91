"""A node with pods, and Calico's records in each place where they may be.

TORTIE_TEST_STORE chooses: `etcd`, `kubernetes` (both groups of Calico's resources), or all of them if it is not set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.plugin.conftest import _orphans, binaries
from integration.plugin.kubernetes_store import Served
from integration.plugin.store import cluster_records
from integration.pods.world import NAMESPACE, PodHost
from services.etcd import EtcdServer, shared_etcd

__all__ = ["_orphans", "binaries"]  # fixtures

CHOSEN = os.environ.get("TORTIE_TEST_STORE", "")
KINDS = {"etcd": ["etcd"], "kubernetes": ["v1", "v3"]}.get(CHOSEN, ["etcd", "v1", "v3"])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "stores(*kinds): only where records are in one of these: etcd, v1, v3")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Some say nothing about every place."""
    unfit = []
    for item in items:
        marked = item.get_closest_marker("stores")
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        kind = parameters.get("kind")
        if marked and kind not in marked.args:
            unfit.append(item)
    if unfit:
        config.hook.pytest_deselected(items=unfit)
        items[:] = [item for item in items if item not in unfit]


@pytest.fixture(scope="session", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="session")
def etcd() -> Iterator[EtcdServer | None]:
    if "etcd" not in KINDS:
        yield None
        return
    with shared_etcd() as server:
        yield server


@pytest.fixture
def bare_pods(binaries: Path, tmp_path: Path, kind: str, served: Served, etcd: EtcdServer | None) -> Iterator[PodHost]:
    """A node and a cluster with nothing in it, not even the namespace."""
    with ExitStack() as undo:
        host = PodHost(binaries, tmp_path, undo, kind, served, etcd)
        host.store.begin()
        yield host


@pytest.fixture
def pods(bare_pods: PodHost) -> PodHost:
    """A node of a cluster that is ready, without pools, and the namespace `test`."""
    bare_pods.store.put_all(cluster_records())
    bare_pods.cluster.add_namespace(NAMESPACE)
    return bare_pods
