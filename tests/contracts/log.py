"""What every log keeps: derive, provide `log` and `lines`, which gives the lines written so far."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ports.log import Log

LEVELS = ("debug", "info", "warning", "error")


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


class LogContract:
    @pytest.mark.parametrize("level", LEVELS)
    def test_a_message_and_its_fields_make_one_line_sorted_by_key(
        self, log: Log, lines: Callable[[], list[str]], level: str
    ) -> None:
        getattr(log, level)("Claimed", node=1, block=2)
        (line,) = lines()
        assert line.index("Claimed") < line.index("block=2") < line.index("node=1")

    @pytest.mark.parametrize("level", LEVELS)
    def test_logging_never_raises(self, log: Log, lines: Callable[[], list[str]], level: str) -> None:
        getattr(log, level)("Odd", one=Unprintable(), two="\ud800", three=b"\xff", four=None)
        assert len(lines()) == 1
