"""The datastore in an etcd that Calico itself may share: one key per record, each change guarded by its revision.

Transactions are the original's: create if there is no such key, replace or delete if it is at
that revision, and in the same step learn what is there instead. All that one `fetch` asks for comes from one
read-only transaction, and so does what the call expects to ask for next.

Invariant: a revision is etcd's own, the key's mod revision in decimal digits.
"""

from __future__ import annotations

import os

from adapters.etcdv3.connection import Connection
from adapters.etcdv3.discovery import discover
from adapters.etcdv3.transport import Writing
from adapters.records.text_store import TextStore, spans_of, uuid4_text
from ports.errors import AlreadyExists, Conflict, Missing, Refused, Unauthorized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Self

    from adapters.etcdv3.settings import EtcdSettings
    from adapters.etcdv3.transport import EtcdTransport, Open, Page, Range, WriteOutcome
    from adapters.records.text_store import Row, Span
    from ports.clock import Clock, Deadline
    from ports.datastore import Change, Key, Need, Revision

AHEAD = 1.0  # seconds for which what came along with an earlier question is the answer to its own
PAGE = 2000  # rows that an operator's command reads at once: a large cluster's need not be in memory as text
_NEVER = -1  # a revision that no key ever has
_LARGEST = 2**63 - 1


class EtcdDatastore(TextStore):
    """Nothing is connected before the first verb. Close it when the call has answered (`with` does).

    `hasty` is as `Connection` has it. An operator's command, which is, may read all there is; so it does that page by
    page: more requests, less memory, and still all of one instant.
    """

    brings_along = True
    writes_together = True
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
        self._expected: tuple[Span, ...] = ()
        self._ahead: dict[Span, list[Row]] = {}
        self._ahead_until = 0.0

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
        found = self._known(spans)
        if wanted := [span for span in spans if span not in found]:
            found.update(self._read_with_expected(wanted, deadline))
        return [[*found[span]] for span in spans]

    def _known(self, spans: Sequence[Span]) -> dict[Span, list[Row]]:
        """What has come along of it; each of these answers is for one question."""
        if self._clock.monotonic() > self._ahead_until:
            self._ahead.clear()
        return {span: self._ahead.pop(span) for span in spans if span in self._ahead}

    def _read_with_expected(self, wanted: list[Span], deadline: Deadline) -> dict[Span, list[Row]]:
        """What is expected may be refused, which is nobody's error: it is asked for again, and answered then."""
        expected, self._expected = [span for span in self._expected if span not in wanted], ()
        if expected:
            try:
                found = self._read([*wanted, *expected], deadline)
            except (Unauthorized, Refused):
                pass
            else:
                self._ahead = dict(zip(expected, found[len(wanted) :]))
                self._ahead_until = self._clock.monotonic() + AHEAD
                return dict(zip(wanted, found))
        return dict(zip(wanted, self._read(wanted, deadline)))

    def _read(self, spans: Sequence[Span], deadline: Deadline) -> list[list[Row]]:
        ranges = tuple([_range(span) for span in spans])

        def read(transport: EtcdTransport, seconds: float) -> list[list[tuple[bytes, bytes, int]]]:
            return transport.read(ranges, seconds)

        answers = self._connection.ask(read, deadline, repeatable=True, reads=ranges)
        return [[_row(row) for row in rows] for rows in answers]

    def expect(self, *needs: Need[Any]) -> None:
        self._expected += tuple([span for need in needs for span in spans_of(need)])

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
        self._ahead.clear()
        address, text = row[0].encode(), row[1].encode()

        def create(transport: EtcdTransport, seconds: float) -> WriteOutcome:
            return transport.create(address, text, seconds)

        outcome = self._connection.ask(create, deadline)
        if not outcome.done:
            raise AlreadyExists(key)
        return str(outcome.revision)

    def swap(self, key: Key[Any], row: tuple[str, str], replaces: Revision, deadline: Deadline) -> Revision:
        self._ahead.clear()
        address, text, expected = row[0].encode(), row[1].encode(), _expected(replaces)

        def replace(transport: EtcdTransport, seconds: float) -> WriteOutcome:
            return transport.replace(address, text, expected, seconds)

        return str(_settled(self._connection.ask(replace, deadline), key).revision)

    def remove(self, key: Key[Any], address: str, replaces: Revision | None, deadline: Deadline) -> None:
        self._ahead.clear()
        expected = None if replaces is None else _expected(replaces)

        def delete(transport: EtcdTransport, seconds: float) -> WriteOutcome:
            return transport.delete(address.encode(), expected, seconds)

        _settled(self._connection.ask(delete, deadline), key)

    def swap_all(
        self, changes: Sequence[Change], rows: Sequence[tuple[str, str | None]], deadline: Deadline
    ) -> Revision:
        self._ahead.clear()
        writings = [
            Writing(address.encode(), None if text is None else text.encode(), _replaced(change.replaces))
            for change, (address, text) in zip(changes, rows)
        ]

        def write(transport: EtcdTransport, seconds: float) -> tuple[WriteOutcome, ...]:
            return transport.write_all(writings, seconds)

        outcomes = self._connection.ask(write, deadline)
        for change, writing, outcome in zip(changes, writings, outcomes):
            if not outcome.done and outcome.revision != writing.revision:
                if change.replaces is None:
                    raise AlreadyExists(change.key)
                _settled(outcome, change.key)
        return str(outcomes[0].revision)


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


def _replaced(revision: Revision | None) -> int:
    return 0 if revision is None else _expected(revision)


def _settled(outcome: WriteOutcome, key: Key[Any]) -> WriteOutcome:
    if outcome.done:
        return outcome
    raise Conflict(key) if outcome.revision else Missing(key)
