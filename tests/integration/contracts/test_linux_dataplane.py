"""The dataplane contract over this machine's kernel, by each transport.

Needs root; touches only namespaces and devices of its own.
"""

from __future__ import annotations

import pytest

from contracts.dataplane import DataplaneContract
from worlds.linux_world import TRANSPORTS, LinuxWorld


class TestLinuxDataplane(DataplaneContract):
    @pytest.fixture(params=TRANSPORTS)
    def world(self, tmp_path, request):
        with LinuxWorld(tmp_path, request.param) as world:
            yield world
