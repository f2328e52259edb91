"""Hosts whose etcd is a test's to break: each has a server, and a proxy before it, of its own.

The server belongs to the host's rig and is restarted by it; what is at it afterwards is as at the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.faults.rig import Rig, Rigs
from integration.plugin.conftest import binaries

__all__ = ["binaries"]  # a fixture

RIGS = 3  # faults are mostly waiting, so a few more than there are processors


@pytest.fixture
def rig(binaries: Path, tmp_path: Path) -> Iterator[Rig]:
    with ExitStack() as undo:
        yield Rig(binaries, tmp_path, undo)


@pytest.fixture(scope="module")
def rigs(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rigs]:
    with ExitStack() as undo:
        yield Rigs([Rig(binaries, tmp_path_factory.mktemp(f"rig{number}"), undo) for number in range(RIGS)])
