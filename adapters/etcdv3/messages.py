"""The messages of etcd_api.proto, written and read by hand for a transport that loads no library.

Invariant: pure. Field numbers are those of the .proto beside this file; fields that nobody asks for are left unread.
"""

from __future__ import annotations

from adapters.wire.protobuf import BadMessage, delimited, fields, integer, message, number, octets, signed, text
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.etcdv3.transport import Row

TXN = "/etcdserverpb.KV/Txn"
AUTHENTICATE = "/etcdserverpb.Auth/Authenticate"
_COMPARE, _SUCCESS, _FAILURE = 1, 2, 3  # of TxnRequest
_LONGEST_TOKEN = 1 << 16  # octets; it goes with each request
RANGE, PUT, DELETE = 1, 2, 3  # of RequestOp and ResponseOp
_TARGET_MOD = 2  # of Compare; its result EQUAL and target VERSION are 0


class Done(Value):
    """The answer to a transaction: whether its guard held, the store's revision, and what each operation gave."""

    succeeded: bool
    revision: int
    rows: tuple[list[Row], ...]
    deleted: int
    """How many keys its deletions took away."""
    operations: tuple[int, ...] = ()
    """RANGE, PUT or DELETE, of each answer."""
    more: bool = False
    """Whether one of the lists is only a part."""
    cluster: int = 0
    """The cluster's ID."""


def get(key: bytes, end: bytes = b"", limit: int = 0, revision: int = 0) -> bytes:
    """As an operation of a transaction: one key, or the keys from `key` on and before `end`.

    At most `limit` of them, as they were at `revision`; 0: all, and now.
    """
    return message(RANGE, octets(1, key), octets(2, end), number(3, limit), number(4, revision))


def put(key: bytes, value: bytes) -> bytes:
    return message(PUT, octets(1, key), octets(2, value))


def delete(key: bytes) -> bytes:
    return message(DELETE, octets(1, key))


def absent(key: bytes) -> bytes:
    """As a guard: there is no such key, so its version is 0."""
    return octets(3, key) + number(4, 0, present=True)


def unchanged(key: bytes, revision: int) -> bytes:
    """As a guard: the key is at that revision."""
    return number(2, _TARGET_MOD) + octets(3, key) + number(6, revision, present=True)


def transaction(guards: Sequence[bytes], then: Sequence[bytes], otherwise: Sequence[bytes] = ()) -> bytes:
    parts = ((_COMPARE, guards), (_SUCCESS, then), (_FAILURE, otherwise))
    return b"".join([message(field, one) for field, ones in parts for one in ones])


def credentials(user: str, password: str) -> bytes:
    return text(1, user) + text(2, password)


def read_token(answer: bytes) -> str:
    """ValueError for what is no such message."""
    token = b""
    for field, value in fields(answer):
        if field == 2:
            token = bytes(delimited(value))
    if len(token) > _LONGEST_TOKEN:
        raise BadMessage("a token that is too long")
    return token.decode()


def read_done(answer: bytes) -> Done:
    """ValueError for what is no such message."""
    succeeded, revision, deleted, cluster, more = False, 0, 0, 0, False
    rows: list[list[Row]] = []
    operations: list[int] = []
    for field, value in fields(answer):
        if field == 1:
            cluster, revision = _read_header(delimited(value))
        elif field == 2:
            succeeded = bool(integer(value))
        elif field == 3:
            for kind, result in fields(delimited(value)):
                operations.append(kind)
                if kind == RANGE:
                    listed, part = _read_rows(delimited(result))
                    rows.append(listed)
                    more = more or part
                elif kind == DELETE:
                    deleted += _read_deleted(delimited(result))
    return Done(succeeded, revision, tuple(rows), deleted, tuple(operations), more, cluster)


def _read_header(header: memoryview) -> tuple[int, int]:
    cluster = revision = 0
    for field, value in fields(header):
        if field == 1:
            cluster = integer(value)
        elif field == 3:
            revision = signed(value)
    return cluster, revision


def _read_deleted(result: memoryview) -> int:
    return next((signed(value) for field, value in fields(result) if field == 2), 0)


def _read_rows(result: memoryview) -> tuple[list[Row], bool]:
    """The rows, and whether there are more."""
    rows, more = [], False
    for field, value in fields(result):
        if field == 2:
            rows.append(_read_row(delimited(value)))
        elif field == 3:
            more = bool(integer(value))
    return rows, more


def _read_row(pair: memoryview) -> Row:
    key = value = b""
    revision = 0
    for field, item in fields(pair):
        if field == 1:
            key = bytes(delimited(item))
        elif field == 3:
            revision = signed(item)
        elif field == 5:
            value = bytes(delimited(item))
    return key, value, revision
