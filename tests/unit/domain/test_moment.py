"""Instants as the records spell them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.moment import SECOND, go_string, parse_go_string, parse_rfc3339, rfc3339

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DATES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive


def instant(date: datetime) -> int:
    return (date - EPOCH) // timedelta(microseconds=1) * 1000


@given(DATES)
def test_whole_seconds_are_spelled_as_rfc_3339(date: datetime) -> None:
    assert rfc3339(instant(date)) == f"{date.year:04d}" + date.strftime("-%m-%dT%H:%M:%SZ")


@given(DATES, st.integers(-14 * 60, 14 * 60))
def test_any_offset_and_fraction_is_read(date: datetime, minutes: int) -> None:
    if not datetime(2, 1, 1, tzinfo=UTC) < date < datetime(9998, 1, 1, tzinfo=UTC):
        return
    elsewhere = date.astimezone(timezone(timedelta(minutes=minutes)))
    assert parse_rfc3339(elsewhere.isoformat()) == instant(date)


@given(st.integers(-62_135_596_800 * SECOND, 253_402_300_799 * SECOND))
def test_reading_what_was_written_gives_the_whole_second(moment: int) -> None:
    assert parse_rfc3339(rfc3339(moment)) == moment // SECOND * SECOND


def test_go_drops_trailing_zeros_of_the_fraction_and_a_zero_fraction() -> None:
    whole = parse_rfc3339("2026-11-29T13:06:12Z")
    assert go_string(whole + 345_678_900) == "2026-11-29 13:06:12.3456789 +0000 UTC"
    assert go_string(whole + 1) == "2026-11-29 13:06:12.000000001 +0000 UTC"
    assert go_string(whole) == "2026-11-29 13:06:12 +0000 UTC"


def test_a_leap_day_is_a_day() -> None:
    assert rfc3339(parse_rfc3339("2024-02-29T00:00:00Z")) == "2024-02-29T00:00:00Z"
    assert rfc3339(parse_rfc3339("0000-02-29T00:00:00Z")) == "0000-02-29T00:00:00Z"


def test_fractions_longer_than_nanoseconds_are_cut() -> None:
    assert parse_rfc3339("1970-01-01t00:00:00.1234567899z") == 123_456_789


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-29",
        "2026-11-29 13:06:12Z",
        "2026-11-29T13:06:12",
        "2026-11-29T13:06:12+0100",
        "2026-11-29T13:06Z",
        "2026/11/29T13:06:12Z",
        "2026-11-29T13-06-12Z",
        "20a6-11-29T13:06:12Z",
        "2026-11-29T13:06:12+01:0x",
        "2026-11-29T13:06:12.Z",
        "2026-11-29T13:06:12.5",
        "+026-1 -1_T 1:00:00Z",
        "٢٠٢٦-11-29T13:06:12Z",
        "2026-13-29T13:06:12Z",
        "2026-00-29T13:06:12Z",
        "2026-02-29T13:06:12Z",
        "2026-11-00T13:06:12Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T13:60:12Z",
        "2026-11-29T13:06:60Z",
        "2026-11-29T13:06:12+25:00",
        "2026-11-29T13:06:12-01:61",
    ],
)
def test_what_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_rfc3339(text)


@given(st.integers(0, 4_000_000_000 * 10**9))
def test_the_time_of_an_allocation_is_read_back_exactly(instant):
    assert parse_go_string(go_string(instant)) == instant


@pytest.mark.parametrize(
    "text", ["", "2026-11-29", "2026-11-29T13:06:12Z", "2026-11-29 13:06:12 +0100 CET", "a b +0000 UTC"]
)
def test_other_times_are_not_those_of_an_allocation(text):
    with pytest.raises(ValueError, match="time"):
        parse_go_string(text)
