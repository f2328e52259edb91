"""Settings of all tests: a busy machine must not turn a property into a timing test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tortie", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], print_blob=True
)
settings.load_profile("tortie")
