"""A built bundle, and a host to call it on."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.plugin.host import Host
from integration.plugin.store import cluster_records

ROOT = Path(__file__).resolve().parents[3]


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


@pytest.fixture
def bare_host(binaries: Path, tmp_path: Path):
    """A host without a datastore file."""
    with ExitStack() as undo:
        yield Host(binaries, tmp_path, undo)


@pytest.fixture
def host(bare_host: Host) -> Host:
    """A host with one IPv4 pool of four blocks."""
    bare_host.store.create(cluster_records("10.20.0.0/24"))
    return bare_host
