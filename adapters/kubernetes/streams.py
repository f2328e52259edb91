"""Octets to and from a server, over TCP or TLS, with one point in time at which every wait is over.

TLS works on memory and is fed by whatever stream is below it, so that it can run through a proxy that speaks TLS
itself. Times are on the monotonic clock.

Invariant: no call returns later than it was allowed to; TimeoutError says so.
"""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

AT_ONCE = -1.0
"""As a point in time: BlockingIOError instead of any wait."""
_PIECE = 1 << 16


class Stream:
    """`receive` gives b"" at an end that the other side has announced; any other end is an OSError."""

    def send(self, octets: bytes, ends: float) -> None:
        raise NotImplementedError

    def receive(self, ends: float) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        """Safe to repeat."""
        raise NotImplementedError

    def is_idle(self) -> bool:
        """Whether it stands and nothing unexpected has come. What has come is lost, so then it is of no more use."""
        try:
            self.receive(AT_ONCE)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False


class TcpStream(Stream):
    def __init__(self, socket: Any) -> None:
        self._socket = socket

    def send(self, octets: bytes, ends: float) -> None:
        self._limit(ends)
        self._socket.sendall(octets)

    def receive(self, ends: float) -> bytes:
        self._limit(ends)
        octets: bytes = self._socket.recv(_PIECE)
        return octets

    def close(self) -> None:
        self._socket.close()

    def _limit(self, ends: float) -> None:
        left = 0.0 if ends == AT_ONCE else ends - monotonic()
        if left <= 0 and ends != AT_ONCE:
            raise TimeoutError
        self._socket.settimeout(left)


class TlsStream(Stream):
    """`context` is an `_ssl._SSLContext`, `host` whom the certificate has to name."""

    def __init__(self, below: Stream, context: Any, host: str, ends: float) -> None:
        """With the handshake. Errors of `_ssl`."""
        import _ssl

        self._below = below
        self._want_read, self._zero, self._eof = _ssl.SSLWantReadError, _ssl.SSLZeroReturnError, _ssl.SSLEOFError
        self._incoming, self._outgoing = _ssl.MemoryBIO(), _ssl.MemoryBIO()
        self._tls = context._wrap_bio(self._incoming, self._outgoing, False, server_hostname=host)
        self._step(ends, self._tls.do_handshake)

    def send(self, octets: bytes, ends: float) -> None:
        left = memoryview(octets)
        while left:
            piece = left[:_PIECE]
            try:
                left = left[self._step(ends, self._tls.write, piece) :]
            except ConnectionError:
                self.receive(ends)  # raises what the other side said before it hung up, if it said something
                raise

    def receive(self, ends: float) -> bytes:
        try:
            octets: bytes = self._step(ends, self._tls.read, _PIECE)
        except self._zero:
            return b""
        except self._eof:
            raise ConnectionError("the connection was cut off") from None
        return octets

    def close(self) -> None:
        """Without a farewell: each answer says by itself how long it is."""
        self._below.close()

    def _step(self, ends: float, work: Callable[..., Any], *arguments: object) -> Any:
        """Do it, with as many exchanges of octets as it takes."""
        while True:
            try:
                done = work(*arguments)
            except self._want_read:
                self._flush(ends)
                octets = self._below.receive(ends)
                if octets:
                    self._incoming.write(octets)
                else:
                    self._incoming.write_eof()
            except OSError:
                self._tell_why(ends)
                raise
            else:
                self._flush(ends)
                return done

    def _tell_why(self, ends: float) -> None:
        try:  # noqa: SIM105 - contextlib costs more to load than all of this
            self._flush(ends)
        except OSError:
            pass  # it does not listen any more

    def _flush(self, ends: float) -> None:
        if self._outgoing.pending:
            self._below.send(self._outgoing.read(), ends)
