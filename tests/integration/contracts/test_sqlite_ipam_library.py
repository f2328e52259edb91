"""The IPAM library on the embedded datastore; calls that race have connections of their own."""

from __future__ import annotations

import pytest

from adapters.linux.clock import SystemClock
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from adapters.sqlite.datastore import SqliteDatastore
from contracts.ipam_assign import AutoAssignContract
from contracts.ipam_ensure_block import EnsureBlockContract
from contracts.ipam_library import AffinityContract, AttributesContract, ReleaseContract, SettingsContract
from contracts.ipam_limits import AssignIpContract, BorrowingContract, HandleLimitContract
from contracts.ipam_owners import OwnerAttributesContract
from contracts.ipam_pools import PoolsContract
from contracts.ipam_promotion import PromotionContract
from contracts.ipam_races import RaceContract
from contracts.ipam_windows import HostReservedAttrContract, WindowsContract
from usecases.ipam.work import Work
from worlds.ipam_library import in_threads


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


class OnConnections(OnSqlite):
    @pytest.fixture
    def race(self, path):
        clock = SystemClock()

        def in_its_own_connection(body):
            with SqliteDatastore(path, clock) as store:
                return body(Work(store, clock, RecordingLog(), clock.deadline(60)))

        return lambda bodies: in_threads([lambda body=body: in_its_own_connection(body) for body in bodies])


class TestRaces(OnConnections, RaceContract):
    pass


class TestHandleLimit(OnConnections, HandleLimitContract):
    pass


class TestBorrowing(OnConnections, BorrowingContract):
    pass
