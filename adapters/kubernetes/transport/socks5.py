"""A SOCKS5 proxy between us and a server (RFC 1928, 1929): it passes on whatever comes once it has been told whither.

Names are resolved by the proxy, as in the original's client library.

Invariant: nothing is read that belongs to the server; no error shows a password.
"""

from __future__ import annotations

from adapters.wire.faults import Fault
from domain.ipam.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.kubernetes.credentials.server import Server
    from adapters.wire.sockets import Stream
    from adapters.wire.waiting import Work

_VERSION, _NOBODY, _BY_PASSWORD, _CONNECT, _NAME = 5, 0, 2, 1, 3
_LENGTHS = {1: 4, 4: 16}  # octets of an address by its kind
_REFUSALS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "the time to live has expired",
}


def ask_to_pass_on(stream: Stream, server: Server, proxy: Server) -> Work[None]:
    """`Fault` if it does not."""
    methods = bytes([_NOBODY, _BY_PASSWORD] if proxy.user else [_NOBODY])
    yield from stream.send(bytes([_VERSION, len(methods)]) + methods)
    version, method = yield from _read(stream, 2, proxy)
    if version != _VERSION:
        raise Fault(f"the proxy {proxy} does not speak SOCKS5")
    if method == _BY_PASSWORD and proxy.user:
        yield from _sign_in(stream, proxy)
    elif method != _NOBODY:
        raise Fault(f"the proxy {proxy} wants credentials that its URL does not have")
    place = _address(server.host.rstrip(".")) + server.port.to_bytes(2, "big")
    yield from stream.send(bytes([_VERSION, _CONNECT, 0]) + place)
    _, reply, _, kind = yield from _read(stream, 4, proxy)
    if reply:
        raise Fault(f"the proxy {proxy} refuses to connect ({_REFUSALS.get(reply, f'reply {reply}')})")
    length = _LENGTHS.get(kind) or (yield from _read(stream, 1, proxy))[0]
    yield from _read(stream, length + 2, proxy)  # whence it connects


def _sign_in(stream: Stream, proxy: Server) -> Work[None]:
    name, _, password = proxy.user.partition(":")
    fields = [text.encode()[:255] for text in (name, password)]
    yield from stream.send(b"\1" + b"".join([bytes([len(field)]) + field for field in fields]))
    _, status = yield from _read(stream, 2, proxy)
    if status:
        raise Fault(f"the proxy {proxy} does not accept the credentials of its URL")


def _address(host: str) -> bytes:
    try:
        address = Address.parse(host)
    except ValueError:
        name = host.encode()[:255]
        return bytes([_NAME, len(name)]) + name
    kind, length = (1, 4) if address.version == 4 else (4, 16)
    return bytes([kind]) + address.number.to_bytes(length, "big")


def _read(stream: Stream, count: int, proxy: Server) -> Work[bytes]:
    found = b""
    while len(found) < count:
        piece = yield from stream.receive(count - len(found))
        if not piece:
            raise Fault(f"the proxy {proxy} ended the connection")
        found += piece
    return found
