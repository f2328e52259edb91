"""Settings of all tests: a busy machine must not turn a property into a timing test."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Generator

pytest.register_assert_rewrite(
    "contracts", "integration", "interop", "patience", "services", "worlds"
)  # what tests share says what it compared, too

# Names that do not exist are asked for, of a resolver that may not answer: it would be asked for ten seconds and more.
os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")

settings.register_profile(
    "tortie",
    derandomize="TORTIE_SAME_EXAMPLES" in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("tortie")

_TERMINATION = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Programs that a test runs in its own process end with these signals ignored; the next test has them again."""
    before = {number: signal.getsignal(number) for number in _TERMINATION}
    try:
        return (yield)
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
