"""What every history of a log keeps: derive, provide `history`, a function from lines to a LogHistory of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from domain.moment import BadMoment
from ports.log_history import LogHistory

LINES = ("first of c1", "second of c2", "third of c1 \u00e9")


def _dated(second: int) -> str:
    """A line of the process's clock; long, so that there is something to search."""
    when = f"2020-{3 + second // 2_592_000:02d}-{1 + second // 86_400 % 30:02d}"
    time = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:00.000"
    return f"{when} {time} [INFO][7] ipam/x.py 1: word {'x' * 500}"


class LogHistoryContract:
    def test_lines_with_one_of_the_words_the_oldest_first(self, history: Callable[..., LogHistory]) -> None:
        log = history(*LINES)
        assert list(log.lines(["c1"])) == [LINES[0], LINES[2]]
        assert list(log.lines(["second", "\u00e9"])) == [LINES[1], LINES[2]]
        assert list(log.lines(["c3"])) == list(log.lines([])) == []

    def test_what_was_at_that_time_is_there(self, history: Callable[..., LogHistory]) -> None:
        """A line every ten minutes, for two months; those of two days are asked for."""
        lines = [_dated(number * 600) for number in range(60 * 144)]
        log = history(*lines)
        since, until = log.instant(lines[2880][:23]), log.instant(lines[3168][:23])
        found = list(log.lines(["word"], since, until))
        assert set(lines[2880:3169]) <= set(found)
        assert len(found) < len(lines) // 2, "whoever asks for a part is not given all"
        assert list(log.lines(["word"], since))[-1] == lines[-1]
        assert next(iter(log.lines(["word"], None, until))) == lines[0]

    def test_the_first_line_and_no_gap(self, history: Callable[..., LogHistory]) -> None:
        log = history(*LINES)
        assert log.first() == LINES[0]
        assert log.gaps() == ()
        assert history().first() == ""

    def test_what_is_no_time_is_refused(self, history: Callable[..., LogHistory]) -> None:
        assert history().instant("2026-11-29 13:06:12.345") % 1_000_000_000 == 345_000_000
        for text in ("", "yesterday", "2026-13-29 13:06:12.345", "2026-11-29 13:06:12"):
            with pytest.raises(BadMoment):
                history().instant(text + ("" if text[-1:].isdigit() and "." in text else "x"))
