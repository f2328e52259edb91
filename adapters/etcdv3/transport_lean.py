"""A transport on bare sockets: gRPC calls of `adapters.wire`, messages written by hand.

Several endpoints are raced: each gets a short start over the next. What is asked of them is what the caller wants to
know first anyway, so a connection costs no request of its own. A server that has lost its cluster takes connections,
but does not answer, and so does not win. A refusal is an answer, too: it may be about who asks.

Invariant: of all connections that were begun one is left, or none; a request that changes anything is sent once, to one
server.
"""

from __future__ import annotations

from time import monotonic

from adapters.etcdv3 import messages
from adapters.etcdv3.scrutiny import believed, deletion_result, page_result, read_result, write_result, writings_result
from adapters.etcdv3.transport import (
    DEADLINE_EXCEEDED,
    ONE_KEY,
    UNAVAILABLE,
    EtcdTransport,
    EtcdTransportError,
    EtcdUntrusted,
    Heard,
    WriteOutcome,
)
from adapters.wire import faults
from adapters.wire.grpc_call import Channel, StatusFault
from adapters.wire.sockets import HEAD_START, connect_tcp
from adapters.wire.waiting import drive, race
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from adapters.etcdv3.settings import Endpoint
    from adapters.etcdv3.transport import EtcdTls, Page, Question, Range, Row, Writing
    from adapters.wire.http2 import Exchange
    from adapters.wire.waiting import Work

_SERVERS_DEADLINE = "context deadline exceeded"


class _Request(Value):
    method: str
    message: bytes
    token: str = ""


class _Arrived(Value):
    """A connection over which the answer to a request has begun to come, or been refused."""

    endpoint: Endpoint
    channel: Channel
    request: _Request
    answer: Exchange | StatusFault


def open_lean(
    endpoints: Sequence[Endpoint], tls: EtcdTls, seconds: float, question: Question = ONE_KEY
) -> EtcdTransport:
    """An `adapters.etcdv3.transport.Open`."""
    ends = monotonic() + seconds
    request = _first_request(question)
    try:
        context = _context(tls) if any(endpoint.secure for endpoint in endpoints) else None
        attempts = [_attempt(endpoint, context, request, ends) for endpoint in endpoints]
        return LeanEtcdTransport(drive(race(attempts, HEAD_START), ends))
    except faults.AllFailed as failed:
        raise _failure(endpoints, failed.faults) from failed
    except faults.TimedOut:
        error = EtcdTransportError(DEADLINE_EXCEEDED, "no answer to the attempt to connect", harmless=True)
        raise error from None
    except faults.Untrusted as fault:  # what we have for certificates is of no use
        raise EtcdUntrusted(str(fault)) from fault


class LeanEtcdTransport(EtcdTransport):
    """On a connection that has begun to answer a first request; that answer is for the first who asks the same."""

    def __init__(self, arrived: _Arrived) -> None:
        self.endpoint = arrived.endpoint
        self._channel = arrived.channel
        self._arrived: _Arrived | None = arrived

    def authenticate(self, user: str, password: str, seconds: float) -> str:
        request = _Request(messages.AUTHENTICATE, messages.credentials(user, password))
        return believed(lambda: messages.read_token(self._ask(request, seconds)))

    def read(self, ranges: Sequence[Range], seconds: float) -> list[list[Row]]:
        return believed(lambda: read_result(self._transact(_reading(ranges), seconds), ranges))

    def read_page(self, wanted: Range, most: int, revision: int, seconds: float) -> Page:
        reading = messages.transaction((), (messages.get(*wanted, most, revision),))
        return believed(lambda: page_result(self._transact(reading, seconds), wanted, most, revision))

    def create(self, key: bytes, value: bytes, seconds: float) -> WriteOutcome:
        return self._write(key, 0, messages.put(key, value), seconds)

    def replace(self, key: bytes, value: bytes, revision: int, seconds: float) -> WriteOutcome:
        return self._write(key, revision, messages.put(key, value), seconds)

    def delete(self, key: bytes, revision: int | None, seconds: float) -> WriteOutcome:
        if revision is not None:
            return self._write(key, revision, messages.delete(key), seconds, messages.DELETE)
        deletion = messages.transaction((), (messages.delete(key),))
        return believed(lambda: deletion_result(self._transact(deletion, seconds)))

    def write_all(self, writings: Sequence[Writing], seconds: float) -> tuple[WriteOutcome, ...]:
        written = messages.transaction(
            [_guard(one.key, one.revision) for one in writings],
            [messages.delete(one.key) if one.value is None else messages.put(one.key, one.value) for one in writings],
            [messages.get(one.key) for one in writings],
        )
        return believed(lambda: writings_result(self._transact(written, seconds), writings))

    def close(self) -> None:
        self._channel.close()

    def _write(
        self, key: bytes, expected: int, operation: bytes, seconds: float, kind: int = messages.PUT
    ) -> WriteOutcome:
        """If the key is at that revision; 0: if it is not there."""
        written = messages.transaction((_guard(key, expected),), (operation,), (messages.get(key),))
        return believed(lambda: write_result(self._transact(written, seconds), key, expected, kind))

    def _transact(self, message: bytes, seconds: float) -> messages.Done:
        """ValueError for an answer that is no message."""
        done = messages.read_done(self._ask(_Request(messages.TXN, message, self.token), seconds))
        self.heard = Heard(done.cluster, done.revision)
        return done

    def _ask(self, request: _Request, seconds: float) -> bytes:
        ends = monotonic() + seconds
        arrived, self._arrived = self._arrived, None
        try:
            if arrived is not None and arrived.request == request:
                return drive(_rest(arrived), ends)
            return drive(self._next(arrived, request, seconds), ends)
        except StatusFault as fault:
            raise _refusal(fault) from fault
        except faults.TimedOut:
            self.close()
            raise EtcdTransportError(DEADLINE_EXCEEDED, "no answer") from None
        except faults.Fault as fault:
            self.close()
            raise EtcdTransportError(UNAVAILABLE, str(fault)) from fault

    def _next(self, unwanted: _Arrived | None, request: _Request, seconds: float) -> Work[bytes]:
        """One request after the other: an answer that nobody wants is read to its end."""
        if unwanted is not None:
            try:  # noqa: SIM105 - contextlib is not loaded on this path
                yield from _rest(unwanted)
            except StatusFault:
                pass
        return (yield from self._channel.call(request.method, request.message, seconds, request.token))


