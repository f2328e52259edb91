"""An HTTP/1.1 server that answers what a test wants, well or badly, over TLS or not, and remembers what it was asked.

    with HttpStub() as stub:                      listens at stub.url; with `context` over TLS, `host` may be "::1"
        stub.asked[0].target                      every request, in the order of arrival
        stub.answer = lambda asked: reply(200, b"{}")

Without an `answer` of the test's own, the path decides (see `by_path`), and anything else is echoed as JSON.

Invariant: no thread and no socket outlives the `with` block.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

_STEP = 0.02


@dataclass(frozen=True)
class Asked:
    """One request. `connection` counts from 1; `behind`: octets of later requests had arrived with it."""

    method: str
    target: str
    headers: dict[str, str]
    pairs: list[tuple[str, str]]
    body: bytes
    connection: int
    behind: bool

    @property
    def echo(self) -> bytes:
        shown = {"method": self.method, "target": self.target, "headers": self.headers, "body": self.body.decode()}
        return json.dumps(shown | {"connection": self.connection}).encode()


Piece = bytes | float | str
"""Octets to send, seconds to wait, or one of the ends: `close`, `reset`, `hang` (until the test ends)."""


def reply(status: int, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def by_path(asked: Asked) -> Iterator[Piece]:
    kind, _, rest = asked.target.partition("?")[0].strip("/").partition("/")
    if kind in _BAD:
        yield from _BAD[kind]
    elif kind == "status":
        yield reply(int(rest), b"" if rest == "204" else b'{"kind":"Status"}', Retry_After="1")
    elif kind == "big":
        yield reply(200, b"x" * int(rest))
    elif kind == "pieces":
        yield from [bytes([octet]) for octet in reply(200, asked.echo)]
    else:
        yield from _GOOD.get(kind, lambda echo: [reply(200, echo, X_Twice="a")])(asked.echo)


def _chunks(body: bytes) -> list[Piece]:
    sent: list[Piece] = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]
    for piece in (body[:7], body[7:8], body[8:]):
        sent += [b"%x;ext=1\r\n%s\r\n" % (len(piece), piece), 0.01]
    return [*sent, b"0\r\nTrailer: x\r\n\r\n"]


_GOOD: dict[str, Callable[[bytes], list[Piece]]] = {
    "chunked": _chunks,
    "until-close": lambda echo: [b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + echo, "close"],
    "then-close": lambda echo: [reply(200, echo, Connection="close"), "close"],
    "closes-silently": lambda echo: [reply(200, echo), "close"],
    "continue": lambda echo: [b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" + reply(200, echo)],
}

_BAD: dict[str, list[Piece]] = {
    "silence": ["hang"],
    "stalls": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", "hang"],
    "stalls-in-headers": [b"HTTP/1.1 200 OK\r\nContent-Le", "hang"],
    "resets": ["reset"],
    "resets-in-body": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", 0.05, "reset"],
    "closes": ["close"],
    "closes-in-body": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", "close"],
    "closes-in-chunk": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nabc", "close"],
    "bad-chunk": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", "close"],
    "garbage": [b"SSH-2.0-OpenSSH\r\n\r\n", "close"],
    "trickles": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", *([0.2, b"x"] * 100)],
    "trickles-headers": [b"HTTP/1.1 200 OK\r\n", *([0.2, b"x: y\r\n"] * 100)],
    "trickles-remarks": [0.2, b"HTTP/1.1 100 Continue\r\n\r\n"] * 100,
    "headers": [b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 2000 + b"\r\n", "close"],
    "large": [b"HTTP/1.1 200 OK\r\n\r\n", *([b"x" * (1 << 20)] * 300), "close"],
}


class HttpStub:
    def __init__(self, context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._context = context
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.host, self.port = host, int(self._listener.getsockname()[1])
        self.answer: Callable[[Asked], bytes] | None = None
        self.asked: list[Asked] = []
        self.connections = 0
        self.peer_certificates: list[str] = []
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()

    @property
    def url(self) -> str:
        return self.url_for(f"[{self.host}]" if ":" in self.host else self.host)

    def url_for(self, name: str) -> str:
        return f"{'https' if self._context else 'http'}://{name}:{self.port}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(10)
        self._listener.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            if select.select([self._listener], [], [], _STEP)[0]:
                connection, _ = self._listener.accept()
                self.connections += 1
                self._start(self._serve, connection, self.connections)

    def _serve(self, connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.add(connection)
        try:
            connection = self._wrapped(connection)
            self._open.add(connection)
            self.serve(connection, number)
        except (OSError, ValueError):
            pass  # the client's end, or the test's
        finally:
            self._open.discard(connection)
            connection.close()

    def _wrapped(self, connection: socket.socket) -> socket.socket:
        if self._context is None:
            return connection
        connection.settimeout(10)
        try:
            wrapped = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            wrapped.do_handshake()
        except OSError:
            _hang_up(wrapped)
            raise
        subject = wrapped.getpeercert() or {}
        self.peer_certificates.append(str(dict(pair[0] for pair in subject.get("subject", ())).get("commonName", "")))
        return wrapped

    def serve(self, connection: socket.socket, number: int) -> None:
        received = b""
        while True:
            asked, received = read_request(connection, received, number)
            self.asked.append(asked)
            if not self._send(connection, self.answer(asked) if self.answer else by_path(asked)):
                return

    def _send(self, connection: socket.socket, pieces: bytes | Iterator[Piece]) -> bool:
        """Whether the connection goes on."""
        for piece in [pieces] if isinstance(pieces, bytes) else pieces:
            if isinstance(piece, bytes):
                connection.sendall(piece)
            elif isinstance(piece, float):
                self._ended.wait(piece)
            elif piece == "hang":
                self._ended.wait()
            elif piece == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            else:
                return False
        return True


def read_request(connection: socket.socket, received: bytes, number: int) -> tuple[Asked, bytes]:
    """One request, and what came behind it."""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536) or _end()
        if received.startswith(b"\x16\x03"):  # TLS, which this is not
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            _end()
    head, _, received = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _version = first.split(" ")
    pairs = [(line.partition(":")[0].lower(), line.partition(":")[2].strip()) for line in lines]
    length = int(dict(pairs).get("content-length", "0"))
    while len(received) < length:
        received += connection.recv(65536) or _end()
    body, received = received[:length], received[length:]
    return Asked(method, unquote(target), dict(pairs), pairs, body, number, bool(received)), received


def _hang_up(connection: ssl.SSLSocket) -> None:
    """So that an alert that was sent arrives: a close with unread octets would overtake it."""
    plain = socket.socket(fileno=connection.detach())
    plain.settimeout(2)
    with suppress(OSError), plain:
        plain.shutdown(socket.SHUT_WR)
        while plain.recv(65536):
            pass


def _end() -> bytes:
    raise OSError("the other side has closed")
