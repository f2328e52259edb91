"""The settings of allocation: what is refused, what survives, and the collection of cooled-down addresses."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.errors import IpamError
from domain.ipam.pools import AllocationConfig
from ports.datastore import AllocationConfigKey, BlockKey
from usecases.configure_ipam import MAX_COOLDOWN, get_config, set_config
from usecases.ipam.release_listed import free_cooled_down
from worlds.one_node import OWNER

BLOCK = "10.244.0.0/30"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"auto_allocate_blocks": False},
            "Cannot disable 'StrictAffinity' and 'AutoAllocateBlocks' at the same time",
        ),
        ({"max_blocks_per_host": 2}, "MaxBlocksPerHost requires StrictAffinity to be enabled"),
        (
            {"strict_affinity": True, "max_blocks_per_host": -1},
            "MaxBlocksPerHost must not be negative, but is -1",
        ),
        ({"cooldown_seconds": -1}, "IPCooldownSeconds must be 0 to 1200, but is -1"),
        ({"cooldown_seconds": MAX_COOLDOWN + 1}, "IPCooldownSeconds must be 0 to 1200, but is 1201"),
    ],
)
def test_settings_that_cannot_work_are_refused(node, settings, text):
    with pytest.raises(IpamError) as failure:
        set_config(node.work(), AllocationConfig(**settings))
    assert str(failure.value) == text
    assert node.get(AllocationConfigKey()) is None


def test_members_that_we_do_not_know_stay(node):
    node.put(AllocationConfigKey(), AllocationConfig(unknown=(("later", "1"),)))
    stored = set_config(node.work(), AllocationConfig(strict_affinity=True))
    assert stored == AllocationConfig(strict_affinity=True, unknown=(("later", "1"),))
    assert get_config(node.work()) == stored


def test_equal_settings_are_not_written_again(node):
    set_config(node.work(), AllocationConfig(cooldown_seconds=5))
    writes = dict(node.datastore.calls)
    set_config(node.work(), AllocationConfig(cooldown_seconds=5))
    assert {verb: count for verb, count in node.datastore.calls.items() if verb != "fetch"} == {
        verb: count for verb, count in writes.items() if verb != "fetch"
    }


def test_a_rivals_settings_are_replaced(node):
    node.put(AllocationConfigKey(), AllocationConfig())
    with node.rival("update", AllocationConfigKey, lambda key: node.put(key, AllocationConfig(cooldown_seconds=9))):
        set_config(node.work(), AllocationConfig(cooldown_seconds=5))
    assert get_config(node.work()) == AllocationConfig(cooldown_seconds=5)


@pytest.fixture
def cold(node):
    """An address whose cooldown is over, and a live one."""
    node.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=30))
    block = node.add_block(BLOCK, OWNER, ("live", 1), ("gone", 1)).record
    node.put(BlockKey(block.cidr), block.release((1,), node.clock.now(), 30))
    node.clock.advance(60)
    return node


def test_a_block_that_changes_meanwhile_is_collected_as_it_is_then(cold):
    with cold.rival("update", BlockKey, cold.touch):
        assert free_cooled_down(cold.work()) == (Cidr.parse(BLOCK),)
    assert cold.holders() == {"10.244.0.0": "live"}


def test_a_block_that_goes_meanwhile_is_gone(cold):
    with cold.rival("update", BlockKey, cold.remove):
        free_cooled_down(cold.work())
    assert cold.blocks() == []
