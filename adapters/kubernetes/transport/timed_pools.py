"""Pools of urllib3's that read an answer within a time for the whole of it.

The library's limit is for each read by itself, and Python's own HTTP client below it reads remarks (status 100) and
headers as long as they come: whoever sends an octet now and then holds a call for ever.

Invariant: no octet of an answer is waited for past the moment that `Ends` names.
"""

from __future__ import annotations

from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from time import monotonic

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
