"""A name server of a few records for tests, by datagram and by stream.

with NameServer({"_etcd-client._tcp.example": [(0, 0, 2379, "localhost")]}) as server: ...
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from services.etcd import free_ports

_STEP = 0.05


class NameServer:
    """`records` are (priority, weight, port, host) by name. `truncating`: datagrams say "ask me by stream".

    `silent`: questions are read and never answered.
    """

    def __init__(
        self, records: dict[str, list[tuple[int, int, int, str]]], *, truncating: bool = False, silent: bool = False
    ) -> None:
        self._records = {name.lower(): found for name, found in records.items()}
        self._truncating, self._silent = truncating, silent
        self._ended = threading.Event()
        (self.port,) = free_ports(1)  # for both
        self._stream = socket.create_server(("127.0.0.1", self.port))
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", self.port))
        self.asked: list[str] = []
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._by_datagram, self._by_stream)]

    def resolv_conf(self, folder: Path) -> str:
        """A resolver's configuration that leads here (`#` before a port is our spelling)."""
        path = folder / "resolv.conf"
        path.write_text(f"nameserver 127.0.0.1#{self.port}\n")
        return str(path)

    def __enter__(self) -> Self:
        for one in (self._stream, self._datagrams):
            one.settimeout(_STEP)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(10)
        self._stream.close()
        self._datagrams.close()

    def _by_datagram(self) -> None:
        while not self._ended.is_set():
            try:
                question, sender = self._datagrams.recvfrom(512)
            except TimeoutError:
                continue
            if not self._silent:
                self._datagrams.sendto(self._answer(question, truncated=self._truncating), sender)

    def _by_stream(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._stream.accept()
            except TimeoutError:
                continue
            with connection, suppress(OSError, IndexError):  # who asks may go before it has asked
                connection.settimeout(5)
                size = int.from_bytes(connection.recv(2), "big")
                answer = self._answer(connection.recv(size), truncated=False)
                connection.sendall(len(answer).to_bytes(2, "big") + answer)

    def _answer(self, question: bytes, *, truncated: bool) -> bytes:
        labels, place = [], 12
        while question[place]:
            labels.append(question[place + 1 : place + 1 + question[place]].decode())
            place += 1 + question[place]
        name = ".".join(labels)
        self.asked.append(name)
        found = self._records.get(name.lower())
        flags = 0x8180 | (0 if found is not None else 3) | (0x0200 if truncated else 0)
        shown = [] if truncated else found or []
        header = question[:2] + flags.to_bytes(2, "big") + b"\0\1" + len(shown).to_bytes(2, "big") + b"\0\0\0\0"
        return header + question[12:] + b"".join([_record(*one) for one in shown])


def _record(priority: int, weight: int, port: int, host: str) -> bytes:
    encoded = b"".join([bytes([len(label)]) + label.encode() for label in host.rstrip(".").split(".")]) + b"\0"
    data = b"".join([number.to_bytes(2, "big") for number in (priority, weight, port)]) + encoded
    return b"\xc0\x0c\0\x21\0\1\0\0\0\x3c" + len(data).to_bytes(2, "big") + data
