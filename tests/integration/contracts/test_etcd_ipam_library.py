"""The IPAM library on a real etcd; calls that race have connections of their own."""

from __future__ import annotations

import pytest

from adapters.etcdv3.datastore import EtcdDatastore
from adapters.etcdv3.settings import read_settings
from adapters.etcdv3.transport_lean import open_lean
from adapters.memory.clock import MemoryClock
from contracts.ipam_assign import AutoAssignContract
from contracts.ipam_ensure_block import EnsureBlockContract
from contracts.ipam_library import AffinityContract, AttributesContract, ReleaseContract, SettingsContract
from contracts.ipam_limits import AssignIpContract, BorrowingContract, HandleLimitContract
from contracts.ipam_owners import OwnerAttributesContract
from contracts.ipam_pools import PoolsContract
from contracts.ipam_promotion import PromotionContract
from contracts.ipam_races import OnConnections, RaceContract
from contracts.ipam_windows import HostReservedAttrContract, WindowsContract
from services.etcd import shared_etcd


@pytest.fixture(scope="module")
def server():
    with shared_etcd() as etcd:
        yield etcd


def connect(server, clock):
    settings = read_settings(lambda name: {"ETCD_ENDPOINTS": server.url}.get(name, ""), {})
    return EtcdDatastore(settings, clock, open_lean)


class OnEtcd:
    @pytest.fixture
    def clock(self):
        return MemoryClock()

    @pytest.fixture
    def store(self, clock, server):
        server.clear()
        with connect(server, clock) as store:
            yield store


class TestRelease(OnEtcd, ReleaseContract):
    pass


class TestAttributes(OnEtcd, AttributesContract):
    pass


class TestAffinities(OnEtcd, AffinityContract):
    pass


class TestSettings(OnEtcd, SettingsContract):
    pass


class TestOwnerAttributes(OnEtcd, OwnerAttributesContract):
    pass


class TestPromotion(OnEtcd, PromotionContract):
    pass


class TestAutoAssign(OnEtcd, AutoAssignContract):
    pass


class TestPools(OnEtcd, PoolsContract):
    pass


class TestAssignIp(OnEtcd, AssignIpContract):
    pass


class TestEnsureBlock(OnEtcd, EnsureBlockContract):
    pass


class TestHostReservedAttr(OnEtcd, HostReservedAttrContract):
    pass


class TestWindows(OnEtcd, WindowsContract):
    pass


class Racing(OnConnections, OnEtcd):
    @pytest.fixture
    def connect(self, server):
        return lambda clock: connect(server, clock)


class TestRaces(Racing, RaceContract):
    pass


class TestHandleLimit(Racing, HandleLimitContract):
    pass


class TestBorrowing(Racing, BorrowingContract):
    pass
