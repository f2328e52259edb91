"""Connections by TCP and Unix sockets, on the C module alone.

A host may have several addresses of which some do not answer, so they are tried 250 ms apart and the first that
connects is taken. Looking up a name may take minutes and cannot be interrupted, so a thread does it, which is left
alone when it takes too long.

Invariant: a socket that was opened is returned or closed. All sockets are non-blocking and closed in programs that
are started later.
"""

from __future__ import annotations

import _socket
from errno import EAGAIN, EINPROGRESS, EINTR
from os import close, name, pipe, strerror
from time import monotonic

from adapters.wire.faults import Fault
from adapters.wire.waiting import FOREVER, READABLE, WRITABLE, race

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from adapters.wire.waiting import Work

    Address: TypeAlias = tuple[int, Any]
    """Family, and what `connect` takes."""

HEAD_START = 0.25  # seconds that an address has before the next one is tried as well
_FULL_QUEUE_PAUSE = 0.02  # seconds until a Unix socket whose queue was full is tried again
_NAME_PAUSE = 0.005  # seconds between two looks at what the resolver has, where a pipe cannot be waited for
_PIECE = 65536

_WOULD_BLOCK = 10035  # WSAEWOULDBLOCK: how Windows says EINPROGRESS
_WINSOCK = {  # its other numbers, of which `strerror` knows nothing
    10051: "network is unreachable",
    10054: "connection reset by peer",
    10060: "connection timed out",
    10061: "connection refused",
    10065: "no route to host",
}


class Socket(_socket.socket):
    """TLS keeps a weak reference to the socket that it works on, for which the C class has no place."""

    __slots__ = ("__weakref__",)


class Stream:
    """Octets in both directions."""

    def __init__(self, connection: Socket) -> None:
        self.connection = connection

    def send(self, octets: bytes | bytearray) -> Work[None]:
        """All of it."""
        left = memoryview(octets)
        while left:
            try:
                left = left[self.connection.send(left) :]
            except BlockingIOError:
                yield ((self.connection.fileno(), WRITABLE),), FOREVER
            except OSError as error:
                raise Fault(f"the connection broke: {_reason(error)}") from error

    def receive(self, limit: int = _PIECE) -> Work[bytes]:
        """What has come, as soon as anything has; b"" at the end."""
        while True:  # waiting comes first, so that a sender without end does not get round the deadline
            yield ((self.connection.fileno(), READABLE),), FOREVER
            try:
                return self.connection.recv(limit)
            except BlockingIOError:
                continue
            except OSError as error:
                raise Fault(f"the connection broke: {_reason(error)}") from error

    def close(self) -> None:
        """Safe to repeat."""
        self.connection.close()


def connect_tcp(host: str, port: int) -> Work[Stream]:
    """`host` is a name or an address, IPv6 without brackets. `Fault` names the addresses that were tried."""
    addresses = yield from look_up(host, port)
    connection = yield from race([_connect(address) for address in addresses], HEAD_START)
    connection.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    return Stream(connection)


def connect_unix(path: str) -> Work[Stream]:
    """`path` may begin with NUL for the abstract namespace."""
    connection = Socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        while (failed := _begin(connection, path)) == EAGAIN:
            yield (), monotonic() + _FULL_QUEUE_PAUSE
        if failed:
            raise Fault(f"dial unix {path}: connect: {_text(failed)}")
    except BaseException:
        connection.close()
        raise
    return Stream(connection)


def look_up(host: str, port: int) -> Work[list[Address]]:
    """At least one address. `Fault` with the resolver's reason."""
    if not 0 <= port < 65536:
        raise Fault(f"lookup {host}: there is no port {port}")
    try:
        return _resolve(host, port, _socket.AI_NUMERICHOST | _socket.AI_NUMERICSERV)
    except (OSError, ValueError):
        return (yield from _look_up_aside(host, port))


def _look_up_aside(host: str, port: int) -> Work[list[Address]]:
    from _thread import start_new_thread

    found: list[Address] = []
    reasons: list[str] = []

    def look_up(done: int) -> None:
        try:
            found.extend(_resolve(host, port, _socket.AI_NUMERICSERV))
        except (OSError, ValueError) as error:  # UnicodeError: a label that is no label
            reasons.append(error.strerror if isinstance(error, OSError) and error.strerror else "no such host")
        finally:
            close(done)  # the thread's own end of the pipe, whatever has become of the other one

    asking, done = pipe()
    try:
        try:
            start_new_thread(look_up, (done,))
        except RuntimeError:  # as many threads as there may be
            look_up(done)
        while not (found or reasons):
            yield (((asking, READABLE),), FOREVER) if name != "nt" else ((), monotonic() + _NAME_PAUSE)
    finally:
        close(asking)
    if not found:
        raise Fault(f"lookup {host}: {reasons[0]}")
    return found


def _resolve(host: str, port: int, flags: int) -> list[Address]:
    # A text would be encoded by a codec that loads twice as much as all of this. Octets end at a NUL.
    asked = host.encode("ascii") if host.isascii() and "\0" not in host else host
    answers = _socket.getaddrinfo(asked, port, type=_socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in answers]


def _connect(address: Address) -> Work[Socket]:
    try:
        connection = Socket(address[0], _socket.SOCK_STREAM)
    except OSError as error:  # such as a system without IPv6
        raise _refused(address, error.errno or 0) from error
    try:
        connection.setblocking(False)
        failed = _begin(connection, address[1])
        if not failed:
            yield ((connection.fileno(), WRITABLE),), FOREVER
            failed = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
        if failed:
            raise _refused(address, failed)
    except BaseException:
        connection.close()
        raise
    return connection


def _begin(connection: Socket, target: Any) -> int:
    """The error number; 0 if it is connected or on its way."""
    try:
        failed = connection.connect_ex(target)
    except OSError as error:  # a Unix path that is too long
        raise Fault(f"dial {target}: {error}") from error
    return 0 if failed in (EINPROGRESS, EINTR, _WOULD_BLOCK) else failed


def _refused(address: Address, number: int) -> Fault:
    host, port = address[1][:2]
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Fault(f"dial tcp {shown}: connect: {_text(number)}")


def _reason(error: OSError) -> str:
    return _text(error.errno) if error.errno else str(error)


def _text(number: int) -> str:
    text = _WINSOCK.get(number) or strerror(number)
    return text[:1].lower() + text[1:]
