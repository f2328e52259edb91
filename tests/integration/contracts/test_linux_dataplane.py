"""The dataplane contract over this machine's kernel. Needs root; touches only namespaces and devices of its own."""

from __future__ import annotations

import pytest

from contracts_dataplane import DataplaneContract
from linux_world import LinuxWorld


class TestLinuxDataplane(DataplaneContract):
    @pytest.fixture
    def world(self, tmp_path):
        with LinuxWorld(tmp_path) as world:
            yield world
