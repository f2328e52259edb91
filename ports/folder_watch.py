"""Hearing that something has changed in a folder, such as one into which Kubernetes mounts a secret.

A mounted secret is replaced by several changes of its folder one right after the other, so what is told is that a
folder has changed and is quiet again.

Invariant: no change is lost; several may be told as one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

QUIET = 0.05  # seconds


class FolderWatch(ABC):
    """Of the folders that it was made for. What changes while nobody waits is told when somebody waits again."""

    @abstractmethod
    def unwatched(self) -> Mapping[str, str]:
        """The folders that cannot be watched, and why; each is tried once more by this call."""

    @abstractmethod
    def wait(self, seconds: float) -> tuple[str, ...]:
        """The folders that have changed, once nothing has changed for QUIET; () if nothing does within the seconds."""

    @abstractmethod
    def close(self) -> None:
        """Safe to repeat."""