def _guard(key: bytes, expected: int) -> bytes:
    return messages.unchanged(key, expected) if expected else messages.absent(key)


def _first_request(question: Question) -> _Request:
    if question.user:
        return _Request(messages.AUTHENTICATE, messages.credentials(question.user, question.password))
    return _Request(messages.TXN, _reading(question.ranges), question.token)


def _reading(ranges: Sequence[Range]) -> bytes:
    return messages.transaction((), [messages.get(first, end) for first, end in ranges])


def _context(tls: EtcdTls) -> Any:
    from adapters.wire.grpc_call import ALPN
    from adapters.wire.tls import TlsSettings, make_context

    return make_context(TlsSettings(tls.ca, tls.cert, tls.key, only_newest=tls.only_newest, protocols=ALPN))


def _attempt(endpoint: Endpoint, context: Any, request: _Request, ends: float) -> Work[_Arrived]:
    """Until an answer begins. One that says that the server cannot answer is none."""
    stream = yield from connect_tcp(endpoint.host, endpoint.port)
    if endpoint.secure:
        from adapters.wire.tls import start_tls

        stream = yield from start_tls(stream, context, endpoint.host)
    channel = Channel(stream, f"{endpoint.host_text}:{endpoint.port}", secure=endpoint.secure)
    try:
        seconds = ends - monotonic()
        answer = yield from channel.begin(request.method, request.message, seconds, request.token)
    except StatusFault as fault:
        if _refusal(fault).status in (UNAVAILABLE, DEADLINE_EXCEEDED):
            channel.close()
            raise
        return _Arrived(endpoint, channel, request, fault)
    except BaseException:
        channel.close()
        raise
    return _Arrived(endpoint, channel, request, answer)


def _rest(arrived: _Arrived) -> Work[bytes]:
    if isinstance(arrived.answer, StatusFault):
        raise arrived.answer
    return (yield from arrived.channel.finish(arrived.answer))


def _refusal(fault: StatusFault) -> EtcdTransportError:
    """The server stops at our deadline, too. It has no status for that, and its answer may be here before ours."""
    text = str(fault) or f"status {fault.status}"
    status = DEADLINE_EXCEEDED if text == _SERVERS_DEADLINE else fault.status
    return EtcdTransportError(status, text, harmless=fault.harmless)


def _failure(endpoints: Sequence[Endpoint], reasons: Sequence[faults.Fault]) -> EtcdTransportError:
    """Nothing that anybody would miss has been sent, whatever has come of it."""
    text = str(reasons[0])
    if len(reasons) > 1:
        text = "; ".join([f"{endpoint}: {reason}" for endpoint, reason in zip(endpoints, reasons)])
    if all(isinstance(reason, faults.Untrusted) for reason in reasons):
        return EtcdUntrusted(text)
    return EtcdTransportError(UNAVAILABLE, text, harmless=True)
