"""Finding endpoints by DNS SRV records (`etcd_discovery_srv`), as etcd's own clients do.

The records of `_etcd-client-ssl._tcp.<domain>` are endpoints by https; only where there are none do those of
`_etcd-client._tcp.<domain>` count, by http. No library does this for us in less than the time of a whole call (the
resolver of the C library has no such question), and the question is small: one datagram there, one back.

Invariant: an answer is taken only if it comes from the server that was asked and repeats our question.
"""

from __future__ import annotations

import os

from adapters.etcdv3.settings import Endpoint
from adapters.regular_file import read_regular
from ports.errors import BadConfiguration, Expired, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import TypeAlias

    from ports.clock import Clock, Deadline

    Srv: TypeAlias = tuple[int, int, int, str]
    """Priority, weight, port, host."""

RESOLV_CONF = "/etc/resolv.conf"
_PORT = 53
_SRV, _IN, _NAME_ERROR = 33, 1, 3
_TRUNCATED, _RECURSIVE = 0x0200, 0x0100
_TRY_SECONDS, _ROUNDS = 2.0, 2


class _Unanswered(Exception):
    """A server gave nothing that can be used."""


def discover(domain: str, clock: Clock, deadline: Deadline, resolv_conf: str = RESOLV_CONF) -> tuple[Endpoint, ...]:
    """The endpoints, in the order in which to try them. `Unavailable` names the domain and what was answered."""
    servers = name_servers(resolv_conf)
    for service, secure in (("_etcd-client-ssl._tcp", True), ("_etcd-client._tcp", False)):
        name = f"{service}.{domain.rstrip('.')}"
        found = _ask_all(name, servers, clock, deadline)
        if found:
            found.sort(key=lambda record: (record[0], -record[1]))
            return tuple([Endpoint(host, port, secure) for _, _, port, host in found])
    raise Unavailable(
        f"failed to discover etcd endpoints through SRV discovery: no records _etcd-client-ssl._tcp.{domain}"
        f" or _etcd-client._tcp.{domain}"
    )


def name_servers(path: str) -> list[tuple[str, int]]:
    """Address and port of each server in a resolver's configuration; this host where it names none."""
    servers = []
    try:
        text = read_regular(path).decode("utf-8", "replace")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from error
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            address, _, port = words[1].partition("#")
            servers.append((address, int(port) if port.isascii() and port.isdigit() and len(port) < 6 else _PORT))
    return servers or [("127.0.0.1", _PORT)]


def _ask_all(name: str, servers: list[tuple[str, int]], clock: Clock, deadline: Deadline) -> list[Srv]:
    """The first usable answer of any server."""
    question = _question(name)
    reasons = []
    for _ in range(_ROUNDS):
        for server in servers:
            left = deadline.left(clock.monotonic())
            if not left:
                raise Expired(f"the name server {server[0]} and the records {name}")
            try:
                return parse_answer(_ask(question, server, min(_TRY_SECONDS, left)), question)
            except (OSError, _Unanswered) as error:
                reasons.append(f"{server[0]}: {getattr(error, 'strerror', None) or error}")
    shown = "; ".join(dict.fromkeys(reasons))
    raise Unavailable(f"failed to discover etcd endpoints through SRV discovery: {name}: {shown}")


def _ask(question: bytes, server: tuple[str, int], seconds: float) -> bytes:
    """By datagram, and by stream if that was too long for one."""
    import _socket

    family = _socket.AF_INET6 if ":" in server[0] else _socket.AF_INET
    asking = _socket.socket(family, _socket.SOCK_DGRAM)
    try:
        asking.settimeout(seconds)
        asking.connect(server)  # so that only this server's datagrams arrive, and its refusals do
        asking.send(question)
        answer = asking.recv(65535)
        while answer[:2] != question[:2]:
            answer = asking.recv(65535)
    finally:
        asking.close()
    if not int.from_bytes(answer[2:4], "big") & _TRUNCATED:
        return answer
    asking = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        asking.settimeout(seconds)
        asking.connect(server)
        asking.sendall(len(question).to_bytes(2, "big") + question)
        return _exactly(asking, int.from_bytes(_exactly(asking, 2), "big"))
    finally:
        asking.close()


def _exactly(source: socket, size: int) -> bytes:
    text = b""
    while len(text) < size:
        piece = source.recv(size - len(text))
        if not piece:
            raise _Unanswered("the answer is cut off")
        text += piece
    return text


def _question(name: str) -> bytes:
    """A query with a random number. BadConfiguration for what cannot be a name."""
    labels = [label.encode("idna") if not label.isascii() else label.encode() for label in name.split(".")]
    if not all(0 < len(label) < 64 for label in labels) or sum(map(len, labels)) + len(labels) > 254:
        raise BadConfiguration(f"etcd_discovery_srv: {name!r} is not the name of a domain")
    header = os.urandom(2) + _RECURSIVE.to_bytes(2, "big") + b"\0\1\0\0\0\0\0\0"
    path = b"".join([bytes([len(label)]) + label for label in labels])
    return header + path + b"\0" + _SRV.to_bytes(2, "big") + _IN.to_bytes(2, "big")


def parse_answer(answer: bytes, question: bytes) -> list[Srv]:
    """The SRV records of an answer; none if there is no such name."""
    try:
        return _parse(answer, question)
    except IndexError:
        raise _Unanswered("the answer is malformed") from None


def _parse(answer: bytes, question: bytes) -> list[Srv]:
    if answer[:2] != question[:2] or answer[12 : len(question)].lower() != question[12:].lower():
        raise _Unanswered("the answer is to another question")
    code = answer[3] & 15
    if code == _NAME_ERROR:
        return []
    if code:
        raise _Unanswered(f"the server failed with code {code}")
    place = len(question)
    found: list[Srv] = []
    for _ in range(int.from_bytes(answer[6:8], "big")):
        place = _skip_name(answer, place)
        type, size = int.from_bytes(answer[place : place + 2], "big"), int.from_bytes(answer[place + 8 : place + 10])
        data = place + 10
        if data + size > len(answer):
            raise IndexError
        if type == _SRV:
            priority, weight, port = [int.from_bytes(answer[data + at : data + at + 2], "big") for at in (0, 2, 4)]
            found.append((priority, weight, port, _read_name(answer, data + 6)))
        place = data + size
    return found


def _skip_name(answer: bytes, place: int) -> int:
    while answer[place]:
        if answer[place] >= 0xC0:
            return place + 2
        place += 1 + answer[place]
    return place + 1


def _read_name(answer: bytes, place: int) -> str:
    """A name that may end in a pointer to an earlier place."""
    labels: list[str] = []
    jumps = 0
    while answer[place]:
        size = answer[place]
        if size >= 0xC0:
            jumps += 1
            if jumps > 64:
                raise IndexError
            place = (size & 0x3F) << 8 | answer[place + 1]
            continue
        labels.append(answer[place + 1 : place + 1 + size].decode("ascii", "replace"))
        place += 1 + size
    return ".".join(labels)
