"""A transport on the `kubernetes` package: its REST client, with its configuration.

The package's `request` would parse and write our JSON anew, so requests go to the pool of connections that its client
has made for our configuration. TLS is as `adapters.wire.tls` decides: newer Pythons' own defaults would refuse
authorities that clusters have.

Invariant: no type of the package's, or of urllib3's, leaves this module; nothing is sent twice, no redirect followed.
"""

from __future__ import annotations

import ssl

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from urllib3 import exceptions

from adapters.kubernetes.credentials.renewing import RenewingTransport, seconds_left, too_late
from adapters.kubernetes.transport.connecting import tls_context
from adapters.kubernetes.transport.http11 import MOST, TOO_LARGE
from adapters.kubernetes.transport.seam import Answer, Oversized, TransportError, Untrusted
from adapters.kubernetes.transport.timed_pools import Ends, timed_pools
from adapters.wire import faults
from adapters.wire.tls import tls_fault
from ports.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from adapters.kubernetes.credentials.settings import Settings, Tls
    from adapters.kubernetes.transport.seam import Request

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

    def _exchange(self, requests: Sequence[Request], ends: float) -> list[Answer]:
        return [self._ask(request, ends) for request in requests]

    def _ask(self, request: Request, ends: float) -> Answer:
        headers = urllib3.HTTPHeaderDict(self._headers)
        if request.body:
            headers["Content-Type"] = request.content_type
        return self._translated(request, headers, ends)

    def _translated(self, request: Request, headers: Any, ends: float) -> Answer:
        if self._client is None:
            self._ends = Ends()
            self._client = _client(self._settings, self.server)
            self._client.pool_manager.pool_classes_by_scheme = timed_pools(self._ends)
        client, self._ends.at = self._client, ends
        try:
            return self._received(client.pool_manager, request, headers, ends)
        except (exceptions.HTTPError, OSError, ValueError) as error:
            raise _fault(self.server, error) from error

    def _received(self, pool: Any, request: Request, headers: Any, ends: float) -> Answer:
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
        return Answer(response.status, body, {name.lower(): value for name, value in response.headers.items()})


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


def _context(tls: Tls, server: str) -> ssl.SSLContext:
    try:
        context: ssl.SSLContext = tls_context(tls, kind=ssl.SSLContext)
    except faults.Untrusted as error:
        raise Untrusted(f"{server}: {error}") from None
    return context


def _fault(server: str, error: BaseException) -> TransportError:
    """Our error for the library's, which wraps the cause several times."""
    chain = _chain(error)
    harmless = any(isinstance(one, _NOTHING_SENT) for one in chain)
    for one in chain:
        fault = tls_fault(one) if isinstance(one, ssl.SSLError) else None
        if isinstance(fault, faults.Untrusted):
            return Untrusted(f"{server}: {fault}")
    cause = chain[-1]
    if isinstance(cause, TimeoutError) or type(cause) in (exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError):
        return too_late(server, harmless=harmless)
    why = getattr(cause, "strerror", None) or str(cause).strip()
    return TransportError(f"{server}: {why[:1].lower()}{why[1:]}", harmless=harmless)


def _chain(error: BaseException) -> list[BaseException]:
    """An error and its causes, the deepest last."""
    chain = [error]
    while True:
        deeper = getattr(chain[-1], "original_error", None) or chain[-1].__cause__ or chain[-1].__context__
        if not isinstance(deeper, BaseException) or deeper in chain:
            return chain
        chain.append(deeper)
