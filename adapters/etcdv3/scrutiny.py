"""Whether the answer to a transaction can be true: it has the shape of what was asked, and does not contradict itself.

A member that is broken, or something that answers in its place, may send rows that nobody asked for, or say that a
write has happened and show that it has not. Whoever believed it would act on somebody else's record.

Invariant: pure. What is returned is about the keys that were asked for; everything else is ValueError, which says what
is wrong with the answer.
"""

from __future__ import annotations

from adapters.etcdv3.messages import DELETE, PUT, RANGE, Done
from adapters.etcdv3.transport import INTERNAL, EtcdTransportError, Page, WriteOutcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from adapters.etcdv3.transport import Range, Row, Writing

    T = TypeVar("T")

_TO_THE_LAST = b"\0"  # as the end of a range
_NO_REVISION = "a revision that no store has"


class BadAnswer(ValueError):
    """An answer that etcd cannot have given to what was asked."""


def believed(read: Callable[[], T]) -> T:
    """What it reads out of an answer; EtcdTransportError if it raises ValueError."""
    try:
        return read()
    except ValueError as error:
        raise EtcdTransportError(INTERNAL, f"the server's answer is not a message of etcd's: {error}") from error


def read_result(done: Done, ranges: Sequence[Range]) -> list[list[Row]]:
    """Of a transaction that reads these ranges."""
    if not done.succeeded or done.operations != (RANGE,) * len(ranges):
        raise BadAnswer("not one list for each range")
    if done.revision <= 0:
        raise BadAnswer(_NO_REVISION)
    if done.more:
        raise BadAnswer("a part of a list where the whole was asked for")
    for wanted, rows in zip(ranges, done.rows):
        _require(rows, wanted, done.revision)
    return list(done.rows)


def page_result(done: Done, wanted: Range, most: int, revision: int) -> Page:
    """Of a transaction that reads the first rows of a range, as they were at a revision (0: now)."""
    part = Done(done.succeeded, done.revision, done.rows, done.deleted, done.operations, more=False)
    (rows,) = read_result(part, (wanted,))
    if len(rows) > most or (done.more and not rows):
        raise BadAnswer("not as many rows as were asked for")
    return Page(rows, done.more, revision or done.revision)


def write_result(done: Done, key: bytes, expected: int, operation: int = PUT) -> WriteOutcome:
    """Of a transaction that puts or deletes a key if it is at a revision (0: if it is not there), else reads it."""
    if done.revision <= 0:
        raise BadAnswer(_NO_REVISION)
    if done.succeeded:
        if done.operations != (operation,) or (operation == DELETE and done.deleted != 1):
            raise BadAnswer("it says that a write has happened, and shows none")
        if done.revision <= expected:
            raise BadAnswer(_NO_REVISION)
        return WriteOutcome(done=True, revision=done.revision)
    if done.operations != (RANGE,) or done.more:
        raise BadAnswer("not what is there instead")
    (rows,) = done.rows
    _require(rows, (key, b""), done.revision)
    found = rows[0][2] if rows else 0
    if found == expected:
        raise BadAnswer("it refuses a write whose condition holds")
    return WriteOutcome(done=False, revision=found)


def writings_result(done: Done, writings: Sequence[Writing]) -> tuple[WriteOutcome, ...]:
    """Of a transaction that puts and deletes keys if each is at its revision, else reads them."""
    if done.revision <= 0:
        raise BadAnswer(_NO_REVISION)
    if done.succeeded:
        deletions = sum(one.value is None for one in writings)
        if done.operations != tuple([DELETE if one.value is None else PUT for one in writings]):
            raise BadAnswer("it says that writes have happened, and shows others")
        if done.deleted != deletions or done.revision <= max([one.revision for one in writings]):
            raise BadAnswer("it says that a write has happened, and shows none")
        return tuple([WriteOutcome(done=True, revision=done.revision) for _ in writings])
    if done.operations != (RANGE,) * len(writings) or done.more:
        raise BadAnswer("not what is there instead")
    for one, rows in zip(writings, done.rows):
        _require(rows, (one.key, b""), done.revision)
    found = [rows[0][2] if rows else 0 for rows in done.rows]
    if found == [one.revision for one in writings]:
        raise BadAnswer("it refuses a write whose conditions hold")
    return tuple([WriteOutcome(done=False, revision=revision) for revision in found])


def deletion_result(done: Done) -> WriteOutcome:
    """Of a transaction that deletes a key whatever its revision."""
    if not done.succeeded or done.operations != (DELETE,) or done.deleted not in (0, 1) or done.revision <= 0:
        raise BadAnswer("not the end of one key")
    return WriteOutcome(done.deleted > 0, done.revision if done.deleted else 0)


def _require(rows: Sequence[Row], wanted: Range, revision: int) -> None:
    """Rows are in the range, in order, and not from the future."""
    first, end = wanted
    before = b""
    for key, _, changed in rows:
        if not (key == first if not end else first <= key and (key < end or end == _TO_THE_LAST)):
            raise BadAnswer("a key that was not asked for")
        if before >= key:
            raise BadAnswer("keys that are not in their order")
        if not 0 < changed <= revision:
            raise BadAnswer(_NO_REVISION)
        before = key
