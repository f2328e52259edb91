"""A connection to a kube-apiserver: addresses tried, proxies asked, certificates checked.

Invariant: what was opened on the way is closed when an error leaves; nothing here sends a request to the server.
"""

from __future__ import annotations

from adapters.kubernetes.transport.http11 import Reader, request_octets
from adapters.wire.faults import Fault
from adapters.wire.sockets import connect_tcp
from adapters.wire.waiting import READABLE, drive, ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from adapters.kubernetes.credentials.server import Server
    from adapters.kubernetes.credentials.settings import ApiTls, Settings
    from adapters.wire.sockets import Stream


def connect(settings: Settings, ends: float) -> Stream:
    """`Fault`. `ends` is on the monotonic clock."""
    server, proxy = settings.server, settings.proxy
    first = proxy or server
    stream: Stream = drive(connect_tcp(first.host.rstrip("."), first.port), ends)
    try:
        if proxy and proxy.secure:
            stream = _secured(stream, settings.tls.replace(cert=b"", key=b"", server_name=""), proxy, ends)
        if proxy and proxy.is_socks:
            from adapters.kubernetes.transport.socks5 import ask_to_pass_on

            drive(ask_to_pass_on(stream, server, proxy), ends)
        elif proxy and server.secure:
            _tunnel(stream, server, proxy, ends)
        if server.secure:
            stream = _secured(stream, settings.tls, server, ends, nested=proxy is not None and proxy.secure)
    except BaseException:
        stream.close()
        raise
    return stream


def is_idle(stream: Stream) -> bool:
    """Whether it stands and nothing unexpected has come. What has come is lost, so then it is of no more use."""
    work = stream.receive()
    try:
        wanted, _ = next(work)
        while wanted and wanted[0][1] == READABLE:
            here = ready(wanted, 0)
            if not here:
                return True
            wanted, _ = work.send(here)  # such as new keys for the session: nothing for us
    except (Fault, StopIteration):
        pass
    finally:
        work.close()
    return False


def proxy_headers(proxy: Server) -> tuple[tuple[str, str], ...]:
    """What shows a proxy who we are."""
    if not proxy.user:
        return ()
    from binascii import b2a_base64

    return (("Proxy-Authorization", f"Basic {b2a_base64(proxy.user.encode(), newline=False).decode()}"),)


def tls_context(tls: ApiTls, **kind: Any) -> Any:
    """As `adapters.wire.tls.make_context`, for HTTP/1.1."""
    from adapters.wire.tls import TlsSettings, make_context

    settings = TlsSettings(tls.ca, tls.cert, tls.key, verified=not tls.insecure, protocols=(b"http/1.1",))
    return make_context(settings, **kind)


def _secured(stream: Stream, tls: ApiTls, server: Server, ends: float, *, nested: bool = False) -> Stream:
    from adapters.wire.tls import start_tls

    context = tls_context(tls)
    host = tls.server_name or server.host.partition("%")[0].rstrip(".")
    if not nested:
        return drive(start_tls(stream, context, host), ends)
    from adapters.kubernetes.transport.nested_tls import NestedTls

    inner = NestedTls(stream, context, host)
    drive(inner.start(), ends)
    return inner


def _tunnel(stream: Stream, server: Server, proxy: Server, ends: float) -> None:
    """Ask the proxy to pass everything on."""
    headers = (("Host", server.place), ("User-Agent", "tortie"), *proxy_headers(proxy))
    drive(stream.send(request_octets("CONNECT", server.place, headers, b"")), ends)
    reader = Reader(lambda: drive(stream.receive(), ends))
    answer, _ = reader.answer("CONNECT")
    if not 200 <= answer.status < 300:
        raise Fault(f"the proxy {proxy} refuses to connect (status {answer.status})")
    if reader.unread():
        raise Fault(f"the proxy {proxy} speaks for the server")
