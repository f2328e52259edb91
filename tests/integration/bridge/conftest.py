"""A built bundle, installed with the name `bridge` too, and a host to call it on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.bridge.rig import Rig
from integration.plugin.kernel import remove_orphans

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def bridge_binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installed bundle: of the one in TORTIE_BIN, else of one built now."""
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces and need root")
    remove_orphans()
    target = tmp_path_factory.mktemp("installed") / "opt" / "cni" / "bin"
    bundle = [sys.executable, ROOT / "packaging" / "bundle.py"]
    built = os.environ.get("TORTIE_BIN")
    if not built:
        built = str(tmp_path_factory.mktemp("built"))
        lock = ROOT / "requirements.lock"
        subprocess.run([*bundle, "build", "--lock", lock, built], check=True, capture_output=True, timeout=120)
    words = ["install", built, target, "--also", "bridge"]
    subprocess.run([*bundle, *words], check=True, capture_output=True, timeout=120)
    return target


@pytest.fixture
def rig(bridge_binaries: Path, tmp_path: Path) -> Iterator[Rig]:
    with ExitStack() as undo:
        yield Rig(bridge_binaries, tmp_path, undo)
