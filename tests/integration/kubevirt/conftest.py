"""A node of a cluster with KubeVirt, and Calico's records in either group of its resources.

The plugins use the API server with the rights that manifests/rbac.yaml gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.kubevirt.machines import MachineHost
from integration.plugin.conftest import _orphans, binaries
from integration.plugin.kubernetes_store import Served

__all__ = ["_orphans", "binaries"]  # fixtures


@pytest.fixture(scope="session", params=["v1", "v3"])
def kind(request: pytest.FixtureRequest) -> str:
    """The group of Calico's resources that the cluster serves. All tests of one are run together."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def bare_host(binaries: Path, tmp_path: Path, kind: str, served: Served) -> Iterator[MachineHost]:
    """Before anybody has asked for anything: `begin` is the test's."""
    with ExitStack() as undo:
        yield MachineHost(binaries, tmp_path, undo, kind, served)


@pytest.fixture
def host(bare_host: MachineHost) -> MachineHost:
    """A node of a cluster with pools, and without machines."""
    bare_host.begin()
    return bare_host
