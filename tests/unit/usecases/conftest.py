"""What most tests of use cases begin with; a file that needs another node has its own fixture of that name."""

from __future__ import annotations

import pytest

from worlds.one_node import OneNode


@pytest.fixture
def node() -> OneNode:
    """A node with one pool, over memory."""
    return OneNode()
