"""Runtimes as users have them, on nodes of their own; what cannot be had is said and skipped.

TORTIE_BIN is the folder of the programs that are tested; TORTIE_RUNTIMES_CONTAINERD one with a containerd to take
instead of the one on PATH. With TORTIE_RUNTIMES_QUICK a share of the tests runs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.runtimes.containerd import Containerd
from integration.runtimes.kinds import KINDS
from integration.runtimes.networks import Network
from integration.runtimes.nodes import Node, Rack

QUICK = bool(os.environ.get("TORTIE_RUNTIMES_QUICK"))
# podman's containers are no pods of a cluster; what a runtime sends does not depend on the datastore.
FITTING = {"podman": ["etcd", "embedded", "bridge"], "table": ["embedded"]}
QUICKLY = {"containerd": ["etcd", "bridge"], "podman": ["embedded"], "table": ["embedded"]}
CONTAINERD = os.environ.get("TORTIE_RUNTIMES_CONTAINERD", "")


class Place:
    """A node with a network and, once it is started, a runtime."""

    def __init__(self, kind: str, node: Node, network: Network) -> None:
        self.kind, self.node, self.network = kind, node, network
        self.runtime: Containerd


def need(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"NOT TRIED: no {', '.join(missing)} on PATH; packaging/bootstrap.sh runtimes installs them")


@pytest.fixture(scope="session")
def programs() -> Path:
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces and need root")
    folder = os.environ.get("TORTIE_BIN")
    if not folder:
        pytest.skip("NOT TRIED: TORTIE_BIN names no folder of programs; `make runtimes` does")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def rack() -> Iterator[Rack]:
    with Rack() as rack:
        yield rack


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every kind of network that a runtime can use, or some in a quick run."""
    if "place" in metafunc.fixturenames:
        runtime = metafunc.module.__name__.rpartition("_")[2]
        kinds = (QUICKLY if QUICK else FITTING).get(runtime, list(KINDS))
        metafunc.parametrize("place", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, rack: Rack, programs: Path) -> Iterator[Place]:
    kind = request.param
    with ExitStack() as undo:
        node = rack.add_node(f"{request.module.__name__.rpartition('_')[2]}-{kind}")
        undo.callback(node.halt)
        network = KINDS[kind](node, programs, undo)
        network.begin()
        yield Place(kind, node, network)
