"""Durations in Go's spelling."""

from __future__ import annotations

import pytest

from domain.go_duration import parse_go_duration

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("5s", 5 * SECOND),
        ("30m", 1800 * SECOND),
        ("+5s", 5 * SECOND),
        ("-5s", -5 * SECOND),
        ("1h15m30.918273645s", 4530 * SECOND + 918_273_645),
        ("5.s", 5 * SECOND),
        (".5s", SECOND // 2),
        ("10.5s4m", 250 * SECOND + SECOND // 2),
        ("39ns", 39),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("2ms", 2_000_000),
        ("0.3333333333333333333h", 1200 * SECOND - 1),
        ("9223372036854775807ns", (1 << 63) - 1),
    ],
)
def test_it_is_read_as_go_reads_it(text, nanoseconds):
    assert parse_go_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "-",
        "s",
        ".",
        "-.",
        ".s",
        "+.s",
        "1.2.3s",
        "5d",
        "1 h",
        " 1h",
        "1h ",
        "5S",
        "٣s",
        "9223372036854775808ns",
    ],
)
def test_what_go_refuses_is_refused(text):
    with pytest.raises(ValueError, match=r"^invalid duration"):
        parse_go_duration(text)
