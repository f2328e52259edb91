"""What a DEL makes of single damaged records, beyond what the suite for all datastores shows."""

from __future__ import annotations

import pytest

from adapters.records.codec import key_text
from domain.ipam.address import Cidr
from domain.ipam.pools import AllocationConfig
from ports.datastore import (
    AllocationConfigKey,
    BlockKey,
    Blocks,
    ClusterInformationKey,
    HandleKey,
    IPPools,
    WorkloadEndpoints,
)
from ports.errors import BadConfiguration, Refused, Unavailable
from worlds.machine_world import MachineWorld, handle_of

DUAL = {"assign_ipv6": "true"}


def damage(store, key) -> None:
    store.load({key_text(key): "{"})


def test_addresses_cool_down_until_damaged_settings_are_mended(node):
    """Whether they have to is what the settings said."""
    node.put(AllocationConfigKey(), AllocationConfig(auto_allocate_blocks=True))
    node.add()
    damage(node.datastore, AllocationConfigKey())
    node.delete()
    assert (node.holders(), node.counts()) == ({"10.244.0.128": None}, {})
    with pytest.raises(Refused, match="is corrupt"):
        node.add("c2")
    node.datastore.load({key_text(AllocationConfigKey()): '{"auto_allocate_blocks":true}'})
    node.add("c2")
    assert list(node.holders().values()) == ["net1.c2"]


def test_a_block_that_is_damaged_while_it_is_freed_is_left_alone(node):
    node.assign()
    node.remove(HandleKey("net1.c1"))
    key = BlockKey(Cidr.parse("10.244.0.128/26"))
    with node.rival("update", BlockKey, lambda _key: damage(node.datastore, key)):
        node.release()
    assert "is corrupt" in "".join(node.log.shown("error"))


def test_an_add_that_lacks_no_pool_does_not_blame_what_was_left_out(node):
    """The damaged block is one that nobody misses."""
    damage(node.datastore, BlockKey(Cidr.parse("10.244.0.0/26")))
    node.datastore.list(Blocks(), node.call().deadline)
    for pool in node.datastore.list(IPPools(), node.call().deadline):
        node.remove(pool.key)
    with pytest.raises(Refused) as caught:
        node.add()
    assert "corrupt" not in caught.value.details


@pytest.mark.parametrize("kind", [ClusterInformationKey, WorkloadEndpoints])
def test_settings_that_turn_out_to_be_lost_in_mid_call_can_be_tried_again(node, kind):
    """A token file that goes while the call runs."""
    node.add()
    node.fail("fetch", kind, BadConfiguration("token file /var/run/token: no such file or directory"))
    with pytest.raises(Unavailable, match="token file /var/run/token: no such file"):
        node.delete()
    assert node.host_links() == []


# --- virtual machines ------------------------------------------------------------------------------------------------


@pytest.fixture
def running() -> MachineWorld:
    world = MachineWorld()
    world.create()
    world.source = world.pod("source")
    world.start(world.source, **DUAL)
    return world


def own_blocks(world: MachineWorld) -> list[BlockKey]:
    stored = world.store.list(Blocks(), world.work().deadline)
    return [BlockKey(one.record.cidr) for one in stored if one.record.held_by(handle_of("db"))]


def test_a_machines_damaged_handle_keeps_no_pod(running):
    damage(running.store, HandleKey(handle_of("db")))
    running.end(running.source)
    assert set(running.owners()) != set()


def test_a_machines_sound_block_is_left_whatever_the_other_says(running):
    damaged, sound = own_blocks(running)
    damage(running.store, damaged)
    running.end(running.source)
    (found,) = [one.record for one in running.store.list(Blocks(), running.work().deadline) if one.key == sound]
    assert [holder.secondary for holder in found.attributes if holder.holder == handle_of("db")] == [{}]


def test_a_machine_that_is_over_keeps_only_what_cannot_be_read(running):
    damaged, sound = own_blocks(running)
    damage(running.store, damaged)
    running.delete_machine()
    for _ in range(2):
        running.end(running.source)
    assert own_blocks(running) == []
    stored = running.store.get(HandleKey(handle_of("db")), running.work().deadline)
    assert stored.record.blocks == {damaged.cidr: 1}
    assert sound.cidr != damaged.cidr
