"""The IPAM library on the memory datastore."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from contracts.ipam_assign import AutoAssignContract
from contracts.ipam_ensure_block import EnsureBlockContract
from contracts.ipam_library import AffinityContract, AttributesContract, ReleaseContract, SettingsContract
from contracts.ipam_limits import AssignIpContract, BorrowingContract, HandleLimitContract
from contracts.ipam_owners import OwnerAttributesContract
from contracts.ipam_pools import PoolsContract
from contracts.ipam_promotion import PromotionContract
from contracts.ipam_races import RaceContract
from contracts.ipam_windows import HostReservedAttrContract, WindowsContract


class OnMemory:
    @pytest.fixture
    def clock(self):
        return MemoryClock()

    @pytest.fixture
    def store(self, clock):
        return MemoryDatastore(clock)


class TestRelease(OnMemory, ReleaseContract):
    pass


class TestAttributes(OnMemory, AttributesContract):
    pass


class TestAffinities(OnMemory, AffinityContract):
    pass


class TestSettings(OnMemory, SettingsContract):
    pass


class TestOwnerAttributes(OnMemory, OwnerAttributesContract):
    pass


class TestPromotion(OnMemory, PromotionContract):
    pass


class TestRaces(OnMemory, RaceContract):
    pass


class TestAutoAssign(OnMemory, AutoAssignContract):
    pass


class TestPools(OnMemory, PoolsContract):
    pass


class TestAssignIp(OnMemory, AssignIpContract):
    pass


class TestHandleLimit(OnMemory, HandleLimitContract):
    pass


class TestBorrowing(OnMemory, BorrowingContract):
    pass


class TestEnsureBlock(OnMemory, EnsureBlockContract):
    pass


class TestHostReservedAttr(OnMemory, HostReservedAttrContract):
    pass


class TestWindows(OnMemory, WindowsContract):
    pass
