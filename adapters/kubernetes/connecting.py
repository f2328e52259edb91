"""A connection to a kube-apiserver: names looked up, addresses tried, proxies asked, certificates checked.

Invariant: what was opened on the way is closed when an error leaves; nothing here sends a request to the server.
"""

from __future__ import annotations

import _socket
from time import monotonic

from adapters.kubernetes.http11 import Reader, request_octets
from adapters.kubernetes.streams import TcpStream, TlsStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from adapters.kubernetes.server import Server
    from adapters.kubernetes.settings import Settings, Tls
    from adapters.kubernetes.streams import Stream


def connect(settings: Settings, ends: float) -> Stream:
    """OSError; of `_ssl`, too. ValueError for certificates that cannot be used."""
    server, proxy = settings.server, settings.proxy
    stream: Stream = _tcp(proxy or server, ends)
    try:
        if proxy and proxy.secure:
            stream = _secured(stream, settings.tls.replace(cert=b"", key=b"", server_name=""), proxy, ends)
        if proxy and server.secure:
            _tunnel(stream, server, proxy, ends)
        if server.secure:
            stream = _secured(stream, settings.tls, server, ends)
    except BaseException:
        stream.close()
        raise
    return stream


def proxy_headers(proxy: Server) -> tuple[tuple[str, str], ...]:
    """What shows a proxy who we are."""
    if not proxy.user:
        return ()
    from binascii import b2a_base64

    return (("Proxy-Authorization", f"Basic {b2a_base64(proxy.user.encode(), newline=False).decode()}"),)


def _secured(stream: Stream, tls: Tls, server: Server, ends: float) -> TlsStream:
    import _ssl

    from adapters.kubernetes.tls import configure

    context = _ssl._SSLContext(_ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = True
    context.verify_mode = _ssl.CERT_REQUIRED
    configure(context, tls)
    host = tls.server_name or server.host.partition("%")[0].rstrip(".")
    return TlsStream(stream, context, host, ends)


def _tunnel(stream: Stream, server: Server, proxy: Server, ends: float) -> None:
    """Ask the proxy to pass everything on."""
    headers = (("Host", server.place), ("User-Agent", "tortie"), *proxy_headers(proxy))
    stream.send(request_octets("CONNECT", server.place, headers, b""), ends)
    reader = Reader(lambda: stream.receive(ends))
    answer, _ = reader.answer("CONNECT")
    if not 200 <= answer.status < 300:
        raise OSError(f"the proxy {proxy} refuses to connect (status {answer.status})")
    if reader.unread():
        raise OSError(f"the proxy {proxy} speaks for the server")


def _tcp(server: Server, ends: float) -> TcpStream:
    """To the first address that answers; each gets an equal part of the time that is left."""
    addresses = look_up(server.host, server.port, ends)
    while True:
        family, kind, protocol, _, address = addresses.pop(0)
        left = ends - monotonic()
        if left <= 0:
            raise TimeoutError
        socket = _socket.socket(family, kind, protocol)
        try:
            socket.settimeout(left / (len(addresses) + 1))
            socket.connect(address)
            socket.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        except OSError:
            socket.close()
            if not addresses:
                raise
        except BaseException:
            socket.close()
            raise
        else:
            return TcpStream(socket)


def look_up(host: str, port: int, ends: float) -> list[Any]:
    """Addresses as `getaddrinfo` gives them. A resolver may take minutes and cannot be interrupted, so names are looked
    up aside and then given up on.
    """
    try:
        return _socket.getaddrinfo(host, port, type=_socket.SOCK_STREAM, flags=_socket.AI_NUMERICHOST)
    except _socket.gaierror:
        pass
    from _thread import allocate_lock, start_new_thread

    found: list[Any] = []
    faults: list[OSError] = []
    done = allocate_lock()
    done.acquire()

    def aside() -> None:
        try:
            found.extend(_socket.getaddrinfo(host, port, type=_socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            faults.append(error if isinstance(error, OSError) else OSError("it is no host name"))
        finally:
            done.release()

    start_new_thread(aside, ())
    if not done.acquire(timeout=max(0.0, ends - monotonic())):
        raise TimeoutError
    if not found:
        why = faults[0].strerror or faults[0] if faults else "it has no address"
        raise OSError(f"the name {host} cannot be looked up: {why}")
    return found
