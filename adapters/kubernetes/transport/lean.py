"""A transport that costs next to nothing to load: HTTP/1.1 on one kept connection, made of the C modules of sockets
and TLS. The plugins' own; the one on the `kubernetes` package is beside it.

Reads that are asked for together are sent together, and answered in order. Anything that writes is sent alone: if the
connection broke, nobody could say how many of several writes had happened.

Invariant: a connection is kept only after a complete answer, so a later answer cannot be taken for an earlier one's.
"""

from __future__ import annotations

from adapters.kubernetes.transport.connecting import connect, is_idle, proxy_headers
from adapters.kubernetes.transport.http11 import Reader, TooLarge, request_octets
from adapters.kubernetes.transport.renewing import RenewingTransport, too_late
from adapters.kubernetes.transport.seam import ApiTransportError, ApiUntrusted, Oversized
from adapters.wire import faults
from adapters.wire.waiting import drive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.kubernetes.transport.seam import HttpAnswer, HttpRequest
    from adapters.wire.sockets import Stream

_MOST_AT_ONCE = 1 << 14  # octets of requests that surely fit into the buffers between us and the server


class LeanApiTransport(RenewingTransport):
    _stream: Stream | None = None

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream:
            stream.close()

    def _exchange(self, requests: Sequence[HttpRequest], ends: float) -> list[HttpAnswer]:
        answers: list[HttpAnswer] = []
        while len(answers) < len(requests):
            stream = self._connected(ends, nothing_sent=not answers)
            answers += self._ask(stream, requests[len(answers) :], ends)
        return answers

    def _connected(self, ends: float, *, nothing_sent: bool) -> Stream:
        """The kept connection if it stands, else a new one."""
        stream, self._stream = self._stream, None
        if stream and is_idle(stream):
            return stream
        if stream:
            stream.close()
        try:
            return connect(self._settings, ends)
        except faults.Fault as error:
            raise self._fault(error, harmless=nothing_sent) from error

    def _ask(self, stream: Stream, requests: Sequence[HttpRequest], ends: float) -> list[HttpAnswer]:
        """Answers to the first of the requests, at least one. The connection is kept if it may be."""
        octets = [self._octets(request) for request in requests]
        together = all(request.method == "GET" for request in requests) and sum(map(len, octets)) <= _MOST_AT_ONCE
        reader = Reader(lambda: drive(stream.receive(), ends))
        answers: list[HttpAnswer] = []
        keep = True
        try:
            drive(stream.send(b"".join(octets) if together else octets[0]), ends)
            for request in requests if together else requests[:1]:
                answer, keep = reader.answer(request.method)
                answers.append(answer)
                if not keep:
                    break  # the server does not look at the others
        except faults.Fault as error:
            stream.close()
            if answers and not isinstance(error, faults.TimedOut):
                return answers  # some close after each answer and do not say so: the others get a new connection
            raise self._fault(error, harmless=False) from error
        except BaseException:
            stream.close()
            raise
        if keep and not reader.unread():
            self._stream = stream
        else:
            stream.close()
        return answers

    def _octets(self, request: HttpRequest) -> bytes:
        server, proxy = self._settings.server, self._settings.proxy
        target = self._target(request)
        headers = [("Host", server.authority), *self._headers]
        if request.body:
            headers.append(("Content-Type", request.content_type))
        if (
            proxy and not proxy.is_socks and not server.secure
        ):  # there is no tunnel then: the proxy reads requests itself
            target = f"{server.scheme}://{server.authority}{target}"
            headers += proxy_headers(proxy)
        try:
            return request_octets(request.method, target, headers, request.body)
        except ValueError as error:
            raise ApiTransportError(f"{self.server}: {error}", harmless=True) from None

    def _fault(self, fault: faults.Fault, *, harmless: bool) -> ApiTransportError:
        if isinstance(fault, faults.TimedOut):
            return too_late(self.server, harmless=harmless)
        if isinstance(fault, faults.Untrusted):
            return ApiUntrusted(f"{self.server}: {fault}")
        if isinstance(fault, TooLarge):
            return Oversized(f"{self.server}: {fault}")
        return ApiTransportError(f"{self.server}: {fault}", harmless=harmless)
