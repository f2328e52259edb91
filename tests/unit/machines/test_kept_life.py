"""The life of names whose addresses are kept, whatever befalls the calls about them (F01, L08)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from worlds.kept_life import KeptLife

TestKeptLife = KeptLife.TestCase
TestKeptLife.settings = settings(
    max_examples=30, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
