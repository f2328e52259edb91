"""What every history of a log keeps: derive, provide `history`, a function from lines to a LogHistory of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from domain.moment import BadMoment
from ports.log_history import LogHistory

LINES = ("first of c1", "second of c2", "third of c1 \u00e9")


class LogHistoryContract:
    def test_lines_with_one_of_the_words_the_oldest_first(self, history: Callable[..., LogHistory]) -> None:
        log = history(*LINES)
        assert list(log.lines(["c1"])) == [LINES[0], LINES[2]]
        assert list(log.lines(["second", "\u00e9"])) == [LINES[1], LINES[2]]
        assert list(log.lines(["c3"])) == list(log.lines([])) == []

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
