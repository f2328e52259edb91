"""Blocks as values: taking, releasing, cooling down (LIB-214 to LIB-241; spec: ipam 6, 9, 12, 19.3–19.5)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.ipam.address import Address, Cidr
from domain.ipam.block import WINDOWS_HANDLE, Attribute, Block, HostReservedAttr, Owner, new_block
from domain.moment import SECOND, rfc3339
from strategies import attributes, blocks

CIDR = Cidr.parse("100.64.0.0/24")
NOW = 1_795_957_572_345_678_900
S = NOW  # the sequence number of a new block is its claim's time


def fresh(cidr: Cidr = CIDR) -> Block:
    return new_block(cidr, Owner("host", "node1"), rfc3339(NOW), S)


def held(handle: str | None, **secondary: str) -> Attribute:
    return Attribute(handle, secondary)


def released(instant: int) -> Attribute:
    return Attribute(None, {}, released_at=rfc3339(instant))


def with_holders(*holders: tuple[Attribute, tuple[int, ...]]) -> Block:
    block = fresh()
    for attribute, ordinals in holders:
        block = block.take(ordinals, attribute)
    assert block.is_consistent()
    return block


def in_use(block: Block) -> list[str]:
    return [str(block.cidr.at(at)) for at, index in enumerate(block.allocations) if index is not None]


# --- a new block -----------------------------------------------------------------------------------------------------


def test_a_new_block_is_all_free_in_ascending_order():
    block = fresh()
    assert block.is_consistent()
    assert block.unallocated == tuple(range(256))
    assert (block.affinity, block.claimed_at, block.sequence) == ("host:node1", rfc3339(NOW), S)
    assert (block.attributes, block.sequences) == ((), {})


@pytest.mark.parametrize(("start", "end"), [(3, 1), (0, 2), (2, 0)])
def test_a_new_block_has_what_its_host_keeps_at_both_ends(start, end):
    """LIB-209: no sequence numbers, and it counts as empty."""
    block = new_block(CIDR, "host:win", None, S, HostReservedAttr(start, end, note="n"))
    kept = {*range(start), *range(256 - end, 256)}
    assert block.is_consistent()
    assert block.attributes == (Attribute(WINDOWS_HANDLE, {"note": "n"}),)
    assert {ordinal for ordinal in range(256) if block.allocations[ordinal] is not None} == kept
    assert (block.sequence, block.sequences) == (S, {})
    assert block.is_empty()
    assert block.attributes[0].is_hosts_own


def test_an_empty_block_is_empty_and_nothing_in_it_is_in_use():
    """LIB-214, LIB-217."""
    assert fresh().is_empty()
    assert in_use(fresh()) == []


def test_reservations_of_windows_hosts_leave_a_block_empty():
    """LIB-215, K04; the handle is compared in lower case."""
    assert with_holders((held(WINDOWS_HANDLE), (255,))).is_empty()
    assert with_holders((held("Windows-Reserved-IPAM-Handle"), (0, 1, 2, 255))).is_empty()


def test_a_block_with_a_holder_is_not_empty():
    """LIB-216."""
    assert not with_holders((held("alloc"), (32,))).is_empty()


def test_a_block_with_an_address_in_cooldown_is_not_empty():
    assert not with_holders((released(NOW), (32,))).is_empty()


def test_addresses_in_use_are_those_with_a_holder():
    """LIB-218."""
    block = with_holders((held("a"), (10,)), (held("b"), (20,)))
    assert in_use(block) == ["100.64.0.10", "100.64.0.20"]
    assert block.holder(10) == held("a")
    assert block.holder(11) is None


# --- ordinals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cidr", "address", "ordinal"),
    [
        ("192.168.166.128/26", "192.168.166.128", 0),
        ("192.168.166.128/26", "192.168.166.141", 13),
        ("192.168.166.128/26", "192.168.166.191", 63),
        ("fd00:10:244::40/122", "fd00:10:244::40", 0),
        ("fd00:10:244::40/122", "fd00:10:244::7f", 63),
    ],
)
def test_an_ordinal_is_the_distance_from_the_first_address(cidr, address, ordinal):
    """spec: ipam 19.3."""
    block = fresh(Cidr.parse(cidr))
    assert block.ordinal(Address.parse(address)) == ordinal
    assert str(block.cidr.at(ordinal)) == address


def test_an_address_outside_has_no_ordinal():
    with pytest.raises(ValueError, match=r"IP 10\.0\.0\.70 not in block 10\.0\.0\.0/26"):
        fresh(Cidr.parse("10.0.0.0/26")).ordinal(Address.parse("10.0.0.70"))


# --- free addresses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reserved", "taken", "count"),
    [
        pytest.param((), (10, 20), 254, id="LIB-219"),
        pytest.param(("100.64.0.128/25",), (10, 20, 210, 220), 126, id="LIB-220"),
        pytest.param(("100.64.0.128/24",), (), 0, id="LIB-221"),
        pytest.param(("100.65.0.0/24", "fd00::/8"), (10,), 255, id="reserved elsewhere"),
    ],
)
def test_free_addresses_are_neither_held_nor_reserved(reserved, taken, count):
    block = with_holders((held("a"), taken)) if taken else fresh()
    assert len(block.free(tuple(Cidr.parse(text) for text in reserved))) == count


def test_reserved_ordinals_are_passed_over_and_keep_their_place_in_the_queue():
    block = fresh().take((0,), held("a")).release((0,), NOW, 0)
    assert block.unallocated[-1] == 0
    assert block.free((Cidr.parse("100.64.0.0/25"),)) == tuple(range(128, 256))
    assert block.free((Cidr.parse("100.64.0.128/25"),)) == (*range(1, 128), 0)


# --- taking ----------------------------------------------------------------------------------------------------------


def test_what_one_holder_takes_shares_one_attribute():
    block = fresh().take((3, 5), held("lucky", node="n")).take((7,), held("lucky", node="n"))
    assert block.attributes == (held("lucky", node="n"),)
    assert block.held_by("lucky") == (3, 5, 7)
    assert block.take((8,), held("lucky", node="other")).attributes[1] == held("lucky", node="other")


def test_handles_find_their_addresses():
    """LIB-225."""
    block = with_holders(
        (held("singleton"), (3,)),
        (held("tens"), (10, 20)),
        (held("thirties", n="1"), (33,)),
        (held("thirties", n="2"), (34,)),
    )
    found = {handle: block.held_by(handle) for handle in ("none", "singleton", "tens", "thirties")}
    assert found == {"none": (), "singleton": (3,), "tens": (10, 20), "thirties": (33, 34)}


def test_an_old_handle_counts_without_what_follows_its_carriage_return():
    assert with_holders((held("net1.c1\r\n"), (1,))).held_by("net1.c1") == (1,)
    assert held(None).holder is None


def test_an_address_has_the_attributes_that_were_stored():
    """LIB-226, LIB-227."""
    attribute = Attribute("h", {"pod": "p"}, {"pod": "q"})
    block = with_holders((attribute, (9,)))
    assert block.holder(8) is None
    assert block.holder(9) == attribute


# --- releasing -------------------------------------------------------------------------------------------------------


def test_a_released_address_is_free_and_its_attribute_gone():
    """LIB-228, LIB-235: the ordinal goes to the tail; others are untouched."""
    block = with_holders((held("unlucky"), (13,)), (held("fifteen"), (15,))).release((13,), NOW, 0)
    assert block.is_consistent()
    assert block.unallocated[-1] == 13
    assert block.attributes == (held("fifteen"),)
    assert block.held_by("fifteen") == (15,)
    assert block.sequences == {15: S}


def test_an_attribute_stays_while_one_of_its_addresses_does():
    """LIB-229."""
    block = with_holders((held("lucky"), (13, 14, 15))).release((14,), NOW, 0)
    assert block.held_by("lucky") == (13, 15)
    assert block.attributes == (held("lucky"),)


@pytest.mark.parametrize(
    "holders",
    [
        pytest.param([(held("h", n="1"), (7,)), (held("h", n="2"), (13,)), (held("h", n="3"), (9,))], id="LIB-237"),
        pytest.param([(held("h"), (13, 7, 9))], id="LIB-230 LIB-238"),
    ],
)
def test_all_addresses_of_a_handle_go_to_the_tail_in_ascending_order(holders):
    block = with_holders(*holders)
    after = block.release(block.held_by("h"), NOW, 0)
    assert after.is_consistent()
    assert after.attributes == ()
    assert after.unallocated[-3:] == (7, 9, 13)


def test_releasing_nothing_changes_nothing():
    """LIB-234."""
    block = with_holders((held("a"), (1,)))
    assert block.release(block.held_by("unknown"), NOW, 0) == block
    assert block.release((), NOW, 30) == block


def test_the_sequence_numbers_of_the_specification():
    """spec: ipam 19.4: first pod, second pod, release of the first, third pod."""

    def write(block: Block) -> Block:
        return block.replace(sequence=block.sequence + 1)

    block = fresh(Cidr.parse("192.168.166.128/26"))
    block = write(block.take(block.free(())[:1], held("p1")))
    assert (block.sequences, block.sequence) == ({0: S}, S + 1)
    block = write(block.take(block.free(())[:1], held("p2")))
    assert (block.sequences, block.sequence) == ({0: S, 1: S + 1}, S + 2)
    block = write(block.release((0,), NOW, 0))
    assert (block.sequences, block.allocations[0], block.sequence) == ({1: S + 1}, None, S + 3)
    assert block.unallocated == (*range(2, 64), 0)
    assert block.attributes == (held("p2"),)
    assert block.free(())[0] == 2


# --- cooldown --------------------------------------------------------------------------------------------------------


def test_with_a_cooldown_an_address_stays_taken_without_a_handle():
    """spec: ipam 19.5."""
    block = fresh().take((0,), held("a")).replace(sequence=S + 1)
    cooling = block.release((0,), NOW, 30)
    assert cooling.holder(0) == released(NOW)
    assert cooling.sequences == {0: S + 1}
    assert cooling.held_by("a") == ()
    assert cooling.collect(NOW + 20 * SECOND, 30) == cooling
    assert cooling.collect(NOW + 31 * SECOND, 30).unallocated == (*range(1, 256), 0)


def test_the_cooldown_must_be_wholly_over():
    block = fresh().take((0,), released(NOW // SECOND * SECOND))
    at = NOW // SECOND * SECOND + 30 * SECOND
    assert block.collect(at, 30).holder(0) is not None
    assert block.collect(at + 1, 30).holder(0) is None


def test_an_address_released_by_a_clock_that_was_set_back_since_is_not_kept_until_then():
    block = fresh().take((0,), held("a"))
    ahead = block.release([0], NOW + 365 * 86_400 * SECOND, 30)
    assert ahead.collect(NOW, 30).holder(0) is None
    assert 0 in ahead.collect(NOW, 30).unallocated
    nodes_differ = block.release([0], NOW + 3600 * SECOND, 30)
    assert nodes_differ.collect(NOW, 30) == nodes_differ


def test_collecting_an_empty_block_changes_nothing():
    """LIB-239."""
    assert fresh().collect(NOW, 30) == fresh()


def test_attributes_that_nobody_refers_to_are_dropped():
    """LIB-240."""
    kept = with_holders((held("kept"), (4,)))
    littered = kept.replace(
        attributes=(held("x"), held("kept"), held("y")),
        allocations=tuple(None if index is None else 1 for index in kept.allocations),
    )
    assert not littered.is_consistent()
    assert littered.collect(NOW, 30) == kept


def test_only_what_has_cooled_down_is_freed():
    """LIB-241."""
    block = with_holders(
        (released(NOW - 60 * SECOND), (31, 33)),
        (released(NOW + 60 * SECOND), (42, 44)),
        (held("live"), (52, 54)),
    )
    after = block.collect(NOW, 30)
    assert after.is_consistent()
    assert [at for at, index in enumerate(after.allocations) if index is not None] == [42, 44, 52, 54]
    assert len(after.unallocated) == 252
    assert after.unallocated[-2:] == (31, 33)


# --- always ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"allocations": (None,) * 255}, id="an ordinal is missing"),
        pytest.param({"unallocated": (0, *range(255))}, id="an ordinal is free twice"),
        pytest.param({"unallocated": tuple(range(255))}, id="an ordinal is neither free nor held"),
        pytest.param({"allocations": (0, *[None] * 255)}, id="an allocation without attribute"),
        pytest.param({"attributes": (held("x"),)}, id="an attribute without allocation"),
    ],
)
def test_an_inconsistent_block_is_recognised(broken):
    assert not fresh().replace(**broken).is_consistent()


@given(blocks(max_size=8), attributes(), st.data())
@settings(max_examples=60, deadline=None)
def test_every_operation_keeps_a_block_consistent_and_touches_only_what_it_names(block, attribute, data):
    cooldown = data.draw(st.sampled_from([0, 30]))
    now = data.draw(st.integers(0, 2_100_000_000)) * SECOND
    wanted = data.draw(st.integers(0, 3))
    chosen = block.free(())[:wanted]
    taken = block.take(chosen, attribute) if chosen else block
    assert taken.is_consistent()
    assert all(taken.holder(at) == attribute for at in chosen)
    others = [at for at in range(block.cidr.size) if at not in chosen]
    assert [taken.holder(at) for at in others] == [block.holder(at) for at in others]

    busy = [at for at, index in enumerate(taken.allocations) if index is not None]
    going = data.draw(st.lists(st.sampled_from(busy), unique=True)) if busy else []
    gone = taken.release(going, now, cooldown)
    assert gone.is_consistent()
    assert all((gone.holder(at) is None) == (cooldown == 0) for at in going)
    staying = [at for at in range(block.cidr.size) if at not in going]
    assert [gone.holder(at) for at in staying] == [taken.holder(at) for at in staying]

    collected = gone.collect(now, cooldown)
    assert collected.is_consistent()
    assert collected.unallocated[: len(gone.unallocated)] == gone.unallocated
    assert collected.collect(now, cooldown) == collected
