"""What tests ask a Kubernetes API server past the product: JSON over HTTPS, by path, on the standard library alone.

    client.get("/api/v1/nodes/node-a")["metadata"]["uid"]
    client.find("/api/v1/namespaces/gold/pods/web-0")        None if there is none
    client.patch(path, {"metadata": {"labels": {"a": "b"}}})

A server that has just started, or just begun to serve a kind of object, may have no answer yet: it is asked again.

Errors: `Refused` for an answer of 400 or more, with the server's own words; OSError if there is no answer.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]

_LONGEST_ANSWER = 60.0
_LONGEST_BEGINNING, _PAUSE = 120.0, 0.1
_NOT_YET = 429  # "storage is (re)initializing": of too many requests nobody complains here
_AT_ONCE = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}  # there is no kubelet to wait for


class Refused(Exception):
    """The server's answer is an error: `status` is HTTP's number, `reason` Kubernetes' word such as `AlreadyExists`."""

    def __init__(self, request: str, status: int, answer: Object) -> None:
        super().__init__(f"{request}: {status} {answer.get('message', answer)}")
        self.status = status
        self.reason: str = answer.get("reason", "")


class KubeClient:
    """One user of one server, on one connection. Threads take turns."""

    def __init__(self, url: str, context: ssl.SSLContext | None = None, token: str = "") -> None:
        self.url = url
        self._context = context
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: HTTPConnection | None = None
        self._lock = threading.Lock()

    def ask(self, method: str, path: str, body: object = None, *, content: str = "application/json") -> Object:
        octets = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": content} if octets is not None else {})
        ends = time.monotonic() + _LONGEST_BEGINNING
        with self._lock:
            status, text = self._exchange(method, path, octets, headers)
            while status == _NOT_YET and time.monotonic() < ends:
                time.sleep(_PAUSE)
                status, text = self._exchange(method, path, octets, headers)
        try:
            answer = json.loads(text) if text else {}
        except ValueError:
            answer = {"message": text.decode(errors="replace").strip()}
        if status >= 400:
            raise Refused(f"{method} {path}", status, answer)
        return answer if isinstance(answer, dict) else {"message": str(answer)}

    def get(self, path: str) -> Object:
        return self.ask("GET", path)

    def find(self, path: str) -> Object | None:
        try:
            return self.ask("GET", path)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def list(self, path: str, **query: str | int) -> list[Object]:
        """The items of a list, without paging; query as in `labelSelector="app=web"`."""
        items: list[Object] = self.ask("GET", f"{path}?{urlencode(query)}" if query else path).get("items", [])
        return items

    def create(self, path: str, made: Object) -> Object:
        """`path` is that of the list."""
        return self.ask("POST", path, made)

    def put(self, path: str, changed: Object) -> Object:
        return self.ask("PUT", path, changed)

    def patch(self, path: str, change: object, *, content: str = "application/merge-patch+json") -> Object:
        return self.ask("PATCH", path, change, content=content)

    def delete(self, path: str) -> None:
        """At once, the object or all those of a list. Fails if it is not there."""
        self.ask("DELETE", path, _AT_ONCE)

    def drop(self, path: str) -> bool:
        """Delete it if it is there, and say whether it was."""
        try:
            self.delete(path)
        except Refused as error:
            if error.status == 404:
                return False
            raise
        return True

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _exchange(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        """A connection that was used before may have been closed by the server meanwhile: that is tried once more."""
        used_before = self._connection is not None
        try:
            response = self._send(method, path, body, headers)
            return response.status, response.read()
        except (OSError, HTTPException) as error:
            self._disconnect()
            if not used_before or isinstance(error, TimeoutError):
                raise error if isinstance(error, OSError) else ConnectionError(repr(error)) from error
        return self._exchange(method, path, body, headers)

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> HTTPResponse:
        if self._connection is None:
            where = urlsplit(self.url)
            host = where.hostname or ""
            if where.scheme == "https":
                self._connection = HTTPSConnection(host, where.port, timeout=_LONGEST_ANSWER, context=self._context)
            else:
                self._connection = HTTPConnection(host, where.port, timeout=_LONGEST_ANSWER)
        self._connection.request(method, urlsplit(self.url).path.rstrip("/") + path, body, headers)
        return self._connection.getresponse()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
