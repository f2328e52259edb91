"""Instants as the records spell them. An instant is an `int`: nanoseconds since the Unix epoch, UTC.

Two spellings exist (spec: datastore B): RFC 3339 with whole seconds for record fields, and Go's `Time.String()` with
up to nine fraction digits for the `timestamp` attribute of an allocation. Neither depends on locale or time zone.

Invariant: `parse_rfc3339(rfc3339(t)) == t` rounded down to whole seconds.
"""

from __future__ import annotations

SECOND = 1_000_000_000
_DAY = 86_400


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month, day of a day number counted from 1970-01-01 (proleptic Gregorian calendar)."""
    shifted = days + 719_468  # days since 0000-03-01, so that a leap day is the last day of its year
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def _day_number(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _date_and_time(instant: int) -> tuple[str, str]:
    days, second = divmod(instant // SECOND, _DAY)
    year, month, day = _civil(days)
    return (
        f"{year:04d}-{month:02d}-{day:02d}",
        f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}",
    )


def rfc3339(instant: int) -> str:
    """`2026-11-29T13:06:12Z`; the fraction is dropped."""
    date, time = _date_and_time(instant)
    return f"{date}T{time}Z"


def go_string(instant: int) -> str:
    """`2026-11-29 13:06:12.3456789 +0000 UTC`; trailing zeros of the fraction are dropped, a zero fraction wholly."""
    date, time = _date_and_time(instant)
    fraction = f".{instant % SECOND:09d}".rstrip("0").rstrip(".")
    return f"{date} {time}{fraction} +0000 UTC"


def parse_rfc3339(text: str) -> int:
    """The instant of an RFC 3339 text, any offset, any number of fraction digits. ValueError if it is not one."""
    date, separator, rest = text[:10], text[10:11], text[11:]
    clock, tail = rest[:8], rest[8:]
    fraction = ""
    if tail.startswith("."):
        digits = len(tail[1:]) - len(tail[1:].lstrip("0123456789"))
        fraction, tail = tail[1 : 1 + digits], tail[1 + digits :]
    well_formed = (
        separator in ("T", "t")
        and len(clock) == 8
        and (date[4:5], date[7:8], clock[2], clock[5]) == ("-", "-", ":", ":")
        and (tail in ("Z", "z") or (len(tail) == 6 and tail[0] in "+-" and tail[3] == ":"))
    )
    if not well_formed:
        raise ValueError(f"not an RFC 3339 time: {text!r}")
    days = _day_number(int(date[:4]), int(date[5:7]), int(date[8:10]))
    second = int(clock[:2]) * 3600 + int(clock[3:5]) * 60 + int(clock[6:8])
    if tail not in ("Z", "z"):
        offset = int(tail[1:3]) * 3600 + int(tail[4:6]) * 60
        second -= offset if tail[0] == "+" else -offset
    return (days * _DAY + second) * SECOND + int((fraction + "000000000")[:9])


def parse_go_string(text: str) -> int:
    """The instant that `go_string` wrote, which is UTC. ValueError for anything else."""
    date, _, rest = text.partition(" ")
    clock, space, zone = rest.partition(" ")
    if not space or zone != "+0000 UTC":
        raise ValueError(f"not the time of an allocation: {text!r}")
    return parse_rfc3339(f"{date}T{clock}Z")
