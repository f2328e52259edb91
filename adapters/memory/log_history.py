"""A log as a list of lines, of a host whose clock shows UTC."""

from __future__ import annotations

from domain.moment import parse_rfc3339
from domain.trace.log_lines import read_log_line
from ports.log_history import LogHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


class MemoryLogHistory(LogHistory):
    def __init__(self, lines: Sequence[str] = (), gaps: tuple[str, ...] = ()) -> None:
        self._lines = lines
        self._gaps = gaps

    def lines(self, words: Collection[str], since: int | None = None, until: int | None = None) -> Iterator[str]:
        for text in self._lines:
            line = read_log_line(text, self.instant)
            old = line is not None and since is not None and line.when < since
            new = line is not None and until is not None and line.when > until
            if not old and not new and any(word in text for word in words):
                yield text

    def first(self) -> str:
        return self._lines[0] if self._lines else ""

    def gaps(self) -> tuple[str, ...]:
        return self._gaps

    def instant(self, local: str) -> int:
        return parse_rfc3339(local.replace(" ", "T", 1) + "Z")
