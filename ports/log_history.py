"""What the plugins' log still has: the file that is written to, and those that were put aside when they were full.

Invariant: nothing is changed, and what is held of it at a time is limited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class LogHistory(ABC):
    @abstractmethod
    def lines(self, words: Collection[str], since: int | None = None, until: int | None = None) -> Iterator[str]:
        """The lines in which one of the words stands, the oldest first, without their end.

        What is older than `since` or newer than `until` (nanoseconds) may be left out: it need not be looked for.
        """

    @abstractmethod
    def first(self) -> str:
        """The oldest line that is left, "" if there is none."""

    @abstractmethod
    def gaps(self) -> tuple[str, ...]:
        """What of the log cannot be read, and why; a sentence each."""

    @abstractmethod
    def instant(self, local: str) -> int:
        """When it was `2026-11-29 13:06:12.345` on this host, in nanoseconds. `domain.moment.BadMoment`."""
