"""TLS within TLS, to a server behind a proxy that speaks TLS itself. The C module's sessions work on plain sockets
only, so this one works on memory, which the stream below fills and empties.

Invariant: nothing of the inner session waits in memory once `send` or `receive` has returned.
"""

from __future__ import annotations

import _ssl

from adapters.wire.sockets import Stream
from adapters.wire.tls import tls_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from adapters.wire.faults import Fault
    from adapters.wire.waiting import Work

_PIECE = 65536
_UNFINISHED = object()


class NestedTls(Stream):
    """`context` and `host` are as for `adapters.wire.tls.start_tls`."""

    def __init__(self, below: Stream, context: Any, host: str) -> None:
        super().__init__(below.connection)
        self._below = below
        self._incoming, self._outgoing = _ssl.MemoryBIO(), _ssl.MemoryBIO()
        self._session = context._wrap_bio(self._incoming, self._outgoing, False, host)

    def start(self) -> Work[None]:
        """Shake hands; before anything else."""
        yield from self._step(self._session.do_handshake)

    def send(self, octets: bytes | bytearray) -> Work[None]:
        left = memoryview(octets)
        while left:
            left = left[(yield from self._step(self._session.write, left[:_PIECE])) :]

    def receive(self, limit: int = _PIECE) -> Work[bytes]:
        octets: bytes = yield from self._step(self._session.read, limit)
        return octets

    def _step(self, work: Callable[..., Any], *arguments: object) -> Work[Any]:
        """Do it, with as many exchanges of octets as it takes; b"" at the end of the connection."""
        while True:
            done, failed = self._try(work, arguments)
            if self._outgoing.pending:
                yield from self._below.send(self._outgoing.read())
            if failed:
                raise failed
            if done is not _UNFINISHED:
                return done
            octets = yield from self._below.receive()
            if octets:
                self._incoming.write(octets)
            else:
                self._incoming.write_eof()

    def _try(self, work: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[Any, Fault | None]:
        """What it gives, or why it cannot."""
        try:
            return work(*arguments), None
        except _ssl.SSLWantReadError:
            return _UNFINISHED, None
        except (_ssl.SSLEOFError, _ssl.SSLZeroReturnError):
            return b"", None
        except (OSError, ValueError) as error:
            return None, tls_fault(error)
