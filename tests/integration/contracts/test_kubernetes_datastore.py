"""The Kubernetes datastore and cluster over a real kube-apiserver, with Calico's resources in either group."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from contracts_kubernetes_datastore import KubernetesDatastoreContract
from contracts_kubernetes_pods import DerivedContract, KubernetesClusterContract, PodEndpointContract
from fake_apiserver import Recorded


@pytest.fixture(scope="module")
def shared(served):
    return served


class OnServer:
    group_served = "v1"

    @pytest.fixture
    def group(self):
        return self.group_served

    @pytest.fixture
    def client(self, shared, group):
        return shared.fresh(group)

    @pytest.fixture
    def recorded(self, shared, client):
        return Recorded(shared.transport)

    @pytest.fixture
    def clock(self):
        return MemoryClock()


class TestOldGroup(OnServer, KubernetesDatastoreContract):
    pass


class TestNewGroup(OnServer, KubernetesDatastoreContract):
    """By the library's transport, for a change."""

    group_served = "v3"

    @pytest.fixture
    def recorded(self, shared, client):
        return Recorded(shared.library_transport)


class TestPodEndpoints(OnServer, PodEndpointContract):
    group_served = "v3"


class TestDerived(OnServer, DerivedContract):
    group_served = "v3"


class TestCluster(OnServer, KubernetesClusterContract):
    group_served = "v3"

    @pytest.fixture
    def client(self, shared, group):
        return shared.fresh(group, "kubevirt")
