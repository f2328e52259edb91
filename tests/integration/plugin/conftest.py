"""A built bundle, and a host to call it on.

TORTIE_TEST_STORE chooses the datastore: `sqlite` (a file of each test's own), `etcd` (one server for all tests, the
one in TORTIE_TEST_ETCD if set, emptied for each; a proxy at the recorded port leads there from the host's namespace),
or `kubernetes` (one API server for all tests, the one in TORTIE_TEST_KUBECONFIG if set, likewise; each test runs with
Calico's resources in either group).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.plugin.host import Host
from integration.plugin.kernel import remove_orphans
from integration.plugin.kubernetes_store import KubernetesRecords, Served
from integration.plugin.store import EtcdRecords, cluster_records
from services.etcd import EtcdServer, shared_etcd
from services.tcp_proxy import TcpProxy

ROOT = Path(__file__).resolve().parents[3]
STORE = os.environ.get("TORTIE_TEST_STORE", "sqlite")


@pytest.fixture(scope="session", autouse=True)
def _orphans() -> None:
    remove_orphans()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of the embedded datastore's file say nothing about another datastore."""
    unfit = [item for item in items if STORE != "sqlite" and item.get_closest_marker("sqlite_file")]
    if unfit:
        config.hook.pytest_deselected(items=unfit)
        items[:] = [item for item in items if item not in unfit]


@pytest.fixture(scope="session")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installed bundle: of the one in TORTIE_BIN, else of one built now."""
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces and need root")
    target = tmp_path_factory.mktemp("installed") / "opt" / "cni" / "bin"
    bundle = [sys.executable, ROOT / "packaging" / "bundle.py"]
    built = os.environ.get("TORTIE_BIN")
    words = ["install", built, target] if built else ["build", "--lock", ROOT / "requirements.lock", target]
    subprocess.run([*bundle, *words], check=True, capture_output=True, timeout=120)
    return target


@pytest.fixture(scope="session")
def server() -> Iterator[EtcdServer | None]:
    """The etcd, where tests run on one."""
    assert STORE in {"sqlite", "etcd", "kubernetes"}, f"TORTIE_TEST_STORE={STORE}"
    if STORE != "etcd":
        yield None
        return
    with shared_etcd() as etcd:
        yield etcd


@pytest.fixture(scope="session", params=["v1", "v3"] if STORE == "kubernetes" else None)
def api_group(request: pytest.FixtureRequest) -> str:
    """The group of Calico's resources, where tests run on Kubernetes. All suites' tests of one are run together."""
    return getattr(request, "param", "")


@pytest.fixture
def bare_host(
    binaries: Path, server: EtcdServer | None, api_group: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Host]:
    """A host with an empty datastore, or without a datastore file."""
    with ExitStack() as undo:
        host = Host(binaries, tmp_path, undo)
        if server:
            proxy = undo.enter_context(TcpProxy(server.port, host=server.host, netns=host.net.path, port=23790))
            host.store = EtcdRecords(server, proxy.port)
            host.store.begin()
        elif api_group:
            served: Served = request.getfixturevalue("served")
            proxy = undo.enter_context(TcpProxy(served.port, host=served.host, netns=host.net.path))
            host.store = KubernetesRecords(served, api_group, served.kubeconfig(tmp_path / "kubeconfig", proxy.port))
            host.store.begin()
        yield host


@pytest.fixture
def host(bare_host: Host) -> Host:
    """A host with one IPv4 pool of four blocks."""
    bare_host.store.create(cluster_records("10.20.0.0/24"))
    return bare_host
