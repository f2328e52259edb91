"""The datastore port over any store of texts by key with a revision each: what sqlite, memory and etcd have in common.

Such a store answers ranges of keys and swaps one text at a time; keys, records, what a listing covers, and what every
v3 resource gets on its first write are decided here, once.

Invariant: whatever is written was encoded here and whatever is read was decoded here, so all such stores agree.
"""

from __future__ import annotations

from abc import abstractmethod

from adapters.records.codec import (
    ROOTS,
    decode,
    encode,
    key_text,
    listed_beside,
    listing_prefix,
    listing_suffix,
    matches,
    parse_key,
)
from adapters.records.endpoints import DEFAULT_ALLOW
from adapters.records.members import BadRecord
from domain.moment import rfc3339
from domain.value import Value
from ports.datastore import BadText, Datastore, Key, Listing, ProfileKey, Profiles, Stored
from ports.errors import AlreadyExists, Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from ports.clock import Clock, Deadline
    from ports.datastore import Change, Need, Revision

    R = TypeVar("R")
    Row = tuple[str, str, str]


def uuid4_text(random: bytes) -> str:
    """The UUID of version 4 that sixteen random bytes make."""
    octets = bytearray(random)
    octets[6] = octets[6] & 0x0F | 0x40
    octets[8] = octets[8] & 0x3F | 0x80
    digits = octets.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_DEFAULT_ALLOW_KEY = ProfileKey(DEFAULT_ALLOW.metadata.name)
_DEFAULT_ALLOW = Stored(_DEFAULT_ALLOW_KEY, DEFAULT_ALLOW, "1")


class Span(Value):
    """Keys to read: the one that is `start`, or (`is_prefix`) all that begin with it."""

    start: str
    is_prefix: bool = False


