"""The Kubernetes datastore and cluster over a little API server in memory; the same suites run over a real one."""

from __future__ import annotations

import pytest

from contracts_kubernetes_datastore import KubernetesClusterContract, KubernetesDatastoreContract
from fake_apiserver import FakeApiserver, Recorded


class OnFake:
    @pytest.fixture
    def client(self, group):
        return FakeApiserver(group, "kubevirt")

    @pytest.fixture
    def recorded(self, client):
        return Recorded(client.transport())

    @pytest.fixture
    def clock(self):
        from adapters.memory.clock import MemoryClock

        return MemoryClock()


class TestOldGroup(OnFake, KubernetesDatastoreContract):
    @pytest.fixture
    def group(self):
        return "v1"


class TestNewGroup(OnFake, KubernetesDatastoreContract):
    @pytest.fixture
    def group(self):
        return "v3"


class TestCluster(OnFake, KubernetesClusterContract):
    @pytest.fixture
    def group(self):
        return "v1"
