"""The datastore in an etcd that Calico itself may share: one key per record, each change guarded by its revision.

Transactions are the original's: create if there is no such key, replace or delete if it is at
that revision, and in the same step learn what is there instead. All that one `fetch` asks for comes from one
read-only transaction.

Invariant: a revision is etcd's own, the key's mod revision in decimal digits.
"""

from __future__ import annotations

import os

from adapters.etcdv3.connection import Connection
from adapters.etcdv3.discovery import discover
from adapters.records.text_store import TextStore, uuid4_text
from ports.errors import AlreadyExists, Conflict, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from adapters.etcdv3.settings import EtcdSettings
    from adapters.etcdv3.transport import EtcdTransport, Open, WriteOutcome
    from adapters.records.text_store import Row, Span
    from ports.clock import Clock, Deadline
    from ports.datastore import Key, Revision

_NEVER = -1  # a revision that no key ever has
_LARGEST = 2**63 - 1


class EtcdDatastore(TextStore):
    """Nothing is connected before the first verb. Close it when the call has answered (`with` does).

    `hasty` is as `Connection` has it.
    """

    def __init__(
        self,
        settings: EtcdSettings,
        clock: Clock,
        opener: Open,
        *,
        new_uid: Callable[[], str] | None = None,
        hasty: bool = False,
    ) -> None:
        super().__init__(f"datastore {settings}", clock, new_uid or _uuid4)
        self._connection = Connection(settings, clock, opener, discover, hasty=hasty)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Safe to repeat; a verb used afterwards connects again."""
        self._connection.close()

    def read(self, spans: Sequence[Span], deadline: Deadline) -> list[list[Row]]:
        if not spans:
            return []
        ranges = tuple([_range(span) for span in spans])

        def read(transport: EtcdTransport, seconds: float) -> list[list[tuple[bytes, bytes, int]]]:
            return transport.read(ranges, seconds)

        return [
            [(_text(key), _text(value), str(revision)) for key, value, revision in rows]
            for rows in self._connection.ask(read, deadline, repeatable=True, reads=ranges)
        ]

    def insert(self, key: Key[Any], row: tuple[str, str], deadline: Deadline) -> Revision:
        address, text = row[0].encode(), row[1].encode()

        def create(transport: EtcdTransport, seconds: float) -> WriteOutcome:
            return transport.create(address, text, seconds)

        outcome = self._connection.ask(create, deadline)
        if not outcome.done:
            raise AlreadyExists(key)
        return str(outcome.revision)

    def swap(self, key: Key[Any], row: tuple[str, str], replaces: Revision, deadline: Deadline) -> Revision:
        address, text, expected = row[0].encode(), row[1].encode(), _expected(replaces)

        def replace(transport: EtcdTransport, seconds: float) -> WriteOutcome:
            return transport.replace(address, text, expected, seconds)

        return str(_settled(self._connection.ask(replace, deadline), key).revision)

    def remove(self, key: Key[Any], address: str, replaces: Revision | None, deadline: Deadline) -> None:
        expected = None if replaces is None else _expected(replaces)

        def delete(transport: EtcdTransport, seconds: float) -> WriteOutcome:
            return transport.delete(address.encode(), expected, seconds)

        _settled(self._connection.ask(delete, deadline), key)


def _uuid4() -> str:
    return uuid4_text(os.urandom(16))


def _range(span: Span) -> tuple[bytes, bytes]:
    """A prefix is the range up to the first text that sorts after all that begin with it."""
    start = span.start.encode()
    return (start, start[:-1] + bytes([start[-1] + 1]) if span.is_prefix else b"")


def _text(octets: bytes) -> str:
    """As Go reads it."""
    return octets.decode("utf-8", "replace")


def _expected(revision: Revision) -> int:
    """0 would mean "if there is no such key" to etcd, so it is as wrong as a text that is no number."""
    if not (revision.isascii() and revision.isdigit()) or len(revision) > 19:
        return _NEVER
    return int(revision) if 0 < int(revision) <= _LARGEST else _NEVER


def _settled(outcome: WriteOutcome, key: Key[Any]) -> WriteOutcome:
    if outcome.done:
        return outcome
    raise Conflict(key) if outcome.revision else Missing(key)