class TextStore(Datastore):
    """A store derives from this and supplies `read`, `insert`, `swap` and `remove`.

    `name` is what errors call it. `new_uid` makes the uid of a v3 resource written for the first time.
    """

    def __init__(self, name: str, clock: Clock, new_uid: Callable[[], str]) -> None:
        self.name = name
        self._clock = clock
        self._new_uid = new_uid

    @abstractmethod
    def read(self, spans: Sequence[Span], deadline: Deadline) -> Sequence[Iterable[Row]]:
        """Per span the rows (key, text, revision) in the order of their keys; of a span that is one key, a list.

        What is no list is gone through once, before the rows of the spans after it.
        """

    @abstractmethod
    def insert(self, key: Key[Any], row: tuple[str, str], deadline: Deadline) -> Revision:
        """Write (key, text), which must be new, else `AlreadyExists(key)`."""

    @abstractmethod
    def swap(self, key: Key[Any], row: tuple[str, str], replaces: Revision, deadline: Deadline) -> Revision:
        """Write (key, text) over that revision; else `Conflict(key)` or `Missing(key)`."""

    @abstractmethod
    def remove(self, key: Key[Any], address: str, replaces: Revision | None, deadline: Deadline) -> None:
        """Delete what is at that key text; else `Conflict(key)` or `Missing(key)`."""

    def expire(self, deadline: Deadline) -> None:
        """`Expired`, naming this store, past the deadline."""
        if deadline.passed(self._clock.monotonic()):
            raise Expired(self.name)

    def fetch(self, *needs: Need[Any], deadline: Deadline) -> tuple[Any, ...]:
        self.expire(deadline)
        spans = [spans_of(need) for need in needs]
        answers = iter(self.read([span for of_need in spans for span in of_need], deadline))
        return tuple([self._read_as(need, [next(answers) for _ in of_need]) for need, of_need in zip(needs, spans)])

    def unreadable(self, deadline: Deadline, listing: Listing[Any] | None = None) -> tuple[BadText, ...]:
        self.expire(deadline)
        spans = spans_of(listing) if listing else [Span(root, is_prefix=True) for root in ROOTS]
        found: list[BadText] = []
        for span in spans:
            for address, text, revision in _given_up(self.read([span], deadline)[0]):
                key = parse_key(address)
                if key is None or (listing is not None and not matches(listing, key)):
                    continue
                try:
                    decode(key, text)
                except BadRecord as error:
                    found.append(_bad(key, error.fault, text, revision))
        return tuple(found)

    def create(self, key: Key[R], record: R, deadline: Deadline) -> Stored[R]:
        self.expire(deadline)
        if key == _DEFAULT_ALLOW_KEY:
            raise AlreadyExists(key)
        record = self._born(record)
        revision = self.insert(key, (key_text(key), encode(key, record)), deadline)
        return Stored(key, record, revision)

    def update(self, key: Key[R], record: R, replaces: Revision, deadline: Deadline) -> Stored[R]:
        self.expire(deadline)
        if key == _DEFAULT_ALLOW_KEY:
            raise Refused(f"operation Update is not supported on {key}")
        revision = self.swap(key, (key_text(key), encode(key, record)), replaces, deadline)
        return Stored(key, record, revision)

    def delete(self, key: Key[R], replaces: Revision | None, deadline: Deadline) -> None:
        self.expire(deadline)
        if key == _DEFAULT_ALLOW_KEY:
            raise Refused(f"operation Delete is not supported on {key}")
        self.remove(key, key_text(key), replaces, deadline)

    def write(self, changes: Sequence[Change], deadline: Deadline) -> tuple[Stored[Any] | None, ...]:
        self.expire(deadline)
        rows = [(key_text(one.key), None if one.record is None else encode(one.key, one.record)) for one in changes]
        revision = self.swap_all(changes, rows, deadline)
        return tuple([None if one.record is None else Stored(one.key, one.record, revision) for one in changes])

    def swap_all(
        self, changes: Sequence[Change], rows: Sequence[tuple[str, str | None]], deadline: Deadline
    ) -> Revision:
        """Where there is `writes_together`: each row's text (None: nothing) over what its change replaces, or none."""
        raise NotImplementedError

    def _born(self, record: Any) -> Any:
        """A v3 resource gets the uid and the creation time that it lacks; other records are as they are."""
        metadata = getattr(record, "metadata", None)
        if metadata is None or (metadata.uid and metadata.created):
            return record
        created = metadata.created or rfc3339(self._clock.now())
        return record.replace(metadata=metadata.replace(uid=metadata.uid or self._new_uid(), created=created))

    def _read_as(self, need: Need[Any], found: list[Iterable[Row]]) -> Any:
        if isinstance(need, Key):
            return _one(need, list(found[0]))
        assert isinstance(need, Listing)  # noqa: S101 - a need is a key or a listing
        return self._many(need, found[0] if len(found) == 1 else sorted([row for rows in found for row in rows]))

    def _many(self, listing: Listing[Any], rows: Iterable[Row]) -> tuple[Stored[Any], ...]:
        found: list[Stored[Any]] = []
        suffix = listing_suffix(listing)
        for address, text, revision in _given_up(rows):
            if not address.endswith(suffix):
                continue
            key = parse_key(address)
            if key is None or not matches(listing, key):
                continue
            try:
                found.append(Stored(key, decode(key, text), revision))
            except BadRecord as error:  # one bad record must not keep a node from using the others
                self.left_out += (BadText(key, error.fault),)
        if isinstance(listing, Profiles):
            found.append(_DEFAULT_ALLOW)
        return tuple(found)


def spans_of(need: Need[Any]) -> list[Span]:
    """What of a store answers a need."""
    if isinstance(need, Key):
        return [Span(key_text(need))]
    assert isinstance(need, Listing)  # noqa: S101 - a need is a key or a listing
    return [Span(listing_prefix(need), is_prefix=True), *[Span(text) for text in listed_beside(need)]]


def _given_up(rows: Iterable[Row]) -> Iterator[Row]:
    """One after the other, each forgotten: texts and what they say need not be in memory at once."""
    if not isinstance(rows, list):
        yield from rows
        return
    rows.reverse()
    while rows:
        yield rows.pop()


def _bad(key: Key[Any], fault: str, text: str, revision: Revision) -> BadText:
    from adapters.records.salvage import salvaged_text

    return BadText(key, fault, text, revision, salvaged_text(key, text))


def _one(key: Key[R], rows: list[Row]) -> Stored[R] | None:
    """BadRecord when it is there but cannot be used."""
    if not rows:
        return _DEFAULT_ALLOW if key == _DEFAULT_ALLOW_KEY else None  # type: ignore[return-value]  # R is Profile there
    _, text, revision = rows[0]
    return Stored(key, decode(key, text), revision)
