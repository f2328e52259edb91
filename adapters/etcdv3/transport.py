"""The seam between what we mean by a record and what goes over the wire to etcd: bytes and status codes.

A transport is one connection to one endpoint. It knows keys, values, revisions and gRPC's status numbers; it knows
nothing of records, tries nothing twice, and waits no longer than it is told. There are two ways to build one: on
a library, and on bare sockets; the same contract suite runs over both (tests/contracts/etcd_transport.py).

Invariant: a verb that returned has happened at one revision of the whole store; one that raised may or may not have
happened, unless `EtcdTransportError.harmless` says that it cannot have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol, TypeAlias

    from adapters.etcdv3.settings import Endpoint

    Range: TypeAlias = tuple[bytes, bytes]
    """(key, b"") for one key, (first, end) for the keys from `first` on and before `end`."""
    Row: TypeAlias = tuple[bytes, bytes, int]
    """Key, value, revision of its last change."""

# gRPC's status numbers, as far as anybody here asks for one by name
UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, PERMISSION_DENIED = 2, 3, 4, 7
FAILED_PRECONDITION, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 9, 13, 14, 16


class EtcdTransportError(Exception):
    """`str()` is what the other side or the system said. `harmless`: nothing was sent, so nothing has happened."""

    def __init__(self, status: int, message: str, *, harmless: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.harmless = harmless


class EtcdUntrusted(EtcdTransportError):
    """The two sides do not accept each other's certificates or versions of TLS; another try changes nothing."""

    def __init__(self, message: str) -> None:
        super().__init__(UNAVAILABLE, message, harmless=True)


class EtcdTls(Value):
    """What a connection by https is made with; all PEM. Without `ca` the system's authorities count."""

    ca: bytes = b""
    cert: bytes = b""
    key: bytes = b""
    only_newest: bool = False
    """TLS 1.3 at least; else 1.2 at least."""

    def __repr__(self) -> str:
        return "EtcdTls(…)"  # not the key


class Question(Value):
    """What a caller will want to know first: to sign in if there is a `user`, else `ranges`, asked with `token`.

    It is asked of each endpoint to see which one lives, so it may be that the answer is here already when the caller
    comes for it. It needs the whole cluster, as a server without one takes connections, too.
    """

    ranges: tuple[Range, ...]
    token: str = ""
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Question({self.ranges!r}, …)"  # neither the password nor the token


ONE_KEY = Question(((b"\0", b""),))
"""Whether we may read that key does not matter: a refusal is an answer."""


class Page(Value):
    """The first rows of a range, in key order, as they were at `revision` of the store. `more`: it has others."""

    rows: list[Row]
    more: bool
    revision: int


class WriteOutcome(Value):
    """What became of a guarded write.

    If `done`, `revision` is the store's after it, which is the key's new one. Else `revision` is the one that the key
    has instead of the expected one: 0 if there is no such key.
    """

    done: bool
    revision: int


class Writing(Value):
    """A key's part of a write of several: to get that value (None: to go), if it is at that revision (0: not there)."""

    key: bytes
    value: bytes | None
    revision: int


class Heard(Value):
    """What an answer says of the store as a whole: the ID of its cluster, and its revision."""

    cluster: int
    revision: int


class EtcdTransport(ABC):
    """All verbs raise `EtcdTransportError`. `seconds` is how long one may take; `token` goes with each request.

    `heard` is from the last answer that was asked for.
    """

    endpoint: Endpoint
    token: str = ""
    heard: Heard | None = None

    @abstractmethod
    def authenticate(self, user: str, password: str, seconds: float) -> str:
        """A token for `token`."""

    @abstractmethod
    def read(self, ranges: Sequence[Range], seconds: float) -> list[list[Row]]:
        """Per range the rows in key order, all of one instant."""

    @abstractmethod
    def read_page(self, wanted: Range, most: int, revision: int, seconds: float) -> Page:
        """The first `most` rows of a range at a revision (0: now)."""

    @abstractmethod
    def create(self, key: bytes, value: bytes, seconds: float) -> WriteOutcome:
        """Put, if there is no such key."""

    @abstractmethod
    def replace(self, key: bytes, value: bytes, revision: int, seconds: float) -> WriteOutcome:
        """Put, if the key is at that revision."""

    @abstractmethod
    def delete(self, key: bytes, revision: int | None, seconds: float) -> WriteOutcome:
        """Delete, if the key is at that revision (None: at any; not `done` with revision 0 if there is none)."""

    @abstractmethod
    def write_all(self, writings: Sequence[Writing], seconds: float) -> tuple[WriteOutcome, ...]:
        """All of it, if each of the keys is as it says, else nothing; what became of each."""

    @abstractmethod
    def close(self) -> None:
        """Safe to repeat."""


if TYPE_CHECKING:

    class Open(Protocol):
        """Connects to whichever endpoint answers first, each getting a short start over the next one.

        Within the given seconds, else `EtcdTransportError`: status UNAVAILABLE when each has refused, and the text
        says how; DEADLINE_EXCEEDED when none has answered.
        """

        def __call__(
            self, endpoints: Sequence[Endpoint], tls: EtcdTls, seconds: float, question: Question = ONE_KEY
        ) -> EtcdTransport: ...
