"""Where a datastore changes several records at once, a handle and a block are one write (spec: ipam 9, 12).

What random schedules show of it in general (tests/unit/machines, tests/mutants), case by case.
"""

from __future__ import annotations

import pytest

from domain.cni.netconf import IpamSettings
from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, Handle
from domain.ipam.errors import HandleFull
from domain.ipam.pools import Pool
from domain.ipam.request import Allocation
from domain.resource import Metadata
from ports.datastore import AllocationConfigKey, BlockKey, HandleKey, IPPoolKey
from ports.errors import Unavailable
from usecases.ipam.count_handle import Counting, count_and_write
from usecases.ipam.free_addresses import free_handle
from usecases.ipam.take_addresses import Want, take_addresses
from usecases.release_addresses import expect_release
from worlds.one_node import NEVER, OWNER, OneNode

ONE, TWO = "10.244.0.0/30", "10.244.0.4/30"
KEY = BlockKey(Cidr.parse(ONE))
H = "net1.c1"
BOTH = IpamSettings(type="calico-ipam", assign_ipv4="true", assign_ipv6="true")


@pytest.fixture
def node():
    node = OneNode()
    node.datastore.writes_together = True
    return node


def take(node, work=None) -> tuple[Allocation, ...]:
    stored = node.datastore.get(KEY, NEVER)
    return take_addresses(work or node.work(), stored, Want(node.request(), 1, (), 0, affine=True))


def written(node) -> list[tuple[str, str]]:
    """From now on, each write and what it is about."""
    seen: list[tuple[str, str]] = []
    node.datastore.before = lambda verb, key: seen.append((verb, str(key))) if verb != "fetch" else None
    return seen


def once(verb: str, act):
    """A hook that acts the first time, and so does not for what follows."""
    left = [act]

    def hook(done: str, _key: object) -> None:
        if done == verb and left:
            left.pop()()

    return hook


def away() -> None:
    raise Unavailable("the datastore is away")


# --- taking ----------------------------------------------------------------------------------------------------------


def test_an_address_is_counted_and_written_at_once(node):
    before = node.add_block(ONE).record
    seen = written(node)
    (allocation,) = take(node)
    assert seen == [("write", str(HandleKey(H))), ("write", str(KEY))]
    assert node.datastore.revision_of(HandleKey(H)) == node.datastore.revision_of(KEY)
    assert (node.holders(), node.counts()) == ({"10.244.0.0": H}, {H: {ONE: 1}})
    assert (node.block(ONE).sequence, allocation.sequence) == (before.sequence + 1, before.sequence)


def test_the_second_ip_version_counts_up_what_the_first_has_written(node):
    node.assign("c2", ipam=BOTH)  # so that there are blocks
    seen = written(node)
    node.assign("c1", ipam=BOTH)
    assert [verb for verb, _ in seen] == ["write"] * 4
    assert node.counts_match()


def test_a_handle_that_is_there_already_is_counted_up(node):
    node.add_block(ONE, OWNER, (H, 1))
    node.put(HandleKey(H), Handle({KEY.cidr: 1}))
    seen = written(node)
    take(node)
    assert [verb for verb, _ in seen] == ["write", "write", "create", "update", "update"]
    assert (node.holders(), node.counts()) == ({"10.244.0.0": H, "10.244.0.1": H}, {H: {ONE: 2}})


def test_a_block_that_a_rival_has_changed_is_looked_at_again(node):
    node.add_block(ONE)
    node.datastore.before = once("write", lambda: node.put(KEY, node.block(ONE).take((0,), Attribute("net1.r", {}))))
    (allocation,) = take(node)
    assert str(allocation.address) == "10.244.0.1"
    assert node.counts() == {H: {ONE: 1}}


def test_a_handle_that_was_full_when_this_call_wrote_it_is_looked_at_again(node):
    """Another call has released it since."""
    node.add_block(ONE)
    work = node.work()
    found = node.datastore.get(KEY, NEVER)
    counting = Counting(H, 1, limit=1)
    count_and_write(work, found, found.record.take((0,), Attribute(H, {})), counting)
    free_handle(node.work(), H)
    want = Want(node.request(max_per_handle=1), 1, (), 0, affine=True)
    with pytest.raises(HandleFull):  # as a rival's would be; whoever gets that looks again
        take_addresses(work, node.datastore.get(KEY, NEVER), want)
    assert take_addresses(work, node.datastore.get(KEY, NEVER), want)
    assert node.counts_match()


def test_a_lost_answer_is_found_in_the_block(node):
    node.add_block(ONE)
    node.datastore.after = once("write", away)
    (allocation,) = take(node)
    assert node.holders() == {str(allocation.address): H}
    assert node.counts() == {H: {ONE: 1}}


def test_a_write_that_may_be_under_way_still_is_outdone(node):
    """What it was to be written over is not there any more."""
    stored = node.add_block(ONE)
    node.datastore.before = once("write", away)
    with pytest.raises(Unavailable):
        take(node)
    assert node.block(ONE) == stored.record.replace(sequence=stored.record.sequence + 1)
    assert node.datastore.revision_of(KEY) != stored.revision
    assert (node.holders(), node.counts()) == ({}, {})


