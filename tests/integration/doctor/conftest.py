"""The programs that are looked at, and their servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.plugin.conftest import _orphans, binaries
from services.etcd import EtcdServer, shared_etcd

__all__ = ["_orphans", "binaries"]  # fixtures


@pytest.fixture(scope="session")
def etcd() -> Iterator[EtcdServer]:
    with shared_etcd() as server:
        yield server
