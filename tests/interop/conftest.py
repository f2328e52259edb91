"""Two implementations on one host and one etcd: ours, and the original's executables in the folder TORTIE_PEER.

`make interop PEER=…` sets it. Without it there is nothing to compare with, and the tests say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.register_assert_rewrite("integration.plugin.host", "integration.plugin.store", "interop.pair")

from integration.plugin.conftest import binaries  # noqa: E402 - so that their assertions say what they compared
from interop.pair import Implementation, Pair  # noqa: E402
from services.etcd import Etcd  # noqa: E402

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


@pytest.fixture
def pair(ours: Implementation, peer: Implementation, etcd: Etcd, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as undo:
        yield Pair((ours, peer), etcd, tmp_path, undo)
