"""The Kubernetes datastore and cluster over a little API server in memory; the same suites run over a real one."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from contracts.kubernetes_datastore import KubernetesDatastoreContract
from contracts.kubernetes_pods import DerivedContract, KubernetesClusterContract, PodEndpointContract
from services.fake_apiserver import FakeApiserver, Recorded


class OnFake:
    group_served = "v1"

    @pytest.fixture
    def group(self):
        return self.group_served

    @pytest.fixture
    def client(self, group):
        return FakeApiserver(group, "kubevirt")

    @pytest.fixture
    def recorded(self, client):
        return Recorded(client.transport())

    @pytest.fixture
    def clock(self):
        return MemoryClock()


class TestOldGroup(OnFake, KubernetesDatastoreContract):
    pass


class TestNewGroup(OnFake, KubernetesDatastoreContract):
    group_served = "v3"


class TestPodEndpoints(OnFake, PodEndpointContract):
    pass


class TestDerived(OnFake, DerivedContract):
    pass


class TestCluster(OnFake, KubernetesClusterContract):
    pass
