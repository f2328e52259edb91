"""A program: a name server on port 53 and a TLS server on port 2379, both on loopback; it is started in a namespace.

    name_and_tls_server.py CERTIFICATE-AND-KEY

Every name has the address 127.0.0.1, and every service is at `etcd.named.test`. It writes `ready`, then a line for each
finished handshake: the name that the client asked for.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import threading

_SRV, _A = 33, 1
_TARGET = b"\4etcd\5named\4test\0"


def answer(question: bytes) -> bytes:
    end = question.index(b"\0", 12) + 5
    kind = struct.unpack("!H", question[end - 4 : end - 2])[0]
    data = {_A: bytes([127, 0, 0, 1]), _SRV: struct.pack("!HHH", 0, 0, 2379) + _TARGET}.get(kind)
    records = b"" if data is None else b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(data)) + data
    return question[:2] + struct.pack("!HHHHH", 0x8180, 1, bool(records), 0, 0) + question[12:end] + records


def serve_names() -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    threading.Thread(target=lambda: [answer_one(server) for _ in range(10_000)], daemon=True).start()


def answer_one(server: socket.socket) -> None:
    question, sender = server.recvfrom(512)
    server.sendto(answer(question), sender)


def serve_tls(server: socket.socket, certificate: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2"])
    asked: list[str] = []
    context.sni_callback = lambda _connection, name, _context: asked.append(name)
    while True:
        connection, _ = server.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as secured:
                print(asked[-1], flush=True)
                secured.settimeout(1)
                secured.recv(1)
        except (OSError, IndexError):
            continue


def main() -> None:
    serve_names()
    listening = [socket.create_server(("127.0.0.1", 2379))]
    listening.append(socket.create_server(("::1", 2379), family=socket.AF_INET6))
    threads = [threading.Thread(target=serve_tls, args=(one, sys.argv[1])) for one in listening]
    for thread in threads:
        thread.start()
    print("ready", flush=True)


if __name__ == "__main__":
    main()
