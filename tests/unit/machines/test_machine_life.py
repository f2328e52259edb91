"""The life of a virtual machine, whatever befalls the calls about it (D09; spec: ipam 14, 16)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from worlds.machine_life import Life
from worlds.machine_simulate import random_life

TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=25, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("batch", range(3))
def test_random_lives_go_well(batch):
    for seed in range(batch * 20, (batch + 1) * 20):
        random_life(seed)
