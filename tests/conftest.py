"""Settings of all tests: a busy machine must not turn a property into a timing test."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite(
    "contracts", "integration", "interop", "services", "worlds"
)  # what tests share says what it compared, too

settings.register_profile(
    "tortie", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], print_blob=True
)
settings.load_profile("tortie")
