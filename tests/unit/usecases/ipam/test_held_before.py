"""Holders that may have only so many addresses (spec: ipam 9; LIB-039 to LIB-041), with rivals at every turn."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, Handle
from domain.ipam.errors import StillContended
from ports.datastore import BlockKey, HandleKey
from ports.errors import Unavailable
from usecases.ipam.auto_assign import auto_assign
from usecases.ipam.count_handle import increment
from usecases.ipam.free_addresses import free_handle
from usecases.ipam.held_before import adopt, adopt_held
from usecases.ipam.take_addresses import Want, take_addresses
from usecases.ipam.work import MAX_TRIES

H = "net1.c1"
TEXT = "10.244.0.128/26"
BLOCK, HANDLE = BlockKey(Cidr.parse(TEXT)), HandleKey(H)


def families(node, v4: int = 1, limit: int = 1):
    return node.undoing(lambda undo: auto_assign(node.work(), node.request(H, v4, max_per_handle=limit), undo))


def held(node, v4: int = 1, limit: int = 1) -> list[str]:
    """What an adopting call is answered."""
    return [str(one.address) for one in adopt_held(node.work(), node.request(H, v4, max_per_handle=limit), 4, [])]


def test_a_handle_with_room_has_nothing_to_answer(node):
    assert held(node) == []
    families(node, limit=2)
    assert held(node, limit=2) == []


def test_an_answer_that_was_given_before_gets_a_new_sequence_number_and_time(node):
    (family,) = families(node)
    before = node.block(TEXT)
    [again] = adopt_held(node.work(), node.request(H, max_per_handle=1), 4, [])
    after = node.block(TEXT)
    assert (again.address, again.held_before) == (family.allocations[0].address, True)
    assert again.sequence == after.sequences[again.ordinal] == before.sequence
    assert after.sequence == before.sequence + 1
    owner, former = after.holder(again.ordinal), before.holder(again.ordinal)
    assert owner.secondary.keys() == former.secondary.keys()
    assert owner.secondary["node"] == former.secondary["node"]
    assert owner.secondary["timestamp"] != former.secondary["timestamp"]


def test_who_moves_in_beside_a_holder_stays(node):
    """The target of a live migration."""
    attribute = Attribute(H, {"pod": "a"}, {"pod": "b"})
    node.put(BLOCK, node.add_block(TEXT).record.take((0,), attribute))
    node.put(HANDLE, Handle({BLOCK.cidr: 1}))
    assert held(node) == ["10.244.0.128"]
    assert node.block(TEXT).holder(0) == attribute


def test_an_address_of_another_holder_is_nobodys_answer(node):
    (family,) = families(node)
    assert adopt(node.work(), "net1.c2", family.allocations[0]) is None
    assert adopt(node.work(), H, family.allocations[0].replace(ordinal=9)) is None
    node.remove(BLOCK)
    assert adopt(node.work(), H, family.allocations[0]) is None


def test_what_the_call_has_taken_itself_is_part_of_the_answer(node):
    """Two addresses wanted: one was taken, and then a rival took the other one that the handle may have."""
    request = node.request(H, 2, max_per_handle=2)
    mine = take_addresses(node.work(), node.add_block(TEXT), Want(request, 1, (), 0, affine=True))
    families(node, limit=2)
    [other] = adopt_held(node.work(), request, 4, mine)
    assert other.address != mine[0].address
    assert node.counts() == {H: {TEXT: 2}}


def test_counts_of_the_other_ip_version_are_left_alone(node):
    six = "fd00:10:244::80/122"
    node.put(HANDLE, Handle({Cidr.parse(six): 1, BLOCK.cidr: 1}))
    assert held(node) == []
    assert node.counts() == {H: {six: 1}}


def test_an_address_that_another_call_takes_while_counts_are_settled_is_the_answer(node):
    """It had counted it already, and its block write comes before ours."""
    stored = node.add_block(TEXT)
    increment(node.work(), H, BLOCK.cidr, 1)
    allocation = stored.record.take((5,), Attribute(H, {}))
    with node.rival("update", BlockKey, lambda _key: node.put(BLOCK, allocation)):
        assert held(node) == ["10.244.0.133"]
    assert node.counts() == {H: {TEXT: 1}}


def test_a_call_whose_answer_is_lost_leaves_an_address_that_is_somebody_elses_by_then_counted(node):
    """The rival is answered the address before the first call has looked again: to that one it is not its own."""
    node.add_block(TEXT)
    rivals = []

    def lost(verb, key) -> None:
        if (verb, key, rivals) == ("update", BLOCK, []):
            rivals.append(True)
            rivals.append(held(node))
            raise Unavailable("gone")

    node.datastore.after = lost
    with pytest.raises(Unavailable):
        families(node)
    assert rivals[1] == ["10.244.0.128"]
    assert node.holders() == {"10.244.0.128": H}
    assert node.counts() == {H: {TEXT: 1}}


def test_whoever_loses_every_race_for_the_answer_gives_up(node):
    families(node)

    def move_on(_key) -> None:
        free_handle(node.work(), H)
        families(node)

    with node.rival("update", BlockKey, move_on, times=MAX_TRIES), pytest.raises(StillContended):
        held(node)


def test_whoever_finds_room_and_loses_it_every_time_gives_up(node):
    """Each time a rival takes the handle's last place, and is gone when we look."""

    def come(_key) -> None:
        node.put(HANDLE, Handle({BLOCK.cidr: 1}))

    def go(_key) -> None:
        if node.get(HANDLE) is not None:
            node.remove(HANDLE)

    reads = []

    def hook(verb, key) -> None:
        if key == HANDLE:
            reads.append(verb)
            if verb == "create":
                come(key)
            elif reads[-2:-1] != ["create"]:
                go(key)

    node.datastore.before = hook
    with pytest.raises(StillContended) as caught:
        families(node)
    node.heal()
    assert caught.value.details == f"last contended record: {HANDLE}"
    assert reads.count("create") == MAX_TRIES
    assert node.holders() == {}
