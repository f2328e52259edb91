"""A proxy in front of a kube-apiserver that sees single requests, records them, and does to them what a test means.

    with KubeProxy(served.server, netns=path) as proxy:
        proxy.kubeconfig(folder / "config", token=...)     for a program that is to come this way
        proxy.arm(numbered(3), lose_reply)                 what to do with the third request: see `request_faults`
        proxy.arm(at("PATCH", "/status"), answer(409, status(409, "Conflict")), times=2)
        proxy.asked                                        what has come since then, answers and sizes with it

It ends the client's TLS and speaks TLS with the server, HTTP/1.1 on both sides; requests that come in one go are
answered in order. A request goes on with all its headers, so a token says who asks; a client certificate does not.

Invariant: no thread and no socket outlives the `with` block.
"""

from __future__ import annotations

import base64
import select
import socket
import ssl
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from services.etcd import Authority
from services.kubernetes_server import KubernetesServer
from services.tcp_proxy import _listen_in

HOSTS = "IP:127.0.0.1,IP:::1,DNS:localhost,DNS:api.test"
_STEP = 0.02  # seconds between two looks at whether the end has come
_LONGEST = 120.0
_OF_A_CONNECTION = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class _Over(Exception):
    """The connection is not to be used any more; what had to be done to it has been done."""


