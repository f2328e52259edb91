"""What both transports do alike: keep settings, read them again on request, encode paths, keep the pace.

No more requests are sent than a server should get from one client: a bucket of tokens, as in the original's client.
The defaults let a plugin call through without waiting; they keep a long-running command from flooding the server.

Invariant: new settings are taken as a whole, or not at all. Over any time t at most `burst + qps * t` requests are let
through.
"""

from __future__ import annotations

from abc import abstractmethod
from time import monotonic, sleep

from adapters.kubernetes.transport.seam import ApiTransport, ApiTransportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapters.kubernetes.credentials.settings import Settings
    from adapters.kubernetes.transport.seam import HttpAnswer, HttpRequest

USER_AGENT = "tortie"
_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


class RenewingTransport(ApiTransport):
    """`read` gives the settings anew, an exec plugin's answer included. `_open` connects to nothing."""

    def __init__(self, settings: Settings, read: Callable[[], Settings]) -> None:
        self._read = read
        self._pace = Pace(settings.qps, settings.burst)
        self._take(settings)

    def send(self, requests: Sequence[HttpRequest], seconds: float) -> list[HttpAnswer]:
        ends = monotonic() + seconds
        wait = self._pace.wait_for(len(requests), monotonic())
        if wait > seconds:
            raise ApiTransportError(
                f"{self.server}: no turn within the limit of requests", harmless=True, timed_out=True
            )
        if wait:
            sleep(wait)
        return self._exchange(requests, ends)

    def renew(self) -> bool:
        settings = self._read()
        if settings.same_connection(self._settings):
            return False
        self.close()
        self._take(settings)
        return True

    def _take(self, settings: Settings) -> None:
        self._settings = settings
        self.server = str(settings.server)
        self.credentials = settings.credentials
        self._headers = (("User-Agent", USER_AGENT), ("Accept", "application/json"), *settings.headers)

    def _target(self, request: HttpRequest) -> str:
        """Path and query as the request line has them."""
        query = "&".join([f"{_encoded(name)}={_encoded(value)}" for name, value in request.query])
        return self._settings.server.prefix + request.path + (f"?{query}" if query else "")

    @abstractmethod
    def _exchange(self, requests: Sequence[HttpRequest], ends: float) -> list[HttpAnswer]:
        """Until `ends`, on the monotonic clock."""


def seconds_left(server: str, ends: float, *, harmless: bool) -> float:
    """ApiTransportError when there are none."""
    left = ends - monotonic()
    if left <= 0:
        raise too_late(server, harmless=harmless)
    return left


def too_late(server: str, *, harmless: bool) -> ApiTransportError:
    return ApiTransportError(f"{server}: no answer within the time given", harmless=harmless, timed_out=True)


def _encoded(text: str) -> str:
    octets = text.encode("utf-8", "replace")
    if _UNRESERVED.issuperset(octets):
        return text
    return "".join([chr(octet) if octet in _UNRESERVED else f"%{octet:02X}" for octet in octets])


class Pace:
    """`qps` of 0 or less is no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = max(1, burst)
        self._tokens = float(self._burst)
        self._filled = 0.0

    def wait_for(self, requests: int, now: float) -> float:
        """Seconds until that many more may be sent; they count as sent. `now` is on any monotonic clock."""
        if self._qps <= 0:
            return 0.0
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._qps)
        self._filled = now
        self._tokens -= requests
        return max(0.0, -self._tokens / self._qps)
