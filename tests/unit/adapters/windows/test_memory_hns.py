"""HNS over dicts keeps the promises of the seam."""

from __future__ import annotations

import pytest

from adapters.windows.memory_hns import MemoryHns
from contracts.hns import HnsContract


class TestMemoryHns(HnsContract):
    @pytest.fixture
    def hns(self):
        return MemoryHns("192.0.2.10")

    @pytest.fixture
    def run_container(self, hns):
        return hns.run_container
