"""What an ADD and a DEL ask of the datastore: the same number of calls however many nodes and blocks there are.

Case P01; spec: ipam 15. A call is one `fetch` (of any number of records), `create`, `update` or `delete`.
"""

from __future__ import annotations

import pytest

from domain.cluster import Node
from domain.ipam.address import Cidr
from domain.ipam.block import CONFIRMED, HOST, Affinity, Owner, new_block
from domain.ipam.pools import Pool
from domain.resource import Metadata
from ports.datastore import AffinityKey, BlockKey, Handles, IPPoolKey, NodeKey
from worlds.ipam_world import NEVER, World, call_of

WARM_ADD = {"fetch": 2, "create": 1, "update": 1}  # settings and own affinities; the block | handle | block
FIRST_ADD = {"fetch": 2, "create": 3, "update": 2}  # … and all blocks, once | affinity, block, handle | confirm, block
DEL = {"fetch": 2, "update": 1, "delete": 1}  # the handle; the block | block | handle
EMPTY_DEL = {"fetch": 3}  # neither handle; all blocks, once


def cluster_of(blocks: int) -> World:
    """A /8 pool of 2^18 blocks, of which other nodes own that many."""
    world = World()
    world.store.create(IPPoolKey("big"), Pool(Metadata("big"), "10.0.0.0/8", 26), NEVER)
    for number in range(blocks):
        owner, cidr = Owner(HOST, f"other-{number}"), Cidr(4, (10 << 24) + number * 64, 26)
        world.store.create(NodeKey(owner.name), Node(Metadata(owner.name)), NEVER)
        world.store.create(AffinityKey(owner, cidr), Affinity(CONFIRMED), NEVER)
        world.store.create(BlockKey(cidr), new_block(cidr, owner, None, 1), NEVER)
    return world


def counted(world: World, action) -> dict[str, int]:
    before = dict(world.store.calls)
    action()
    after = world.store.calls
    return {verb: after[verb] - before.get(verb, 0) for verb in after if after[verb] != before.get(verb, 0)}


@pytest.mark.parametrize("blocks", [0, 1500])
def test_add_and_del_ask_as_much_in_a_large_cluster_as_in_a_small_one(blocks):
    world = cluster_of(blocks)
    pools = {"ipv4_pools": ("10.0.0.0/8",)}
    assert counted(world, lambda: world.add(call_of("c1", "node-a", **pools))) == with_pools(FIRST_ADD)
    assert counted(world, lambda: world.add(call_of("c2", "node-a", **pools))) == with_pools(WARM_ADD)
    assert counted(world, lambda: world.delete(call_of("c1", "node-a", "DEL"))) == DEL
    assert counted(world, lambda: world.delete(call_of("c1", "node-a", "DEL"))) == EMPTY_DEL
    assert [stored.key.handle for stored in world.store.list(Handles(), NEVER)] == ["net.c2"]
    assert counted(world, lambda: world.delete(call_of("c2", "node-a", "DEL"))) == DEL  # … and the block gets empty


def test_where_each_record_is_a_round_trip_what_only_an_empty_block_needs_is_read_for_one_only():
    world = cluster_of(0)
    world.store.lists_in_one_go = False
    for container in ("c1", "c2"):
        world.add(call_of(container, "node-a", ipv4_pools=("10.0.0.0/8",)))
    assert counted(world, lambda: world.delete(call_of("c1", "node-a", "DEL"))) == DEL
    assert counted(world, lambda: world.delete(call_of("c2", "node-a", "DEL"))) == {**DEL, "fetch": 3}


def with_pools(calls: dict[str, int]) -> dict[str, int]:
    """Pools that are named are looked up once more, by name."""
    return {**calls, "fetch": calls["fetch"] + 1}
