"""A forward proxy for HTTP: CONNECT for what is encrypted, absolute URLs for what is not. It resolves no names: each
leads to the port `target` of the host `to`.

    with HttpProxy(stub.port) as proxy:        listens at proxy.url, over TLS with `context`; `user` is name:password
        proxy.asked[0].target                  what it was asked for

Invariant: no thread and no socket outlives the `with` block.
"""

from __future__ import annotations

import base64
import select
import socket
import ssl
from contextlib import suppress

from services.http_stub import HttpStub, read_request


class HttpProxy(HttpStub):
    def __init__(
        self, target: int, *, to: str = "127.0.0.1", user: str = "", context: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(context)
        self._target = (to, target)
        self._user = user
        self.refusal = b""

    def serve(self, connection: socket.socket, number: int) -> None:
        asked, rest = read_request(connection, b"", number)
        self.asked.append(asked)
        expected = f"Basic {base64.b64encode(self._user.encode()).decode()}" if self._user else None
        if self.refusal or asked.headers.get("proxy-authorization") != expected:
            connection.sendall(
                self.refusal or b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
            )
            return
        with socket.create_connection(self._target, timeout=10) as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if asked.method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                server.sendall(_by_path(asked.method, asked.target, asked.pairs) + asked.body)
            server.sendall(rest)
            self._pump(connection, server)

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        """Until either has closed."""
        while not self._ended.is_set():
            if isinstance(client, ssl.SSLSocket) and client.pending():
                ready: list[socket.socket] = [client]
            else:
                ready = select.select([client, server], [], [], 0.02)[0]
            for source, sink in ((client, server), (server, client)):
                if source in ready:
                    octets = source.recv(65536)
                    if not octets:
                        return
                    with suppress(OSError):
                        sink.sendall(octets)


def _by_path(method: str, url: str, pairs: list[tuple[str, str]]) -> bytes:
    path = "/" + url.partition("://")[2].partition("/")[2]
    kept = [f"{name}: {value}" for name, value in pairs if not name.startswith("proxy-")]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *kept, "", ""]).encode()
