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
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Self

    from adapters.etcdv3.settings import EtcdSettings
    from adapters.etcdv3.transport import EtcdTransport, Open, Page, Range, WriteOutcome
    from adapters.records.text_store import Row, Span
    from ports.clock import Clock, Deadline
    from ports.datastore import Key, Revision

PAGE = 2000  # rows that an operator's command reads at once: a large cluster's need not be in memory as text
_NEVER = -1  # a revision that no key ever has
_LARGEST = 2**63 - 1


class EtcdDatastore(TextStore):
    """Nothing is connected before the first verb. Close it when the call has answered (`with` does).

    `hasty` is as `Connection` has it. An operator's command, which is, may read all there is; so it does that page by
    page: more requests, less memory, and still all of one instant.
    """

    page = PAGE

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
        self._pages_read = hasty

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Safe to repeat; a verb used afterwards connects again."""
        self._connection.close()

    def read(self, spans: Sequence[Span], deadline: Deadline) -> Sequence[Iterable[Row]]:
        if not spans:
            return []
        if self._pages_read and any(span.is_prefix for span in spans):
            instant = _Instant()
            return [self._pages(_range(span), instant, deadline) for span in spans]
        ranges = tuple([_range(span) for span in spans])

        def read(transport: EtcdTransport, seconds: float) -> list[list[tuple[bytes, bytes, int]]]:
            return transport.read(ranges, seconds)

        return [
            [_row(row) for row in rows] for rows in self._connection.ask(read, deadline, repeatable=True, reads=ranges)
        ]

    def _pages(self, wanted: Range, instant: _Instant, deadline: Deadline) -> Iterator[Row]:
        (first, end), more = wanted, True
        while more:

            def read(transport: EtcdTransport, seconds: float, first: bytes = first) -> Page:
                return transport.read_page((first, end), self.page, instant.revision, seconds)

            page = self._connection.ask(read, deadline, repeatable=True)
            instant.revision, more = page.revision, page.more
            if more:
                first = page.rows[-1][0] + b"\0"
            page.rows.reverse()
            while page.rows:
                yield _row(page.rows.pop())

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


class _Instant:
    """The store's revision of which all that is read together is, 0 before the first answer."""

    revision = 0


def _row(row: tuple[bytes, bytes, int]) -> Row:
    key, value, revision = row
    return _text(key), _text(value), str(revision)


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
