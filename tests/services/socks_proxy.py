"""A SOCKS5 proxy that resolves no names: each leads to the port `target` of this machine.

    with SocksProxy(stub.port, user="me:pass") as proxy:        listens at proxy.url
        proxy.places[0]                                         what it was asked for, `name:port`

Invariant: no thread and no socket outlives the `with` block.
"""

from __future__ import annotations

import ipaddress
import socket

from services.http_proxy import HttpProxy


class SocksProxy(HttpProxy):
    def __init__(self, target: int, *, user: str = "", reply: int = 0) -> None:
        super().__init__(target, user=user)
        self._reply = reply
        self.places: list[str] = []

    @property
    def url(self) -> str:
        return f"socks5://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket, number: int) -> None:
        def read(count: int) -> bytes:
            return connection.recv(count, socket.MSG_WAITALL)

        methods = read(read(2)[1])
        wanted = 2 if self._user else 0
        if wanted not in methods:
            connection.sendall(b"\5\xff")
            return
        connection.sendall(bytes([5, wanted]))
        if self._user:
            read(1)
            given = b":".join([read(read(1)[0]) for _ in range(2)]).decode()
            connection.sendall(bytes([1, given != self._user]))
            if given != self._user:
                return
        kind = read(4)[3]
        host = read(read(1)[0]).decode() if kind == 3 else str(ipaddress.ip_address(read(4 if kind == 1 else 16)))
        self.places.append(f"{host}:{int.from_bytes(read(2), 'big')}")
        bound = b"\3\1x\0\0" if kind == 3 else b"\1\0\0\0\0\0\0"
        connection.sendall(bytes([5, self._reply, 0]) + bound)
        if self._reply:
            return
        with socket.create_connection(self._target, timeout=10) as server:
            self._pump(connection, server)
