"""Waiting for somebody else: a URL that answers, a file that appears.

`http.client` costs more to load than a pod start should; one GET of which only the status counts needs little. Gates
are probed over a bare socket, `https` ones with the system's trust store. Proxies are not used: gates are local.

Invariant: one probe, name look-up and redirects included, takes at most `PROBE_EVERY` seconds, and none is begun
after the deadline.
"""

from __future__ import annotations

import os

from domain.cni.gate_url import parse_gate_url, resolve_redirect, shown
from ports.errors import Expired
from ports.readiness import PROBE_EVERY, Readiness, refused_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket  # noqa: N812 - a class, misspelled there
    from typing import Any

    from domain.cni.gate_url import GateUrl
    from ports.clock import Clock, Deadline

_MOST_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_HEADER = 1 << 16
_LOOK_EVERY = 0.05


class _NotHttp(ValueError):
    """Something else was asked for, or has answered."""


class HttpReadiness(Readiness):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def gate(self, url: str, deadline: Deadline) -> None:
        try:
            target = parse_gate_url(url)
        except ValueError as error:
            raise refused_url(url, error) from None
        while True:
            started = self._clock.monotonic()
            if deadline.passed(started):
                raise Expired(f"readiness gate {shown(url)}")
            if self._ready(target, deadline.sooner(started, PROBE_EVERY)):
                return
            now = self._clock.monotonic()
            self._clock.sleep(min(started + PROBE_EVERY, deadline.at) - now)

    def file_appears(self, path: str, deadline: Deadline) -> bool:
        while not _exists(path):
            now = self._clock.monotonic()
            if deadline.passed(now):
                return False
            self._clock.sleep(min(_LOOK_EVERY, deadline.left(now)))
        return True

    def _ready(self, target: GateUrl, deadline: Deadline) -> bool:
        """One probe. Anything that goes wrong is "not yet"."""
        try:
            for _ in range(_MOST_REDIRECTS + 1):
                status, location = self._get(target, deadline)
                if status not in _REDIRECTS or not location:
                    return 200 <= status <= 399
                target = resolve_redirect(target, location)
        except (OSError, ValueError):
            pass
        return False

    def _get(self, target: GateUrl, deadline: Deadline) -> tuple[int, str]:
        """Status and Location of one answer."""
        if not target.fetchable:
            raise _NotHttp(f"unsupported protocol scheme {target.scheme!r}")
        connection = self._connect(target, deadline)
        try:
            connection.settimeout(self._left(deadline))
            connection.sendall(_request(target))
            received = bytearray()
            while True:
                connection.settimeout(self._left(deadline))
                received += connection.recv(4096) or _cut_off()
                answer = _answer(received)
                if answer:
                    return answer
        finally:
            connection.close()

    def _connect(self, target: GateUrl, deadline: Deadline) -> Socket:
        """The first address that answers; each gets an equal part of the time that is left."""
        addresses = self._look_up(target.host, target.port, deadline)
        while True:
            family, kind, protocol, _, address = addresses.pop(0)
            try:
                return _open(target, (family, kind, protocol), address, self._left(deadline) / (len(addresses) + 1))
            except OSError:
                if not addresses:
                    raise

    def _look_up(self, host: str, port: int, deadline: Deadline) -> list[Any]:
        """A resolver may take minutes and cannot be interrupted, so names are looked up aside and then given up on."""
        import _socket

        numeric = _socket.AI_NUMERICHOST
        # A text would be encoded by a codec that takes longer to load than a look-up. Octets end at a NUL.
        name = host.encode("ascii") if host.isascii() and "\0" not in host else host
        try:
            return _socket.getaddrinfo(name, port, type=_socket.SOCK_STREAM, flags=numeric)
        except _socket.gaierror:
            pass
        from _thread import allocate_lock, start_new_thread

        found: list[Any] = []
        done = allocate_lock()
        done.acquire()

        def look_up() -> None:
            try:
                found.extend(_socket.getaddrinfo(name, port, type=_socket.SOCK_STREAM))
            except (OSError, ValueError):
                pass  # nothing is found
            finally:
                done.release()

        start_new_thread(look_up, ())
        if not done.acquire(timeout=self._left(deadline)) or not found:
            raise OSError(f"lookup {host}: no such host")
        return found

    def _left(self, deadline: Deadline) -> float:
        left = deadline.left(self._clock.monotonic())
        if left <= 0:
            raise TimeoutError
        return left


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except (OSError, ValueError):
        return False
    return True


def _open(target: GateUrl, kind: tuple[int, int, int], address: Any, seconds: float) -> Socket:
    import _socket

    if target.scheme == "http":
        connection: Any = _socket.socket(*kind)
    else:
        import socket
        import ssl

        connection = socket.socket(*kind)
    try:
        connection.settimeout(seconds)
        if target.scheme == "https":
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=target.host)
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection  # type: ignore[no-any-return]  # one of two classes that share what is used here


def _request(target: GateUrl) -> bytes:
    lines = [f"GET {target.target} HTTP/1.1", f"Host: {target.authority}", "User-Agent: tortie", "Connection: close"]
    if target.user:
        from binascii import b2a_base64

        name, _, password = target.user.partition(":")
        credentials = b2a_base64(f"{name}:{password}".encode(), newline=False).decode()
        lines.append(f"Authorization: Basic {credentials}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "replace")


def _cut_off() -> bytes:
    raise ConnectionError("unexpected EOF")


def _answer(received: bytearray) -> tuple[int, str] | None:
    """Status and Location, once the header is complete; interim answers (1xx) are taken off. _NotHttp: it is none."""
    while True:
        text = bytes(received).replace(b"\r\n", b"\n")
        if not text.startswith(b"HTTP/"[: len(text)]) or len(text) > _LONGEST_HEADER:
            raise _NotHttp("malformed HTTP response")
        header, blank, rest = text.partition(b"\n\n")
        if not blank:
            return None
        first, *fields = header.decode("latin-1").split("\n")
        status = int(first.split(" ")[1]) if first.count(" ") else 0
        if not 100 <= status < 200:
            return status, _location(fields)
        received[:] = rest


def _location(fields: list[str]) -> str:
    for field in fields:
        name, _, location = field.partition(":")
        if name.lower() == "location":
            return location.strip()
    return ""
