"""The shortest form of a list of CIDRs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Cidr
from domain.ipam.utilisation import outermost


@pytest.mark.parametrize(
    ("given_texts", "left"),
    [
        pytest.param([], [], id="LIB-247"),
        pytest.param(["0.0.0.0/0", "10.0.0.0/8"], ["0.0.0.0/0"], id="LIB-248"),
        pytest.param(["::/0", "f0f0::/16"], ["::/0"], id="LIB-249"),
        pytest.param(
            ["10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25", "11.0.0.0/8"], ["10.0.0.0/24", "11.0.0.0/8"], id="LIB-250"
        ),
        pytest.param(
            ["10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25", "11.0.0.0/24"], ["10.0.0.0/24", "11.0.0.0/24"], id="LIB-251"
        ),
        pytest.param(
            ["11.0.0.0/25", "10.0.0.0/24", "10.0.0.0/25", "10.0.0.0/24", "10.0.0.128/25", "11.0.0.0/25", "11.0.0.0/8"],
            ["10.0.0.0/24", "11.0.0.0/8"],
            id="LIB-252",
        ),
        pytest.param(["10.0.0.7/24", "fd00::1/64", "10.0.0.0/25"], ["10.0.0.0/24", "fd00::/64"], id="host bits"),
    ],
)
def test_only_ranges_that_lie_in_no_other_are_left(given_texts, left):
    found = outermost([Cidr.parse(text) for text in given_texts])
    assert [str(cidr) for cidr in found] == left
    assert outermost(found) == found


SMALL = st.builds(lambda number, length: Cidr(4, number, length), st.integers(0, 31), st.integers(27, 32))


@given(st.lists(SMALL))
def test_the_same_addresses_are_covered_and_none_twice(cidrs):
    covered = sorted({number for cidr in cidrs for number in range(cidr.first, cidr.end)})
    assert [number for cidr in outermost(cidrs) for number in range(cidr.first, cidr.end)] == covered