@pytest.mark.parametrize("move", [lambda node: node.touch(KEY), lambda node: node.remove(KEY)])
def test_whoever_else_changes_the_block_outdoes_it_too(node, move):
    node.add_block(ONE)
    first, second = once("write", away), once("update", lambda: move(node))
    node.datastore.before = lambda verb, key: (first(verb, key), second(verb, key))
    with pytest.raises(Unavailable):
        take(node)
    assert (node.holders(), node.counts()) == ({}, {})


# --- freeing ---------------------------------------------------------------------------------------------------------


def hold(node, *blocks: tuple[str, int], counted: dict[str, int] | None = None) -> None:
    for text, count in blocks:
        node.add_block(text, OWNER, *([(H, count)] if count else []))
    counts = dict(blocks) if counted is None else counted
    node.put(HandleKey(H), Handle({Cidr.parse(text): count for text, count in counts.items()}))


def test_all_that_a_handle_holds_goes_with_it_at_once(node):
    hold(node, (ONE, 2), (TWO, 1))
    seen = written(node)
    assert free_handle(node.work(), H)
    assert [verb for verb, _ in seen] == ["write"] * 3
    assert (node.holders(), node.counts(), node.blocks()) == ({}, {}, [ONE, TWO])


def test_an_empty_block_that_no_node_owns_goes_too(node):
    node.add_block(ONE, None, (H, 1))
    node.put(HandleKey(H), Handle({KEY.cidr: 1}))
    seen = written(node)
    free_handle(node.work(), H)
    assert [verb for verb, _ in seen] == ["write"] * 2
    assert (node.blocks(), node.counts()) == ([], {})


@pytest.mark.parametrize("held", [1, 0])
def test_a_block_is_given_up_if_it_gets_empty_where_its_pool_does_not_select_the_node_any_more(node, held):
    hold(node, (ONE, held), counted={ONE: 1})
    pool = node.get(IPPoolKey("pool0"))
    node.put(IPPoolKey("pool0"), Pool(Metadata("pool0"), pool.cidr_text, node_selector="rack == 'other'"))
    free_handle(node.work(), H)
    assert (node.blocks(), node.counts()) == ([] if held else [ONE], {})


@pytest.mark.parametrize("key", [KEY, HandleKey(H)])
def test_what_changes_meanwhile_is_freed_step_by_step(node, key):
    hold(node, (ONE, 1))
    seen = written(node)
    rival, note = once("write", lambda: node.touch(key)), node.datastore.before
    node.datastore.before = lambda verb, key: (note(verb, key), rival(verb, key))
    free_handle(node.work(), H)
    assert "update" in [verb for verb, _ in seen]
    assert (node.holders(), node.counts()) == ({}, {})


def test_a_block_that_is_gone_and_one_that_is_damaged_do_not_keep_the_other(node):
    hold(node, (ONE, 1), counted={ONE: 1, TWO: 1})
    free_handle(node.work(), H)
    assert (node.holders(), node.counts()) == ({}, {})
    hold(node, (TWO, 1), counted={ONE: 1, TWO: 1})
    node.datastore.load({"/calico/ipam/v2/assignment/ipv4/block/10.244.0.0-30": "?"})
    free_handle(node.work(), H)
    assert node.counts() == {H: {ONE: 1}}
    assert node.block(TWO).is_empty()


def test_a_handle_of_many_blocks_is_freed_step_by_step(node):
    """A store takes no write of any size."""
    blocks = [(str(Cidr.parse(f"10.244.0.{4 * number}/30")), 1) for number in range(9)]
    hold(node, *blocks[:8])
    seen = written(node)
    free_handle(node.work(), H)
    assert [verb for verb, _ in seen] == ["write"] * 9
    for text, _ in blocks[:8]:
        node.remove(BlockKey(Cidr.parse(text)))
    hold(node, *blocks)
    seen = written(node)
    free_handle(node.work(), H)
    assert [verb for verb, _ in seen] == ["update", "update"] * 8 + ["update", "delete"]
    assert (node.holders(), node.counts()) == ({}, {})


# --- a DEL that has read before it had the lock -----------------------------------------------------------------------


def given_up(node, **fields):
    """An ADD that goes on although the runtime has sent DEL: it has the lock after the DEL has read the handle."""
    node.datastore.brings_along = True
    late, handle = once("fetch", lambda: node.assign("c1", **fields)), str(HandleKey(H))
    node.datastore.after = lambda verb, key: late(verb, key) if str(key) == handle else None


def test_a_del_finds_what_has_been_taken_since_it_asked(node):
    given_up(node)
    node.release("c1")
    assert (node.holders(), node.counts()) == ({}, {})


def test_a_del_frees_what_has_been_taken_of_another_block_since_it_asked(node):
    node.assign("c1")
    given_up(node, ipam=BOTH)
    node.release("c1")
    assert (node.holders(), node.counts()) == ({}, {})


@pytest.mark.parametrize(("notes", "expected"), [("", [HandleKey(H)]), ("some", [HandleKey(H)]), (None, [])])
def test_where_lists_are_dear_a_handle_is_asked_for_early_only_if_notes_can_tell_of_it(node, notes, expected):
    node.datastore.lists_in_one_go, node.lock.left, along = False, notes, []
    node.datastore.expect = lambda *needs: along.extend(needs)
    expect_release(node.call("DEL"), node.runtime())
    assert along == [AllocationConfigKey(), *expected]
