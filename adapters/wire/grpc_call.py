"""Unary calls of gRPC over one connection: a message there, a message or a status back.

A status is whatever the other side sends as one; where it sends none, because it speaks HTTP only or gives the exchange
up, the one that gRPC's specification names for that.

Invariant: a call is made at most once. When one fails with anything but a status, the connection is of no use any more.
"""

from __future__ import annotations

from adapters.wire.faults import Fault
from adapters.wire.http2 import CANCEL, ENHANCE_YOUR_CALM, NO_ERROR, REFUSED_STREAM, Exchange, Http2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.wire.hpack import Field
    from adapters.wire.sockets import Stream
    from adapters.wire.waiting import Work

CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, PERMISSION_DENIED, RESOURCE_EXHAUSTED = 1, 2, 4, 7, 8
UNIMPLEMENTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 12, 13, 14, 16
ALPN = (b"h2",)
_OF_HTTP = {
    400: INTERNAL,
    401: UNAUTHENTICATED,
    403: PERMISSION_DENIED,
    404: UNIMPLEMENTED,
    429: UNAVAILABLE,
    502: UNAVAILABLE,
    503: UNAVAILABLE,
    504: UNAVAILABLE,
}
_OF_RESET = {
    NO_ERROR: INTERNAL,
    REFUSED_STREAM: UNAVAILABLE,
    CANCEL: CANCELLED,
    ENHANCE_YOUR_CALM: RESOURCE_EXHAUSTED,
}
_HEX = frozenset(b"0123456789abcdefABCDEF")
LONGEST = 2000  # octets of a server's own text that are passed on
_MOST_DIGITS = 10**8  # a time-out has fewer


class StatusFault(Fault):
    """The call has ended with that status. `harmless`: the other side says that it has done nothing."""

    def __init__(self, status: int, text: str, *, harmless: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.harmless = harmless


class Channel:
    """A connection for one call after the other. `authority` is the host and port as a server is told them."""

    def __init__(self, stream: Stream, authority: str, *, secure: bool) -> None:
        self._stream = stream
        self._http2 = Http2()
        self._scheme = b"https" if secure else b"http"
        self._authority = authority.encode()

    def call(self, method: str, message: bytes, seconds: float, token: str = "") -> Work[bytes]:
        """The message that answers one; `method` is `/<package>.<service>/<name>`."""
        exchange = yield from self.begin(method, message, seconds, token)
        return (yield from self.finish(exchange))

    def begin(self, method: str, message: bytes, seconds: float, token: str = "") -> Work[Exchange]:
        """Ask, and wait until the answer has begun. A server that answers at once with a status raises it."""
        if self._http2.leaving:
            raise StatusFault(UNAVAILABLE, self._http2.leaving, harmless=True)
        fields: Sequence[Field] = (
            (b":method", b"POST"),
            (b":scheme", self._scheme),
            (b":path", method.encode()),
            (b":authority", self._authority),
            (b"content-type", b"application/grpc"),
            (b"user-agent", b"tortie"),
            (b"te", b"trailers"),
            (b"grpc-timeout", _timeout(seconds)),
        )
        secrets = ((b"token", token.encode()),) if token else ()
        exchange = self._http2.begin(fields, b"\0" + len(message).to_bytes(4, "big") + message, secrets)
        yield from self._talk(exchange, whole=False)
        if exchange.ended:
            _require_success(exchange)
        return exchange

    def finish(self, exchange: Exchange) -> Work[bytes]:
        """The rest of an answer that has begun."""
        yield from self._talk(exchange, whole=True)
        _require_success(exchange)
        return _only_message(exchange)

    def _talk(self, exchange: Exchange, *, whole: bool) -> Work[None]:
        """What the server is to hear of besides can wait for the next request."""
        while not (exchange.ended or (exchange.fields is not None and not whole)):
            out = self._http2.take()
            if out:
                yield from self._stream.send(out)
            octets = yield from self._stream.receive()
            if not octets:
                raise Fault(self._http2.leaving or "the server has closed the connection")
            self._http2.feed(octets)

    def close(self) -> None:
        """Safe to repeat."""
        self._stream.close()


def _timeout(seconds: float) -> bytes:
    """Whole milliseconds, at least one; seconds where that has too many digits."""
    milliseconds = max(1, int(seconds * 1000))
    return b"%dm" % milliseconds if milliseconds < _MOST_DIGITS else b"%dS" % min(seconds, _MOST_DIGITS - 1)


def _require_success(exchange: Exchange) -> None:
    """`StatusFault` for any status but OK."""
    if exchange.code is not None:
        its = UNAVAILABLE if exchange.untouched else _OF_RESET.get(exchange.code, INTERNAL)
        text = f"the server has ended the call with HTTP/2 error {exchange.code}"
        raise StatusFault(its, text, harmless=exchange.untouched)
    http = _number(_value(exchange.fields or (), b":status"))
    status = _number(_value(exchange.trailers, b"grpc-status"))
    if status is None and http is not None and http != 200:
        raise StatusFault(_OF_HTTP.get(http, UNKNOWN), f"HTTP status {http}, which no gRPC server sends")
    if status is None:
        raise StatusFault(UNKNOWN, "the server has sent no status")
    if status:
        raise StatusFault(status, _unescaped((_value(exchange.trailers, b"grpc-message") or b"")[:LONGEST]))


def _only_message(exchange: Exchange) -> bytes:
    body = exchange.body
    size = int.from_bytes(body[1:5], "big")
    if len(body) < 5 or len(body) != 5 + size:
        raise StatusFault(INTERNAL, "the server has not sent exactly one whole message")
    if body[0]:
        raise StatusFault(INTERNAL, "the server has compressed its message, which it was not asked for")
    return bytes(memoryview(body)[5:])


def _value(fields: Sequence[Field], name: bytes) -> bytes | None:
    for its_name, value in fields:
        if its_name == name:
            return value
    return None


def _number(text: bytes | None) -> int | None:
    """None for what is no small number."""
    return int(text) if text and text.isdigit() and len(text) < 10 else None


def _unescaped(text: bytes) -> str:
    """Percent-encoded UTF-8; what is not encoded rightly stays as it is."""
    head, *escapes = text.split(b"%")
    octets = bytearray(head)
    for escape in escapes:
        if len(escape) > 1 and _HEX.issuperset(escape[:2]):
            octets += bytes((int(escape[:2], 16),)) + escape[2:]
        else:
            octets += b"%" + escape
    return octets.decode("utf-8", "replace")
