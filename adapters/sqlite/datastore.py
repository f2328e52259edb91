"""The datastore in one SQLite file: records for a node that needs no server.

Every write is one IMMEDIATE transaction that compares the revision, counts the global revision up and writes the text,
so two processes never replace the same version of a record. The file is in WAL mode with synchronous=FULL: a write that
was answered survives kill -9 and power loss at the price of one fsync (docs/decisions). SQLite is asked through
its C module alone; the `sqlite3` package around it would cost more to load than a whole ADD spends in it.

Whoever can write the file may have put anything into it, so what a column holds is taken for text whatever its type: a
value that makes no sense is then one bad record, and no reason why another record could not be read.

Invariant: `meta.revision` is at least the revision of every record, and grows with every write and delete.
"""

from __future__ import annotations

from adapters.records.text_store import TextStore
from adapters.sqlite.database import as_text, damaged, open_database, risk_of, unavailable, uuid4
from adapters.sqlite.engine import _sqlite3
from ports.errors import AlreadyExists, Conflict, Expired, Missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from sqlite3 import Connection
    from typing import Any, Self, TypeVar

    from adapters.records.text_store import Row, Span
    from ports.clock import Clock, Deadline
    from ports.datastore import Key, Revision
    from ports.log import Log

    T = TypeVar("T")

_READ = "SELECT key, text, revision FROM records WHERE key"
_AFTER_ANY_NAME = "\U0010ffff"
_LAST_REVISION = 2**63 - 1  # SQLite would count on in fractions


class SqliteDatastore(TextStore):
    """`path` is that of the database file. Only with `create` is a missing one made, and its folder with it.

    Nothing is opened before the first verb. `Unavailable` names the path and what is wrong with it. Close it when the
    call has answered (`with` does): the last process to close folds the write-ahead log into the file. `log` hears who
    else may read or change the file.
    """

    def __init__(
        self,
        path: str,
        clock: Clock,
        *,
        create: bool = False,
        new_uid: Callable[[], str] | None = None,
        log: Log | None = None,
    ) -> None:
        super().__init__(f"datastore {path}", clock, new_uid or uuid4)
        self.path = path
        self._create = create
        self._log = log
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def open(self, deadline: Deadline) -> None:
        """Open, and with `create` make, the file now; the verbs do it by themselves."""
        self.expire(deadline)
        self._retrying(self._opened, deadline)

    def close(self) -> None:
        """Safe to repeat; a verb used afterwards opens the file again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def read(self, spans: Sequence[Span], deadline: Deadline) -> list[list[Row]]:
        def ask(connection: Connection) -> list[list[Row]]:
            return [_rows(connection, span) for span in spans]

        return self._transact("BEGIN", ask, deadline)

    def insert(self, key: Key[Any], row: tuple[str, str], deadline: Deadline) -> Revision:
        address, text = row

        def write(connection: Connection) -> Revision:
            if _revision_at(connection, address) is not None:
                raise AlreadyExists(key)
            revision = _next_revision(connection)
            connection.execute("INSERT INTO records (key, text, revision) VALUES (?, ?, ?)", (address, text, revision))
            return str(revision)

        return self._transact("BEGIN IMMEDIATE", write, deadline)

    def swap(self, key: Key[Any], row: tuple[str, str], replaces: Revision, deadline: Deadline) -> Revision:
        address, text = row

        def write(connection: Connection) -> Revision:
            found = _revision_at(connection, address)
            _compare(found, replaces, key)
            revision = _next_revision(connection, found)
            connection.execute("UPDATE records SET text = ?, revision = ? WHERE key = ?", (text, revision, address))
            return str(revision)

        return self._transact("BEGIN IMMEDIATE", write, deadline)

    def remove(self, key: Key[Any], address: str, replaces: Revision | None, deadline: Deadline) -> None:
        def write(connection: Connection) -> None:
            found = _revision_at(connection, address)
            _compare(found, replaces, key)
            _next_revision(connection, found)
            connection.execute("DELETE FROM records WHERE key = ?", (address,))

        self._transact("BEGIN IMMEDIATE", write, deadline)

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = open_database(self.path, create=self._create)
            self._tell_risk()
        return self._connection

    def _tell_risk(self) -> None:
        risk = risk_of(self.path)
        if risk and self._log:
            self._log.warning("The datastore is at risk", path=self.path, reason=risk)

    def _transact(self, begin: str, work: Callable[[Connection], T], deadline: Deadline) -> T:
        """All of the work or none of it, once nobody else is in the way."""

        def attempt() -> T:
            connection = self._opened()
            try:
                connection.execute(begin)
                done = work(connection)
                connection.execute("COMMIT")
            except BaseException:  # whatever ended the transaction, a signal too, must not leave it open
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return done

        return self._retrying(attempt, deadline)

    def _retrying(self, attempt: Callable[[], T], deadline: Deadline) -> T:
        """SQLite itself waits a little for other processes; between two such waits signals and the deadline count."""
        while True:
            try:
                return attempt()
            except _sqlite3.Error as error:
                if not _is_busy(error):
                    raise unavailable(self.path, error) from error
                if deadline.passed(self._clock.monotonic()):
                    raise Expired(self.name) from error
            except UnicodeDecodeError as error:  # SQLite quotes the file's own octets in what it says of them
                raise unavailable(self.path, damaged("and not in UTF-8")) from error


def _is_busy(error: _sqlite3.Error) -> bool:
    """The low byte of the code is the kind of error; the rest says more about it."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {_sqlite3.SQLITE_BUSY, _sqlite3.SQLITE_LOCKED}


def _rows(connection: Connection, span: Span) -> list[Row]:
    if span.is_prefix:
        bounds = (span.start, span.start + _AFTER_ANY_NAME)
        found = connection.execute(_READ + " >= ? AND key < ? ORDER BY key", bounds).fetchall()
    else:
        found = connection.execute(_READ + " = ?", (span.start,)).fetchall()
    return [(_text(key), _text(text), str(revision)) for key, text, revision in found]


def _text(value: object) -> str:
    return value if type(value) is str else as_text(value)


def _revision_at(connection: Connection, address: str) -> object:
    found = connection.execute("SELECT revision FROM records WHERE key = ?", (address,)).fetchall()
    return found[0][0] if found else None


def _compare(found: object, replaces: Revision | None, key: Key[Any]) -> None:
    if found is None:
        raise Missing(key)
    if replaces is not None and replaces != str(found):
        raise Conflict(key)


def _next_revision(connection: Connection, replaced: object = 0) -> int:
    """Above the one that is replaced, too, where somebody has set that by hand. Fails if the counter cannot count."""
    found = connection.execute("SELECT revision FROM meta").fetchall()
    if len(found) != 1 or type(found[0][0]) is not int or not 0 <= found[0][0] < _LAST_REVISION:
        raise damaged("its counter of revisions is not one whole number")
    above = replaced if type(replaced) is int and replaced < _LAST_REVISION else 0
    revision: int = max(found[0][0], above) + 1
    connection.execute("UPDATE meta SET revision = ?", (revision,))
    return revision
