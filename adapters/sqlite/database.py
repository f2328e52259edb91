"""Opening the database file, making it, and saying in plain words why it cannot be used.

A plugin must never make a datastore by accident (an unmounted disk would then look like an empty cluster, and every
address would be given out twice), so a missing file is an error unless the operator asked for a new one.

Invariant: the file has mode 0600 from its first moment whatever the umask, is never reached through a symbolic link,
and is ours (application id) in the layout we know (user version).
"""

from __future__ import annotations

import os
import stat

from adapters.records.text_store import uuid4_text
from adapters.sqlite.engine import _sqlite3
from ports.errors import BadConfiguration, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION_ID = 0x746F7274  # "tort"
LAYOUT = 1
_SMALLEST = 512  # SQLite takes a shorter file for an empty database and writes over it
_WAIT_SECONDS = 0.1  # one wait inside SQLite, during which a termination signal is not seen
# Folding the log back while others write is left to the last one to close, except for a log of 64 MiB: closing holds
# the whole file, so no reader or writer can ever meet a log that is being reset.
_LOG_PAGES = 16384
_SCHEMA = (
    "CREATE TABLE records (key TEXT PRIMARY KEY, text TEXT NOT NULL, revision INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE meta (revision INTEGER NOT NULL)",
    "INSERT INTO meta VALUES (0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {LAYOUT}",
)
_RESTORE = "restore it from a backup, or put in its place what `sqlite3 FILE .recover` saves of it"
_IOERR_SHMMAP = _sqlite3.SQLITE_IOERR | 21 << 8  # Python names the extended codes from 3.11 on
_REASONS = {
    _sqlite3.SQLITE_ERROR: f"its tables are not as we made them; {_RESTORE}",
    _sqlite3.SQLITE_NOTADB: "it is not a SQLite database; name another file, or restore it from a backup",
    _sqlite3.SQLITE_CORRUPT: f"the database is damaged; {_RESTORE}",
    _sqlite3.SQLITE_READONLY: "it cannot be written (read-only)",
    _sqlite3.SQLITE_FULL: "no space is left on the disk",
    _sqlite3.SQLITE_CANTOPEN: "it cannot be opened, or its -wal and -shm files beside it cannot be made",
    _sqlite3.SQLITE_PERM: "permission denied",
    _sqlite3.SQLITE_IOERR: "the disk reports an error",
    _IOERR_SHMMAP: "there is too little memory to map its -shm file",
}


def uuid4() -> str:
    """A random UUID as text."""
    return uuid4_text(os.urandom(16))


def unavailable(path: str, error: _sqlite3.Error) -> Unavailable:
    """The port's error for SQLite's."""
    number = getattr(error, "sqlite_errorcode", 0)
    reason = _REASONS.get(number) or _REASONS.get(number & 0xFF, "SQLite cannot use it")
    return Unavailable(f"datastore {path}: {reason} ({error})")


def damaged(why: str) -> _sqlite3.DatabaseError:
    """What SQLite would raise had it noticed itself."""
    error = _sqlite3.DatabaseError(why)
    error.sqlite_errorcode = _sqlite3.SQLITE_CORRUPT
    return error


def as_text(value: object) -> str:
    """What stands where a text belongs: octets as UTF-8, as far as they are; a number as its digits; nothing as ""."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def open_database(path: str, *, create: bool) -> Connection:
    """A connection in autocommit mode. SQLite's own errors come out as they are: some of them are worth a retry."""
    if not path or "\0" in path or any("\ud800" <= one <= "\udfff" for one in path):  # SQLite wants UTF-8
        raise BadConfiguration(f"datastore path {path!r} is not the name of a file")
    try:
        _check_file(path, create=create)
    except OSError as error:
        raise Unavailable(f"datastore {path}: {error.strerror}") from error
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = _sqlite3.connect(
        f"file:{name}?mode=rw", timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        connection.text_factory = as_text  # of its own accord it refuses a whole listing for one octet
        _check_layout(connection, path, create=create)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_file(path: str, *, create: bool) -> None:
    """OSError, or `Unavailable`, unless there is a regular file of that name (now, if `create`).

    The file is not opened here: closing a descriptor of it would drop the locks of this process's other connections.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        if not create:
            raise Unavailable(f"datastore {path}: no such file; `tortie init --pool CIDR` makes one") from None
        _make_folder(os.path.dirname(os.path.abspath(path)))
        _make_file(path)
        return
    if stat.S_ISLNK(found.st_mode):
        raise Unavailable(f"datastore {path}: it is a symbolic link, which is not followed")
    if not stat.S_ISREG(found.st_mode):
        raise Unavailable(f"datastore {path}: it is not a regular file")
    if 0 < found.st_size < _SMALLEST:
        raise Unavailable(f"datastore {path}: {_REASONS[_sqlite3.SQLITE_NOTADB]}")


def risk_of(path: str) -> str:
    """Who else may read or change the file, "" if nobody: whoever changes it decides which addresses are free."""
    try:
        found = os.lstat(path)
    except OSError:
        return ""
    if not hasattr(os, "geteuid"):
        return ""  # on Windows the mode says nothing; who may do what is inherited from the folder
    if found.st_uid not in (0, os.geteuid()):
        return f"it belongs to user {found.st_uid}; chown it"
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return f"others may read or change it (mode {stat.S_IMODE(found.st_mode):04o}); chmod it to 0600"
    return ""


def _make_folder(folder: str) -> None:
    """The folder and its missing parents, mode 0755 whatever the umask."""
    if os.path.isdir(folder):
        return
    _make_folder(os.path.dirname(folder))
    try:
        os.mkdir(folder, 0o755)
    except FileExistsError:
        return  # another process was quicker
    os.chmod(folder, 0o755)  # noqa: S103 - a folder that holds no secret; the file in it is 0600


def _make_file(path: str) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        return  # another process was quicker
    try:
        if hasattr(os, "fchmod"):  # not on Windows before Python 3.13
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows opens no folders
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)  # the name survives power loss as the contents will
    finally:
        os.close(folder)


def _number(connection: Connection, question: str) -> int:
    number: int = connection.execute(question).fetchall()[0][0]
    return number


def _check_layout(connection: Connection, path: str, *, create: bool) -> None:
    """Asked twice, because another process may lay the file out between two of the questions."""
    for _ in range(2):
        layout = _number(connection, "PRAGMA user_version")
        application = _number(connection, "PRAGMA application_id")
        if layout == 0 and application == 0 and _number(connection, "SELECT count(*) FROM sqlite_master") == 0:
            if not create:
                raise Unavailable(f"datastore {path}: the file is empty; `tortie init` fills it")
            _lay_out(connection)
            return
        if (application, layout) == (APPLICATION_ID, LAYOUT):
            return
    if application != APPLICATION_ID:
        raise Unavailable(f"datastore {path}: the database belongs to another program; name another file")
    raise Unavailable(f"datastore {path}: its layout has version {layout}, this program knows version {LAYOUT}")


def _lay_out(connection: Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _number(connection, "PRAGMA user_version") == 0:  # else another process was quicker
            for statement in _SCHEMA:
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
