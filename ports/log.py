"""What an operator can read afterwards. Never raises; never receives secrets, raw stdin or whole pods.

Invariant: a call never depends on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class Log(ABC):
    """`fields` are shown as `key=value` after the message, sorted by key."""

    @abstractmethod
    def debug(self, message: str, **fields: object) -> None: ...

    @abstractmethod
    def info(self, message: str, **fields: object) -> None: ...

    @abstractmethod
    def warning(self, message: str, **fields: object) -> None: ...

    @abstractmethod
    def error(self, message: str, **fields: object) -> None: ...
