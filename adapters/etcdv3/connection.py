"""One etcd, however many endpoints it has: finding one that answers, signing in, trying again, and saying what failed.

What may be repeated is repeated for a while, so that a server's restart or a change of leader is not seen: connecting,
and reads. A write is sent once. When its answer is lost nobody knows whether it has happened, and only those who
decided on it can find out.

Invariant: nothing is waited for past the deadline, and every error names the endpoint, or all that were tried. All
answers that are passed on are of one cluster, and none is older than the one before.
"""

from __future__ import annotations

from adapters.etcdv3.transport import (
    DEADLINE_EXCEEDED,
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    ONE_KEY,
    PERMISSION_DENIED,
    UNAUTHENTICATED,
    UNAVAILABLE,
    EtcdTransportError,
    EtcdUntrusted,
    Question,
)
from ports.errors import Expired, Refused, Unauthorized, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from adapters.etcdv3.settings import Endpoint, EtcdSettings
    from adapters.etcdv3.transport import EtcdTransport, Heard, Open, Range
    from ports.clock import Clock, Deadline

    T = TypeVar("T")

PATIENCE = 10.0  # seconds for which a verb looks for an endpoint that answers; the original's dial time-out
LESS_PATIENCE = (
    1.0  # the same where nobody has ever answered: there can be nothing to undo, which is what is asked next
)
READ_TRY = 5.0  # seconds for a read before another endpoint is asked, if there is one
_PAUSE = 0.2  # seconds between two tries
# etcd has one status for all that is wrong with a request; only its text tells that credentials are.
_AUTH_FAULTS = ("authentication failed", "user name is empty", "user name not found", "revision of auth store is old")
_STALE_TOKEN = ("invalid auth token", "revision of auth store is old")