@dataclass
class Asked:
    """A request, and what became of it. `number` counts from 1, `connection` too; `path` is without the query.

    `status` is that of the answer that the client got, 0 for none; `size` counts the octets of request and answer,
    HTTP's own included.
    """

    number: int
    method: str
    target: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    connection: int
    size: int = 0
    status: int = 0
    reply: bytes = field(default=b"", repr=False)

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    def __str__(self) -> str:
        return f"request {self.number} ({self.method} {self.path})"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Exchange:
    """One request with its connection: what an action has to work with."""

    def __init__(self, proxy: KubeProxy, asked: Asked, client: ssl.SSLSocket, server: HTTPSConnection) -> None:
        self._proxy, self.asked, self._client, self._server = proxy, asked, client, server

    def forward(self) -> Reply:
        """Have the server do it."""
        asked = self.asked
        try:
            self._server.request(asked.method, asked.target, asked.body or None, asked.headers)
            response = self._server.getresponse()
            return Reply(response.status, response.getheaders(), response.read())
        except (OSError, HTTPException) as error:
            _reset(self._client)
            raise _Over from error

    def pass_on(self, reply: Reply) -> None:
        head = self._head(reply)
        self.asked.status, self.asked.reply = reply.status, reply.body
        self.asked.size += len(head) + len(reply.body)
        self._client.sendall(head + reply.body)

    def send_head(self, reply: Reply) -> None:
        """The headers of an answer without its body."""
        self._client.sendall(self._head(reply))

    def send(self, octets: bytes) -> None:
        self._client.sendall(octets)

    def reset(self) -> None:
        """End the connection with an error, and this exchange with it."""
        _reset(self._client)
        raise _Over

    def close(self) -> None:
        """End the connection in good order after what was sent."""
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)
        raise _Over

    def hang(self) -> None:
        """Nothing more comes, and nothing ends, until the test's end or the client's."""
        while not self._proxy.ended.is_set():
            if select.select([self._client], [], [], _STEP)[0] and not _has_more(self._client):
                break
        raise _Over

    def pause(self, seconds: float) -> None:
        self._proxy.ended.wait(seconds)

    def _head(self, reply: Reply) -> bytes:
        kept = [(name, value) for name, value in reply.headers if name.lower() not in _OF_A_CONNECTION]
        lines = [f"HTTP/1.1 {reply.status} Whatever", *[f"{name}: {value}" for name, value in kept]]
        lines.append(f"Content-Length: {len(reply.body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


Action = Callable[[Exchange], None]
When = Callable[[Asked], bool]


def relay(exchange: Exchange) -> None:
    """As if there were no proxy."""
    exchange.pass_on(exchange.forward())


# --- the proxy ------------------------------------------------------------------------------------------------------


@dataclass
class _Rule:
    when: When
    action: Action
    times: int
    """How often still; a negative number is never used up."""


class KubeProxy:
    """`netns` is whose loopback it listens on, at `host`; `prefix` is a path that it wants before each."""

    def __init__(self, server: KubernetesServer, *, netns: str = "", host: str = "127.0.0.1", prefix: str = "") -> None:
        self._server = server
        where = urlsplit(server.url)
        self._place = (where.hostname or "", where.port or 443)
        self._upstream = ssl.create_default_context(cadata=server.ca.decode())
        self._folder = tempfile.TemporaryDirectory(prefix="tortie-proxy-")
        authority = Authority(Path(self._folder.name), "tortie test proxy")
        self.ca = authority.ca.read_bytes()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*authority.issue("proxy", HOSTS))
        self._listener = _listen_in(netns, 0, host)
        self.host, self.port, self.prefix = host, int(self._listener.getsockname()[1]), prefix
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self.forget()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}{self.prefix}"

    def kubeconfig(self, path: Path, **options: Any) -> Path:
        """As `KubernetesServer.kubeconfig`, but this way. Without a user the administrator would be meant, whom his
        certificate does not get through here.
        """
        insecure = options.get("insecure_skip_tls_verify")
        trusted = {} if insecure else {"certificate_authority_data": base64.b64encode(self.ca).decode()}
        return self._server.kubeconfig(path, **{"server": self.url, **trusted, **options})

    def forget(self) -> None:
        """Count from 1 again, and do nothing but count."""
        with self._lock:
            self.asked: list[Asked] = []
            self.met: list[Asked] = []  # those that a rule was about
            self._rules: list[_Rule] = []

    def arm(self, when: When, action: Action, times: int = -1) -> None:
        """Count from 1 again, with this rule only: the action for each such request, or for the first so many."""
        self.forget()
        self.also(when, action, times)

    def also(self, when: When, action: Action, times: int = -1) -> None:
        """One more rule, which counts where the earlier ones do not."""
        self._rules.append(_Rule(when, action, times))

    @property
    def size(self) -> int:
        """Octets of all requests and answers."""
        return sum(asked.size for asked in self.asked)

    @property
    def refusals(self) -> list[str]:
        """What the server would not let somebody do."""
        return [asked.reply.decode() for asked in self.asked if asked.status in (401, 403)]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_exc: object) -> None:
        self.ended.set()
        self.cut()
        for thread in list(self._threads):
            thread.join(10)
        self._listener.close()
        self._folder.cleanup()

    def cut(self) -> None:
        """End every connection that stands."""
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        while not self.ended.is_set():
            if select.select([self._listener], [], [], _STEP)[0]:
                number += 1
                self._start(self._serve, self._listener.accept()[0], number)

    def _serve(self, plain: socket.socket, number: int) -> None:
        """One connection, until either side ends it. Without a server it is reset at once."""
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(_LONGEST)
        server = HTTPSConnection(*self._place, timeout=_LONGEST, context=self._upstream)
        self._open.add(plain)
        client: socket.socket = plain
        try:
            server.connect()
            server.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = secured = self._context.wrap_socket(plain, server_side=True)
            self._open.add(client)
            held = b""
            while True:
                asked, held = self._read(secured, held, number)
                self._deal(Exchange(self, asked, secured, server))
        except _Over:
            pass
        except OSError:
            _reset(client)
        finally:
            self._open -= {plain, client}
            server.close()
            client.close()

    def _deal(self, exchange: Exchange) -> None:
        with self._lock:
            rule = next((one for one in self._rules if one.times != 0 and one.when(exchange.asked)), None)
            if rule:
                rule.times -= 1
                self.met.append(exchange.asked)
        (rule.action if rule else relay)(exchange)

    def _read(self, client: ssl.SSLSocket, held: bytes, number: int) -> tuple[Asked, bytes]:
        while b"\r\n\r\n" not in held:
            held += _more(client)
        head, _, held = held.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _version = first.split(" ")
        headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
        length = int(headers.get("content-length", "0"))
        while len(held) < length:
            held += _more(client)
        if not target.startswith(self.prefix):
            raise OSError("not this way")
        target = target.removeprefix(self.prefix)
        path, _, query = target.partition("?")
        asked = Asked(0, method, target, path, dict(parse_qsl(query)), headers, held[:length], number)
        asked.size = len(head) + len("\r\n\r\n") + length
        with self._lock:
            self.asked.append(asked)
            asked.number = len(self.asked)
        return asked, held[length:]


def _more(client: ssl.SSLSocket) -> bytes:
    octets = client.recv(65536)
    if not octets:
        raise _Over
    return octets


def _has_more(client: ssl.SSLSocket) -> bool:
    """Whether the client has sent something, rather than ended the connection."""
    client.settimeout(1.0)
    try:
        more = bool(client.recv(1))
    except OSError:
        more = False
    time.sleep(_STEP)
    return more


def _reset(one: socket.socket) -> None:
    """Close it so that the other side gets an error, not an end."""
    with suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()
