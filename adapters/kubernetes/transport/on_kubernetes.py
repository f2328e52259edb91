"""A transport on the `kubernetes` package: its REST client, with its configuration.

The package's `request` would parse and write our JSON anew, so requests go to the pool of connections that its client
has made for our configuration. TLS is as `adapters.wire.tls` decides: newer Pythons' own defaults would refuse
authorities that clusters have.

urllib3's limit is for each read by itself, and Python's own HTTP client below it reads remarks (status 100) and headers
as long as they come: whoever sends an octet now and then would hold a call for ever. So the pools are ours, which read
an answer within a time for the whole of it.

Invariant: no type of the package's, or of urllib3's, leaves this module; nothing is sent twice, no redirect followed.
No octet of an answer is waited for past the moment that `Ends` names.
"""

from __future__ import annotations

import ssl
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from time import monotonic

import urllib3
from urllib3 import exceptions
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from adapters.kubernetes.transport.connecting import tls_context
from adapters.kubernetes.transport.http11 import MOST, TOO_LARGE
from adapters.kubernetes.transport.renewing import RenewingTransport, seconds_left, too_late
from adapters.kubernetes.transport.seam import ApiTransportError, ApiUntrusted, HttpAnswer, Oversized
from adapters.wire import faults
from adapters.wire.bare_packages import BarePackages
from adapters.wire.tls import tls_fault
from ports.errors import BadConfiguration

with BarePackages("kubernetes", "kubernetes.client"):
    from kubernetes.client.configuration import Configuration
    from kubernetes.client.rest import RESTClientObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from adapters.kubernetes.credentials.settings import ApiTls, Settings
    from adapters.kubernetes.transport.seam import HttpRequest


class Ends:
    """`at` is on the monotonic clock."""

    at = float("inf")


class _Timed(RawIOBase):
    """A socket's octets."""

    def __init__(self, connection: Any, octets: Any, ends: Ends) -> None:
        self._connection, self._octets, self._ends = connection, octets, ends

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._ends.at - monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        self._connection.settimeout(left)
        count: int | None = self._octets.readinto(buffer)
        return count

    def close(self) -> None:
        self._octets.close()
        super().close()


def timed_pools(ends: Ends) -> dict[str, type[HTTPConnectionPool]]:
    """For `PoolManager.pool_classes_by_scheme`."""

    class Response(HTTPResponse):
        def __init__(self, sock: Any, *args: Any, **more: Any) -> None:
            super().__init__(sock, *args, **more)
            self.fp = BufferedReader(_Timed(sock, self.fp.detach(), ends))

    class Plain(HTTPConnection):
        response_class = Response

    class Secure(HTTPSConnection):
        response_class = Response

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


urllib3.disable_warnings(exceptions.InsecureRequestWarning)  # who switches verification off knows it

_PIECE = 1 << 16
_NOTHING_SENT = (exceptions.NewConnectionError, exceptions.ConnectTimeoutError, exceptions.ProxyError)


class KubernetesTransport(RenewingTransport):
    _client: RESTClientObject | None = None
    _ends: Ends

    def close(self) -> None:
        if self._client:
            self._client.close()
            self._client = None

    def _exchange(self, requests: Sequence[HttpRequest], ends: float) -> list[HttpAnswer]:
        return [self._ask(request, ends) for request in requests]

    def _ask(self, request: HttpRequest, ends: float) -> HttpAnswer:
        headers = urllib3.HTTPHeaderDict(self._headers)
        if request.body:
            headers["Content-Type"] = request.content_type
        return self._translated(request, headers, ends)

    def _translated(self, request: HttpRequest, headers: Any, ends: float) -> HttpAnswer:
        if self._client is None:
            self._ends = Ends()
            self._client = _client(self._settings, self.server)
            self._client.pool_manager.pool_classes_by_scheme = timed_pools(self._ends)
        client, self._ends.at = self._client, ends
        try:
            return self._received(client.pool_manager, request, headers, ends)
        except (exceptions.HTTPError, OSError, ValueError) as error:
            raise _fault(self.server, error) from error

    def _received(self, pool: Any, request: HttpRequest, headers: Any, ends: float) -> HttpAnswer:
        left = seconds_left(self.server, ends, harmless=True)
        response = pool.request(
            request.method,
            str(self._settings.server.replace(prefix="")) + self._target(request),
            body=request.body or None,
            headers=headers,
            timeout=urllib3.Timeout(connect=left, read=left),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,  # it would be unpacked to any size, and nobody asked for it
        )
        body = bytearray()
        while piece := response.read1(_PIECE):
            body += piece
            if len(body) > MOST:
                response.close()
                raise Oversized(f"{self.server}: {TOO_LARGE}")
        response.release_conn()
        return HttpAnswer(response.status, body, {name.lower(): value for name, value in response.headers.items()})


def _client(settings: Settings, server: str) -> RESTClientObject:
    if settings.proxy and settings.proxy.is_socks:
        raise BadConfiguration(f'the proxy {settings.proxy}: only TORTIE_TRANSPORT "lean" speaks SOCKS; set that')
    configuration = Configuration(host=server, proxy="", no_proxy="")
    configuration.proxy = str(settings.proxy) if settings.proxy else None
    if settings.proxy and settings.proxy.user:
        configuration.proxy_headers = urllib3.make_headers(proxy_basic_auth=settings.proxy.user)
    configuration.verify_ssl = not settings.tls.insecure
    configuration.tls_server_name = settings.tls.server_name or None
    if settings.proxy and settings.proxy.secure:
        configuration.proxy_ssl_context = _context(settings.tls.replace(cert=b"", key=b""), server)
    client = RESTClientObject(configuration)
    if settings.server.secure:
        client.pool_manager.connection_pool_kw["ssl_context"] = _context(settings.tls, server)
    return client


def _context(tls: ApiTls, server: str) -> ssl.SSLContext:
    try:
        context: ssl.SSLContext = tls_context(tls, kind=ssl.SSLContext)
    except faults.Untrusted as error:
        raise ApiUntrusted(f"{server}: {error}") from None
    return context


def _fault(server: str, error: BaseException) -> ApiTransportError:
    """Our error for the library's, which wraps the cause several times."""
    chain = _chain(error)
    harmless = any(isinstance(one, _NOTHING_SENT) for one in chain)
    for one in chain:
        fault = tls_fault(one) if isinstance(one, ssl.SSLError) else None
        if isinstance(fault, faults.Untrusted):
            return ApiUntrusted(f"{server}: {fault}")
    cause = chain[-1]
    if isinstance(cause, TimeoutError) or type(cause) in (exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError):
        return too_late(server, harmless=harmless)
    why = getattr(cause, "strerror", None) or str(cause).strip()
    return ApiTransportError(f"{server}: {why[:1].lower()}{why[1:]}", harmless=harmless)


def _chain(error: BaseException) -> list[BaseException]:
    """An error and its causes, the deepest last."""
    chain = [error]
    while True:
        deeper = getattr(chain[-1], "original_error", None) or chain[-1].__cause__ or chain[-1].__context__
        if not isinstance(deeper, BaseException) or deeper in chain:
            return chain
        chain.append(deeper)