class Connection:
    """Connects on first use. `opener` makes a transport; `discover` finds the endpoints where settings name none.

    `hasty`: somebody waits at a terminal, and is told at once that nobody listens at any of them; a plugin tries again,
    since its next call may be a minute away.
    """

    def __init__(
        self,
        settings: EtcdSettings,
        clock: Clock,
        opener: Open,
        discover: Callable[[str, Clock, Deadline], tuple[Endpoint, ...]],
        *,
        hasty: bool = False,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._open = opener
        self._discover = discover
        self._endpoints = settings.endpoints
        self._transport: EtcdTransport | None = None
        self._token = ""
        self._reached, self._patience = False, PATIENCE
        self._hasty = hasty
        self._known: Heard | None = None

    def ask(
        self,
        verb: Callable[[EtcdTransport, float], T],
        deadline: Deadline,
        *,
        repeatable: bool = False,
        reads: tuple[Range, ...] = ONE_KEY.ranges,
    ) -> T:
        """What the verb answers; it gets a transport and how many seconds it may take.

        `reads` is what a verb that reads will ask for, so that connecting can bring the answer along.

        `Unavailable`, `Expired`, `Unauthorized`, or `Refused` for a request that etcd does not take.
        """
        patience = deadline.sooner(self._clock.monotonic(), self._patience)
        while True:
            transport = self._connected(deadline, patience, reads)
            try:
                return self._signed_in(verb, transport, deadline, repeatable=repeatable)
            except EtcdTransportError as error:
                fault = error
            except BaseException:  # a signal: the transport may be in the middle of a request
                self.close()
                raise
            lost = fault.status in (UNAVAILABLE, DEADLINE_EXCEEDED)
            if lost:
                self._leave(transport)
            if not (lost and (repeatable or fault.harmless)) or patience.passed(self._clock.monotonic()):
                raise self._translated(fault, f"etcd {transport.endpoint}", deadline) from fault
            self._clock.sleep(_PAUSE)

    def _leave(self, transport: EtcdTransport) -> None:
        """Another endpoint is tried first next time, if there is one."""
        self.close()
        others = [endpoint for endpoint in self._endpoints if endpoint != transport.endpoint]
        self._endpoints = (*others, transport.endpoint)

    def close(self) -> None:
        """Safe to repeat; the next verb connects again."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def _connected(self, deadline: Deadline, patience: Deadline, reads: tuple[Range, ...]) -> EtcdTransport:
        refusal: EtcdTransportError | None = None
        while self._transport is None:
            try:
                endpoints = self._found_endpoints(deadline)
                question = self._question(reads)
                self._transport = self._open(endpoints, self._settings.tls, self._left(patience), question)
            except EtcdTransportError as error:
                if error.status == UNAVAILABLE or refusal is None:  # the last try may be too short to learn anything
                    refusal = error
                unheard = self._hasty and not self._reached and error.status == UNAVAILABLE
                if isinstance(error, EtcdUntrusted) or unheard or patience.passed(self._clock.monotonic()):
                    if not self._reached:
                        self._patience = LESS_PATIENCE
                    raise self._translated(refusal, str(self._settings), deadline) from error
                self._clock.sleep(min(_PAUSE, self._left(patience)))
            else:
                self._reached, self._patience = True, PATIENCE
        return self._transport

    def _question(self, reads: tuple[Range, ...]) -> Question:
        """What will be asked first: for a token, where one is needed."""
        if self._settings.user and not self._token:
            return Question(reads, user=self._settings.user, password=self._settings.password)
        return Question(reads, self._token)

    def _found_endpoints(self, deadline: Deadline) -> tuple[Endpoint, ...]:
        if not self._endpoints:
            self._endpoints = self._discover(self._settings.discovery, self._clock, deadline)
        return self._endpoints

    def _signed_in(
        self,
        verb: Callable[[EtcdTransport, float], T],
        transport: EtcdTransport,
        deadline: Deadline,
        *,
        repeatable: bool,
    ) -> T:
        """A token that has expired is replaced once; etcd has then done nothing yet."""
        if self._settings.user and not self._token:
            self._sign_in(transport, deadline)
        transport.token = self._token
        try:
            return self._heeded(transport, verb(transport, self._try_seconds(deadline, repeatable=repeatable)))
        except EtcdTransportError as error:
            if not (self._token and any(text in str(error) for text in _STALE_TOKEN)):
                raise
        self._sign_in(transport, deadline)
        transport.token = self._token
        return self._heeded(transport, verb(transport, self._try_seconds(deadline, repeatable=repeatable)))

    def _heeded(self, transport: EtcdTransport, answer: T) -> T:
        """The answer, if it is of the cluster that has answered before, and not older than that."""
        heard, transport.heard = transport.heard, None
        if heard is None:
            return answer
        known = self._known or heard
        if heard.cluster != known.cluster:
            what = f"it belongs to cluster {heard.cluster:x}, not to {known.cluster:x} as what was asked before"
            raise EtcdTransportError(UNAVAILABLE, f"{what}: the endpoints must be those of one cluster")
        if heard.revision < known.revision:
            what = f"its revision is {heard.revision}, after {known.revision}"
            raise EtcdTransportError(UNAVAILABLE, f"{what}: is this member cut off, or was it restored from a backup?")
        self._known = heard
        return answer

    def _sign_in(self, transport: EtcdTransport, deadline: Deadline) -> None:
        """An etcd without authentication takes everybody, so it is no error to have a password for it."""
        try:
            self._token = transport.authenticate(self._settings.user, self._settings.password, self._left(deadline))
        except EtcdTransportError as error:
            if error.status != FAILED_PRECONDITION:
                raise EtcdTransportError(error.status, str(error), harmless=True) from error
            self._token = ""

    def _left(self, deadline: Deadline) -> float:
        """Never nothing: an attempt that has begun ends by itself."""
        return max(0.001, deadline.left(self._clock.monotonic()))

    def _try_seconds(self, deadline: Deadline, *, repeatable: bool) -> float:
        left = self._left(deadline)
        return min(left, READ_TRY) if repeatable and len(self._endpoints) > 1 else left

    def _translated(self, error: EtcdTransportError, where: str, deadline: Deadline) -> Exception:
        """The port's error for a transport's."""
        status, text = error.status, f"{where}: {error}"
        if status in (UNAVAILABLE, DEADLINE_EXCEEDED) and not isinstance(error, EtcdUntrusted):
            if deadline.passed(self._clock.monotonic()):
                return Expired(text if status == UNAVAILABLE else where)
            return Unavailable(text)
        if status in (PERMISSION_DENIED, UNAUTHENTICATED):
            return Unauthorized(text)
        if status == INVALID_ARGUMENT:
            return Unauthorized(text) if any(fault in str(error) for fault in _AUTH_FAULTS) else Refused(text)
        return Unavailable(text)
