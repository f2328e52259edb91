"""The self-contained executable, a host to call it on, and an empty folder to call it in."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.plugin.host import Host
from integration.plugin.store import cluster_records

ROOT = Path(__file__).resolve().parents[3]
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


@pytest.fixture(scope="session")
def executable() -> Path:
    """The folder that `make dist` fills: the one in TORTIE_BIN, else this clone's, which is filled now if need be."""
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces and need root")
    folder = Path(os.environ.get("TORTIE_BIN") or ROOT / "dist" / f"linux-{ARCHITECTURE}")
    if not (folder / "calico").exists():
        subprocess.run([sys.executable, ROOT / "packaging" / "executable" / "dist.py", folder], check=True)
    assert (folder / "calico").read_bytes().startswith(b"\x7fELF"), f"{folder} has no self-contained executable"
    return folder


@pytest.fixture
def root(executable: Path, tmp_path: Path) -> Path:
    """A root directory with nothing in it but the executable under its names."""
    root = tmp_path / "root"
    root.mkdir()
    shutil.copyfile(executable / "calico", root / "calico")
    (root / "calico").chmod(0o755)
    for name in ("calico-ipam", "my-custom-cni", "tortie"):
        (root / name).symlink_to("calico")
    return root


@pytest.fixture
def host(root: Path, tmp_path: Path) -> Iterator[Host]:
    """A host whose datastore is in the empty root; it has one pool."""
    (root / "data").mkdir()
    with ExitStack() as undo:
        host = Host(root, tmp_path, undo)
        host.store = type(host.store)(root / "data" / "datastore.db")  # the embedded one
        host.store.create(cluster_records("10.20.0.0/24"))
        yield host
