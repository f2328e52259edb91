"""The IPAM library on the memory datastore."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from contracts_ipam_library import AffinityContract, AttributesContract, ReleaseContract, SettingsContract
from contracts_ipam_owners import OwnerAttributesContract
from contracts_ipam_races import RaceContract


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


class TestRaces(OnMemory, RaceContract):
    pass
