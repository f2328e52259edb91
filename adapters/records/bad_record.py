"""A stored record that cannot be used. Whoever lists leaves it out; whoever asks for it by name is told which and why.

Invariant: nothing is ever written over a record that could not be read, since no revision of it gets out.
"""

from __future__ import annotations

from ports.errors import Damaged


class BadRecord(Damaged, ValueError):
    """Text: `record <kind and name> is corrupt: <fault>`."""

    def __init__(self, key: object, fault: str) -> None:
        from ports.record_title import record_title

        super().__init__(f"record {record_title(key)} is corrupt: {fault}")
        self.key = key
        self.fault = fault


class BadName(BadRecord):
    """A record that cannot be there: no key can have its name. Text: `<key>: <fault>`."""

    def __init__(self, key: object, fault: str) -> None:
        super().__init__(key, fault)
        self.args = (f"{key}: {fault}",)
        self.details = ""
