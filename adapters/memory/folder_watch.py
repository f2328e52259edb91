"""Folders that change when a test has said so.

Invariant: waiting lets time pass on the clock and never really waits. Once the script is over, waiting raises `Over`.
"""

from __future__ import annotations

from ports.folder_watch import FolderWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapters.memory.clock import MemoryClock


class Over(Exception):
    """Nothing more will happen: what ends a loop that otherwise has no end."""


class MemoryFolderWatch(FolderWatch):
    """`script`: what each wait ends with: folders that have changed, or () for none. `waited`: the seconds of each."""

    def __init__(self, clock: MemoryClock) -> None:
        self._clock = clock
        self.script: list[tuple[str, ...]] = []
        self.refused: dict[str, str] = {}
        self.waited: list[float] = []

    def unwatched(self) -> Mapping[str, str]:
        return dict(self.refused)

    def wait(self, seconds: float) -> tuple[str, ...]:
        if not self.script:
            raise Over
        changed = self.script.pop(0)
        self.waited.append(seconds)
        self._clock.advance(0.0 if changed else seconds)
        return changed

    def close(self) -> None:
        pass
