"""An API server for all tests of this folder; it starts in about three seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.apiserver import ApiServer
from services.cluster import Cluster


@pytest.fixture(scope="session")
def apiserver() -> Iterator[ApiServer]:
    """It serves both of Calico's API groups, and KubeVirt's, unless a test changes that for itself and back."""
    with ApiServer() as server:
        server.cluster.serve("v1", "v3", "kubevirt")
        yield server


@pytest.fixture
def cluster(apiserver: ApiServer) -> Iterator[Cluster]:
    """An empty cluster."""
    yield apiserver.cluster
    apiserver.cluster.clear()
