"""The IPAM library on the embedded datastore; calls that race have connections of their own."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.sqlite.datastore import SqliteDatastore
from contracts.ipam_assign import AutoAssignContract
from contracts.ipam_ensure_block import EnsureBlockContract
from contracts.ipam_library import AffinityContract, AttributesContract, ReleaseContract, SettingsContract
from contracts.ipam_limits import AssignIpContract, BorrowingContract, HandleLimitContract
from contracts.ipam_owners import OwnerAttributesContract
from contracts.ipam_pools import PoolsContract
from contracts.ipam_promotion import PromotionContract
from contracts.ipam_races import OnConnections, RaceContract
from contracts.ipam_windows import HostReservedAttrContract, WindowsContract


class OnSqlite:
    @pytest.fixture
    def path(self, tmp_path):
        return str(tmp_path / "datastore.db")

    @pytest.fixture
    def clock(self):
        return MemoryClock()

    @pytest.fixture
    def store(self, clock, path):
        with SqliteDatastore(path, clock, create=True) as store:
            yield store


class TestRelease(OnSqlite, ReleaseContract):
    pass


class TestAttributes(OnSqlite, AttributesContract):
    pass


class TestAffinities(OnSqlite, AffinityContract):
    pass


class TestSettings(OnSqlite, SettingsContract):
    pass


class TestOwnerAttributes(OnSqlite, OwnerAttributesContract):
    pass


class TestPromotion(OnSqlite, PromotionContract):
    pass


class TestAutoAssign(OnSqlite, AutoAssignContract):
    pass


class TestPools(OnSqlite, PoolsContract):
    pass


class TestAssignIp(OnSqlite, AssignIpContract):
    pass


class TestEnsureBlock(OnSqlite, EnsureBlockContract):
    pass


class TestHostReservedAttr(OnSqlite, HostReservedAttrContract):
    pass


class TestWindows(OnSqlite, WindowsContract):
    pass


class Racing(OnConnections, OnSqlite):
    @pytest.fixture
    def connect(self, path):
        return lambda clock: SqliteDatastore(path, clock)


class TestRaces(Racing, RaceContract):
    pass


class TestHandleLimit(Racing, HandleLimitContract):
    pass


class TestBorrowing(Racing, BorrowingContract):
    pass
