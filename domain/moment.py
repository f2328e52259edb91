"""Instants as the records spell them. An instant is an `int`: nanoseconds since the Unix epoch, UTC.

Two spellings exist: RFC 3339 with whole seconds for record fields, and Go's `Time.String()` with up to nine fraction
digits for the `timestamp` attribute of an allocation. Neither depends on locale or time zone.

Invariant: `parse_rfc3339(rfc3339(t)) == t` rounded down to whole seconds.
"""

from __future__ import annotations

SECOND = 1_000_000_000
_DAY = 86_400
_DIGITS = "0123456789"


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


def _is_like(text: str, shape: str) -> bool:
    """Whether each `0` of the shape is a digit in the text, and all else is equal."""
    return len(text) == len(shape) and all(
        one in _DIGITS if wanted == "0" else one == wanted for one, wanted in zip(text, shape)
    )


def _exists(moment: str) -> bool:
    """Whether some calendar and clock show `0000-00-00T00:00:00`, whose digits are digits."""
    date = int(moment[:4]), int(moment[5:7]), int(moment[8:10])
    hour, minute, second = int(moment[11:13]), int(moment[14:16]), int(moment[17:])
    return 0 < date[1] < 13 and _civil(_day_number(*date)) == date and hour < 24 and minute < 60 and second < 60


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


class BadMoment(ValueError):
    """A text that is no point in time as it is written there."""


def parse_rfc3339(text: str) -> int:
    """The instant of an RFC 3339 text, any offset, any number of fraction digits. BadMoment if it is not one.

    As with Go the moment has to exist: no 30 February, no 24:00, no leap second.
    """
    moment, tail = text[:19].replace("t", "T"), text[19:]
    fraction = ""
    if tail.startswith("."):
        rest = tail[1:].lstrip(_DIGITS)
        fraction, tail = tail[1 : len(tail) - len(rest)] or "none", rest
    offset = "+00:00" if tail in ("Z", "z") else tail
    well_formed = (
        _is_like(moment, "0000-00-00T00:00:00")
        and _is_like(offset.replace("-", "+"), "+00:00")
        and fraction != "none"
        and _exists(moment)
        and int(offset[1:3]) <= 24  # so does Go have it
        and int(offset[4:]) <= 60
    )
    if not well_formed:
        raise BadMoment(f"not an RFC 3339 time: {text!r}")
    days = _day_number(int(moment[:4]), int(moment[5:7]), int(moment[8:10]))
    second = int(moment[11:13]) * 3600 + int(moment[14:16]) * 60 + int(moment[17:])
    ahead = int(offset[1:3]) * 3600 + int(offset[4:]) * 60
    second -= ahead if offset[0] == "+" else -ahead
    return (days * _DAY + second) * SECOND + int((fraction + "000000000")[:9])


def parse_go_string(text: str) -> int:
    """The instant that `go_string` wrote, which is UTC. BadMoment for anything else."""
    date, _, rest = text.partition(" ")
    clock, space, zone = rest.partition(" ")
    if not space or zone != "+0000 UTC":
        raise BadMoment(f"not the time of an allocation: {text!r}")
    return parse_rfc3339(f"{date}T{clock}Z")
