"""A proxy in front of an etcd that sees single requests, to break connections at exactly the moment that a test means.

    with RequestProxy(port, netns=path, port=23790) as proxy:
        proxy.arm(Moment(3, replied=False), step)     what to do when the third request has come, before it goes on
        proxy.arm(writing("/handle/"), step)          at every request that writes such a key
        proxy.requests                                what has come since then

A step that raises `Cut` resets the connection: the request, or its answer, is lost. One that raises `Stall` lets only
the headers go on. Requests are those of gRPC over
HTTP/2 without TLS; of the frames only what says where a request and an answer end is read. A request and an answer
are each passed on whole, so an answer must fit into the client's window of 64 KiB.

Invariant: no thread and no socket outlives the `with` block.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from google.protobuf.message import DecodeError

from adapters.etcdv3.etcd_api_pb2 import TxnRequest
from services.tcp_proxy import _listen_in

_STEP = 0.02  # seconds between two looks at whether the end has come
_PREFACE = 24  # bytes that a client sends before its first frame
_DATA, _HEADERS, _RST_STREAM, _WINDOW_UPDATE = 0, 1, 3, 8
_END_STREAM = 1


class Cut(Exception):
    """Raised by a step: the connection is reset, and what the step was about goes no further."""


class Stall(Exception):
    """Raised by a step: of the request or answer that it is about only the headers go on."""


@dataclass(frozen=True)
class Request:
    """`writes` are the keys of the records that it creates, changes or deletes, by spaces; "" if it only reads."""

    number: int
    writes: str
    reads: tuple[str, ...]

    def __str__(self) -> str:
        return f"request {self.number} ({(self.writes and f'write {self.writes}') or f'read {len(self.reads)} keys'})"


Step = Callable[[], None]
When = Callable[[Request, bool], bool]
"""Whether to take a step at a request that has come or (True) has been answered."""


@dataclass(frozen=True)
class Moment:
    """A `When`: the request of that number, from 1, has come or has been answered."""

    number: int
    replied: bool

    def __call__(self, request: Request, replied: bool) -> bool:
        return (request.number, replied) == (self.number, self.replied)

    def __str__(self) -> str:
        return f"{'after' if self.replied else 'before'} request {self.number}"


def writing(part: str = "/", *, replied: bool = False) -> When:
    """Every request that writes a key in which that occurs has come, or has been answered."""
    return lambda request, answered: part in request.writes and answered == replied


def _never(_request: Request, _replied: bool) -> bool:
    return False


def _nothing() -> None:
    pass


class RequestProxy:
    """It connects to `target` on the loopback of this namespace, and listens on that of `netns`."""

    def __init__(self, target: int, *, netns: str = "", port: int = 0) -> None:
        self._target = target
        self._listener = _listen_in(netns, port)
        self.port: int = self._listener.getsockname()[1]
        self.listen()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def listen(self) -> None:
        """Count from 1 again, and do nothing but count."""
        self._when, self._step = _never, _nothing
        self.requests, self.reached = [], []

    def arm(self, when: When, step: Step) -> None:
        """Count from 1 again, and take the step each time that it is so."""
        self.listen()
        self._when, self._step = when, step

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        for thread in list(self._threads):
            thread.join(10)
        self._listener.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            if select.select([self._listener], [], [], _STEP)[0]:
                self._start(self._serve, self._listener.accept()[0])

    def _serve(self, client: socket.socket) -> None:
        """One connection, until either side ends it."""
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=10)
            except OSError:
                _reset(client)
                return
            with server:
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    one.settimeout(10)
                try:
                    _Connection(self, client, server).run(self._ended)
                except Cut:
                    _reset(server)
                    _reset(client)
                except OSError:
                    _reset(client)

    def came(self, frames: list[bytes]) -> Request:
        with self._lock:
            request = _parse(frames, len(self.requests) + 1)
            self.requests.append(request)
        self._pass(request, replied=False)
        return request

    def answered(self, request: Request) -> None:
        if request in self.requests:  # else it is one of before counting began anew
            self._pass(request, replied=True)

    def _pass(self, request: Request, *, replied: bool) -> None:
        if self._when(request, replied):
            self.reached.append(request)
            self._step()


class _Connection:
    """The frames of one connection: those of a request, and those of an answer, wait for the last of them."""

    def __init__(self, proxy: RequestProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._waiting: dict[tuple[bool, int], list[bytes]] = {}
        self._requests: dict[int, Request] = {}

    def run(self, ended: threading.Event) -> None:
        texts = {self._client: b"", self._server: b""}
        preface = _exactly(self._client, _PREFACE)
        self._server.sendall(preface)
        while not ended.is_set():
            for source in select.select(list(texts), [], [], _STEP)[0]:
                piece = source.recv(65536)
                if not piece:
                    return
                texts[source] = self._pass_on(texts[source] + piece, replies=source is self._server)

    def _pass_on(self, text: bytes, *, replies: bool) -> bytes:
        """Deal with the whole frames of a text; what is left of it."""
        sink = self._client if replies else self._server
        while len(text) >= 9 and len(text) >= 9 + int.from_bytes(text[:3], "big"):
            size = 9 + int.from_bytes(text[:3], "big")
            frame, text = text[:size], text[size:]
            for ready in self._ready(frame, replies=replies):
                sink.sendall(ready)
        return text

    def _ready(self, frame: bytes, *, replies: bool) -> Iterator[bytes]:
        """The frames that can go on now that this one has come."""
        stream = int.from_bytes(frame[5:9], "big") & 0x7FFFFFFF
        opens = replies and frame[3] == _WINDOW_UPDATE  # the client must hear of it while it sends its request
        if stream == 0 or opens or (not replies and stream in self._requests):
            yield frame
            return
        held = self._waiting.setdefault((replies, stream), [])
        held.append(frame)
        if frame[3] != _RST_STREAM and not (frame[3] in (_DATA, _HEADERS) and frame[4] & _END_STREAM):
            return
        del self._waiting[replies, stream]
        try:
            if not replies:
                self._requests[stream] = self._proxy.came(held)
            elif stream in self._requests:
                self._proxy.answered(self._requests[stream])
        except Stall:
            held = held[:1]
        yield from held


def _parse(frames: list[bytes], number: int) -> Request:
    """What a gRPC message asks for. One of another kind than a transaction counts as reading nothing."""
    message = b"".join([frame[9:] for frame in frames if frame[3] == _DATA])[5:]
    try:
        wanted = TxnRequest.FromString(message)
    except DecodeError:
        return Request(number, "", ())
    writes: list[str] = []
    reads: list[str] = []
    for operation in wanted.success:
        if operation.HasField("request_range"):
            reads.append(operation.request_range.key.decode())
        elif operation.HasField("request_put"):
            writes.append(operation.request_put.key.decode())
        else:
            writes.append(operation.request_delete_range.key.decode())
    return Request(number, " ".join(writes), tuple(reads))


def _exactly(source: socket.socket, size: int) -> bytes:
    text = b""
    while len(text) < size:
        piece = source.recv(size - len(text))
        if not piece:
            raise OSError("it has ended before it began")
        text += piece
    return text


def _reset(one: socket.socket) -> None:
    """Close it so that the other side gets an error, not an end."""
    with suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()
