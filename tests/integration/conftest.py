"""What several suites share: one Kubernetes API server, which starts when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("integration.plugin.host", "integration.plugin.store", "integration.plugin.kernel")

from integration.plugin.kubernetes_store import Served  # noqa: E402 - so that their assertions say what they compared
from services.apiserver import shared_apiserver  # noqa: E402


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    with shared_apiserver() as server, Served(server) as served:
        yield served
