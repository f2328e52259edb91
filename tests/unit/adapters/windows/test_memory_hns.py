"""HNS over dicts keeps the promises of the seam."""

from __future__ import annotations

import pytest

from adapters.windows.memory_hns import MemoryHns
from contracts.hns import HnsContract, HnsWorld


class MemoryWorld(HnsWorld):
    def __init__(self) -> None:
        self.hns = MemoryHns()

    def make_namespace(self) -> str:
        return self.hns.make_namespace()

    def run_container(self, name: str) -> None:
        self.hns.run_container(name)

    def fail(self, operation: str, hresult: int, record: str) -> None:
        self.hns.fails(operation, hresult=hresult, record=record)


class TestMemoryHns(HnsContract):
    @pytest.fixture
    def world(self):
        return MemoryWorld()
