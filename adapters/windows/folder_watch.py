"""Hearing of changes in folders by looking at them again and again, which is enough for secrets.

Invariant: a change is told once the folder has looked the same for as long as `ports.folder_watch` says.
"""

from __future__ import annotations

import os

from ports.folder_watch import QUIET, FolderWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ports.clock import Clock

    Sight = tuple[tuple[str, int, int], ...] | None

_LOOK_EVERY = 1.0  # seconds


class PollingWatch(FolderWatch):
    def __init__(self, folders: Sequence[str], clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, Sight] = {folder: _sight(folder) for folder in dict.fromkeys(folders)}

    def unwatched(self) -> dict[str, str]:
        """One that is missing is looked at all the same, and told of when it comes."""
        return {folder: "no such file or directory" for folder in self._seen if _sight(folder) is None}

    def wait(self, seconds: float) -> tuple[str, ...]:
        until = self._clock.deadline(seconds)
        while not (changed := self._changed()):
            left = until.left(self._clock.monotonic())
            if left <= 0:
                return ()
            self._clock.sleep(min(_LOOK_EVERY, left))
        self._clock.sleep(QUIET)
        while self._changed():
            self._clock.sleep(QUIET)
        return changed

    def _changed(self) -> tuple[str, ...]:
        now = {folder: _sight(folder) for folder in self._seen}
        changed = tuple([folder for folder in now if now[folder] != self._seen[folder]])
        self._seen = now
        return changed

    def close(self) -> None:
        pass


def _sight(folder: str) -> Sight:
    """What is in it, and when that was changed; None without a folder."""
    try:
        entries = [(name, os.stat(f"{folder}/{name}")) for name in sorted(os.listdir(folder))]
    except OSError:
        return None
    return tuple([(name, found.st_mtime_ns, found.st_size) for name, found in entries])
