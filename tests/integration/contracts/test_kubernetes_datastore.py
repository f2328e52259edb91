"""The Kubernetes datastore and cluster over a real kube-apiserver, with Calico's resources in either group."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from contracts.kubernetes_datastore import KubernetesDatastoreContract
from contracts.kubernetes_pods import DerivedContract, KubernetesClusterContract, PodEndpointContract
from services.fake_apiserver import Recorded


@pytest.fixture(scope="module")
def shared(served):
    return served


class OnServer:
    """Of one of the groups, which the names of tests say."""

    @pytest.fixture
    def client(self, shared, group):
        return shared.fresh(group)

    @pytest.fixture
    def recorded(self, shared, client):
        return Recorded(shared.transport)

    @pytest.fixture
    def clock(self):
        return MemoryClock()


@pytest.mark.parametrize("group", ["v1"])
class TestOldGroup(OnServer, KubernetesDatastoreContract):
    pass


@pytest.mark.parametrize("group", ["v3"])
class TestNewGroup(OnServer, KubernetesDatastoreContract):
    """By the library's transport, for a change."""

    @pytest.fixture
    def recorded(self, shared, client):
        return Recorded(shared.library_transport)


@pytest.mark.parametrize("group", ["v3"])
class TestPodEndpoints(OnServer, PodEndpointContract):
    pass


@pytest.mark.parametrize("group", ["v3"])
class TestDerived(OnServer, DerivedContract):
    pass


@pytest.mark.parametrize("group", ["v3"])
class TestCluster(OnServer, KubernetesClusterContract):
    @pytest.fixture
    def client(self, shared, group):
        return shared.fresh(group, "kubevirt")
