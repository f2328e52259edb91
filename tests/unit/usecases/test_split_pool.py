"""Splitting a pool, step by step: nothing is ever without a pool, and what was interrupted goes on."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.datastore import MemoryDatastore
from adapters.memory.log import RecordingLog
from domain.cluster import ClusterInformation
from domain.ipam.address import Cidr
from domain.ipam.block import new_block
from domain.ipam.pools import Pool
from domain.resource import Metadata
from ports.datastore import BlockKey, ClusterInformationKey, IPPoolKey, IPPools
from ports.errors import AlreadyExists, BadConfiguration, Missing, Unavailable
from usecases.ipam.work import Work
from usecases.lock_datastore import set_ready
from usecases.split_pool import NotLocked, named_pool, require_locked, split_pool

RANGE = Cidr.parse("10.0.0.0/24")
BLOCK = Cidr.parse("10.0.0.192/26")
CLUSTER = ClusterInformationKey("default")


class World:
    def __init__(self):
        self.clock = MemoryClock()
        self.store = MemoryDatastore(self.clock)
        self.deadline = self.clock.deadline(60)
        self.work = Work(self.store, self.clock, RecordingLog(), self.deadline)
        self.store.create(IPPoolKey("p"), Pool(Metadata("p"), str(RANGE)), self.deadline)
        self.store.create(BlockKey(BLOCK), new_block(BLOCK, "host:n", None, 1), self.deadline)

    def split(self, number=2):
        return split_pool(self.store, named_pool(self.store, "p", None, self.deadline), number, self.deadline)

    def pools(self):
        return {one.record.metadata.name: one.record.cidr_text for one in self.store.list(IPPools(), self.deadline)}


@pytest.fixture
def world():
    return World()


SPLIT = {"split-p-0": "10.0.0.0/25", "split-p-1": "10.0.0.128/25"}


def test_the_children_take_the_pools_place(world):
    assert [one.cidr_text for one in world.split()] == list(SPLIT.values())
    assert world.pools() == SPLIT
    assert world.store.get(BlockKey(BLOCK), world.deadline) is not None


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_whatever_dies_leaves_every_address_in_a_pool_and_is_gone_on_with(world, writes):
    done = []

    def die(verb, key):
        if verb != "fetch":
            if len(done) == writes:
                raise Unavailable("dead")
            done.append(key)

    world.store.before = die
    with pytest.raises(Unavailable):
        world.split()
    world.store.before = lambda _verb, _key: None
    assert world.pools()["p"] == str(RANGE)
    world.split()
    assert world.pools() == SPLIT


def test_another_pool_of_a_childs_name_is_left_alone(world):
    world.store.create(IPPoolKey("split-p-1"), Pool(Metadata("split-p-1"), "10.9.0.0/24"), world.deadline)
    with pytest.raises(AlreadyExists):
        world.split()
    assert world.pools()["p"] == str(RANGE)


def test_a_child_that_goes_while_it_is_looked_at_is_an_error(world):
    world.store.create(IPPoolKey("split-p-1"), Pool(Metadata("split-p-1"), "10.0.0.128/25"), world.deadline)

    def rival(verb, key):
        if verb == "fetch" and key == IPPoolKey("split-p-1"):
            world.store.delete(IPPoolKey("split-p-1"), None, world.deadline)

    world.store.before = rival
    with pytest.raises(AlreadyExists):
        world.split()


@pytest.mark.parametrize(
    ("name", "cidr", "found"),
    [
        ("p", None, True),
        ("p", RANGE, True),
        ("", RANGE, True),
        ("p", BLOCK, False),
        ("q", None, False),
        ("", BLOCK, False),
    ],
)
def test_a_pool_goes_by_name_or_range(world, name, cidr, found):
    if found:
        assert named_pool(world.store, name, cidr, world.deadline).key == IPPoolKey("p")
        return
    with pytest.raises(Missing, match="IPPool"):
        named_pool(world.store, name, cidr, world.deadline)


def test_a_datastore_is_locked_and_unlocked(world):
    with pytest.raises(BadConfiguration, match="`tortie init` makes it"):
        set_ready(world.work, ready=False)
    require_locked(world.store, world.deadline)
    about = ClusterInformation(Metadata("default"), cluster_guid="g", datastore_ready=True)
    world.store.create(CLUSTER, about, world.deadline)
    with pytest.raises(NotLocked, match="run `tortie datastore migrate lock` first"):
        require_locked(world.store, world.deadline)
    set_ready(world.work, ready=False)
    set_ready(world.work, ready=False)
    require_locked(world.store, world.deadline)
    assert world.store.get(CLUSTER, world.deadline).record.cluster_guid == "g"
    set_ready(world.work, ready=True)
    assert world.store.get(CLUSTER, world.deadline).record.datastore_ready is True
