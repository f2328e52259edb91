"""Reserved ranges as records have them (LIB-269 to LIB-271; spec: ipam 19.8)."""

from __future__ import annotations

import pytest

from domain.ipam.pools import IPReservation, reserved_cidrs
from domain.resource import Metadata


@pytest.mark.parametrize(
    ("texts", "four", "six"),
    [
        pytest.param(
            ("10.0.0.0/24", "10.1.0.1", "fd00::1"), ["10.0.0.0/24", "10.1.0.1/32"], ["fd00::1/128"], id="LIB-269"
        ),
        pytest.param((" 10.0.0.0/24 ", "\tfd00::1\n"), ["10.0.0.0/24"], ["fd00::1/128"], id="LIB-270"),
        pytest.param(("", " ", "not-a-cidr", "10.0.0.0/33", "10.2.0.0/16"), ["10.2.0.0/16"], [], id="LIB-271"),
        pytest.param(("10.0.0.77/24",), ["10.0.0.0/24"], [], id="host bits do not count"),
        pytest.param((), [], [], id="nothing"),
    ],
)
def test_reserved_texts_become_ranges_of_one_version(texts, four, six):
    reservations = [IPReservation(Metadata("r"), texts)]
    assert [str(cidr) for cidr in reserved_cidrs(reservations, 4)] == four
    assert [str(cidr) for cidr in reserved_cidrs(reservations, 6)] == six


def test_all_reservations_count():
    reservations = [IPReservation(Metadata("a"), ("10.0.0.1",)), IPReservation(Metadata("b"), ("10.0.0.2",))]
    assert [str(cidr) for cidr in reserved_cidrs(reservations, 4)] == ["10.0.0.1/32", "10.0.0.2/32"]
