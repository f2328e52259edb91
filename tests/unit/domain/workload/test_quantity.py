"""Kubernetes quantities, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.workload.qos import parse_quantity

TENS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10M", 10_000_000),
        ("1.5Gi", 1_610_612_736),
        ("2e3", 2000),
        ("2E+3", 2000),
        ("25e-1", 3),
        ("1E", 10**18),
        ("+5", 5),
        ("-1500m", -1),
        (".5k", 500),
        ("5.", 5),
        ("1.01P", 1_010_000_000_000_000),
        ("0", 0),
    ],
)
def test_quantities_are_read_exactly_and_rounded_up(text, number):
    assert parse_quantity(text) == number


@given(
    st.integers(-(10**12), 10**12),
    st.integers(0, 10**6 - 1),
    st.sampled_from(
        [*[(name, Fraction(10) ** ten) for name, ten in TENS.items()], *[(n, 2**t) for n, t in TWOS.items()]]
    ),
)
def test_every_suffix_scales_by_its_power(whole, millionths, suffix):
    name, scale = suffix
    text = f"{whole}.{millionths:06}{name}"
    sign = -1 if text.startswith("-") else 1
    assert parse_quantity(text) == math.ceil((whole + sign * Fraction(millionths, 10**6)) * scale)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "M",
        "-",
        ".",
        "1.2.3",
        "1 M",
        "1m5",
        "1e",
        "1e+",
        "1e--3",
        "1ee3",
        "1K",
        "1ki",
        "1bps",
        "x",
        "٣",
        "1e٣",
        "1e1000",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="no Kubernetes quantity: "):
        parse_quantity(text)


def test_a_text_that_would_take_long_is_refused():
    with pytest.raises(ValueError, match="no Kubernetes quantity"):
        parse_quantity("9" * 5000)
