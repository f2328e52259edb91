"""A log as a list of lines, of a host whose clock shows UTC."""

from __future__ import annotations

from domain.moment import parse_rfc3339
from ports.log_history import LogHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


class MemoryLogHistory(LogHistory):
    def __init__(self, lines: Sequence[str] = (), gaps: tuple[str, ...] = ()) -> None:
        self._lines = lines
        self._gaps = gaps

    def lines(self, words: Collection[str]) -> Iterator[str]:
        return iter([line for line in self._lines if any(word in line for word in words)])

    def first(self) -> str:
        return self._lines[0] if self._lines else ""

    def gaps(self) -> tuple[str, ...]:
        return self._gaps

    def instant(self, local: str) -> int:
        return parse_rfc3339(local.replace(" ", "T", 1) + "Z")
