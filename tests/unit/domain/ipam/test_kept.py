"""What the record of an address says that is kept for a name (F01)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Attribute, Owner, new_block
from domain.ipam.kept import (
    KeptName,
    in_use,
    is_kept,
    is_over,
    is_unused,
    kept_for,
    kept_in,
    last_node,
    left_alone,
    left_by,
    over_in,
)
from domain.ipam.release import Release
from domain.moment import SECOND, go_string

NAME = KeptName("shop", "web-0")
HANDLE = NAME.handle("net")
NOW = 1_800_000_000 * SECOND
POD = {"namespace": "shop", "node": "node-a", "pod": "web-0", "timestamp": go_string(NOW)}
USED = Attribute(HANDLE, {**POD, **in_use(NAME, "c1", "u1", "StatefulSet/web s1", 60)})
OTHER = Attribute("net.c9", POD)
BLOCK = new_block(Cidr.parse("10.0.0.0/30"), Owner(HOST, "node-a"), None, 7).take((1,), USED).take((2,), OTHER)


def test_the_handle_is_made_of_network_namespace_and_name():
    assert (HANDLE, str(NAME)) == ("net.kept.shop.web-0", "shop/web-0")


def test_while_a_pod_has_it_the_pods_sandbox_and_owner_stand_with_it():
    assert USED.secondary == {
        **POD,
        "kept-as": "shop/web-0",
        "kept-by": "c1",
        "kept-seconds": "60",
        "kept-owner": "StatefulSet/web s1",
        "kept-uid": "u1",
    }
    assert in_use(NAME, "c1", "", "", 60) == {"kept-as": "shop/web-0", "kept-by": "c1", "kept-seconds": "60"}
    assert is_kept(USED)
    assert not is_unused(USED)
    assert not is_over(USED, NOW * 2)


def test_without_a_pod_neither_pod_nor_node_are_named_so_that_nobody_takes_it_for_leaked():
    left = left_alone(USED, NOW)
    assert left == Attribute(
        HANDLE,
        {
            "kept-as": "shop/web-0",
            "kept-seconds": "60",
            "kept-owner": "StatefulSet/web s1",
            "kept-on": "node-a",
            "kept-until": go_string(NOW + 60 * SECOND),
        },
    )
    assert is_kept(left)
    assert is_unused(left)
    assert (last_node(USED), last_node(left), last_node(Attribute("h", {}))) == ("node-a", "node-a", "")
    assert "kept-on" not in left_alone(Attribute(HANDLE, {"kept-as": "shop/web-0"}), NOW).secondary


def test_its_time_is_over_when_it_is_not_before():
    left = left_alone(USED, NOW)
    assert [is_over(left, NOW + seconds * SECOND) for seconds in (0, 59, 60, 61)] == [False, False, True, True]
    assert is_over(left.replace(secondary={"kept-as": "shop/web-0", "kept-until": "soon"}), NOW)


@pytest.mark.parametrize("text", ["", "-1", "ten", "²", "9" * 10])
def test_a_time_that_cannot_be_read_is_a_day(text):
    broken = USED.replace(secondary={**USED.secondary, "kept-seconds": text})
    assert left_alone(broken, NOW).secondary["kept-until"] == go_string(NOW + 86_400 * SECOND)


def test_a_name_without_pod_and_sandbox_is_unused_one_with_either_is_not():
    assert is_unused(Attribute("h", {"kept-as": "shop/web-0"}))
    assert not is_unused(Attribute("h", {"kept-as": "shop/web-0", "pod": "web-0"}))
    assert not is_unused(Attribute("h", {"kept-as": "shop/web-0", "kept-by": "c1"}))
    assert not is_unused(OTHER)


def test_a_sandbox_leaves_what_it_has_and_no_more():
    left = left_by(BLOCK, "c1", NOW)
    assert left.is_consistent()
    assert [left.holder(ordinal) for ordinal in range(4)] == [None, left_alone(USED, NOW), OTHER, None]
    assert left_by(BLOCK, "c2", NOW) == BLOCK
    assert list(kept_in(BLOCK)) == [(1, USED)]
    assert list(kept_in(new_block(BLOCK.cidr, Owner(HOST, "node-a"), None, 7))) == []


def test_two_addresses_of_a_name_in_one_block_do_not_share_what_becomes_of_them():
    both = BLOCK.take((3,), USED.replace(secondary={**USED.secondary, "kept-by": "c2"}))
    left = left_by(left_by(both, "c1", NOW), "c2", NOW)
    assert left.holder(1) == left.holder(3)
    again = left.give(1, USED)
    assert (again.holder(1), again.holder(3)) == (USED, left_alone(USED, NOW))


def test_what_is_given_up_names_the_allocation():
    left = left_by(BLOCK, "c1", NOW).replace(sequence=8)
    assert over_in([left], NOW) == []
    assert over_in([BLOCK, left], NOW + 60 * SECOND) == [Release(left.cidr.at(1), HANDLE, 7)]
    assert kept_for([left], "shop/web-0") == over_in([left], NOW + 60 * SECOND)
    assert kept_for([left], "shop/web-1") == []
    again = left.give(1, left.holder(1))
    assert over_in([again], NOW + 60 * SECOND) == [Release(left.cidr.at(1), HANDLE, 8)]
