"""A log that keeps what it is told, so that a test can read it.

Invariant: recording never raises, whatever the fields are; they are shown as they were when they were logged.
"""

from __future__ import annotations

from domain.value import Value
from ports.log import Log


class Entry(Value):
    """`level` is debug, info, warning or error; `fields` are (key, shown value), sorted by key."""

    level: str
    message: str
    fields: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.message, *[f"{key}={shown}" for key, shown in self.fields]])


class RecordingLog(Log):
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def debug(self, message: str, **fields: object) -> None:
        self._record("debug", message, fields)

    def info(self, message: str, **fields: object) -> None:
        self._record("info", message, fields)

    def warning(self, message: str, **fields: object) -> None:
        self._record("warning", message, fields)

    def error(self, message: str, **fields: object) -> None:
        self._record("error", message, fields)

    def shown(self, level: str = "") -> list[str]:
        """The lines of one level, or all: `message key=value …`."""
        return [str(entry) for entry in self.entries if level in ("", entry.level)]

    def _record(self, level: str, message: str, fields: dict[str, object]) -> None:
        shown = tuple([(key, _shown(fields[key])) for key in sorted(fields)])
        self.entries.append(Entry(level, message, shown))


def _shown(field: object) -> str:
    try:
        return str(field)
    except Exception as error:  # noqa: BLE001 - the port's promise: a field that cannot be shown never fails a call
        return f"<unprintable: {type(error).__name__}>"
