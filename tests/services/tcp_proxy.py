"""A TCP proxy in front of a server, to break connections in the ways that networks do.

    with TcpProxy(port) as proxy:            listens at proxy.port on the loopback of this namespace, or of `netns`,
                                             and leads to `port` of this one's, or of `host`
        proxy.replies_held.set()             requests go through, answers wait (and come once it is cleared)
        proxy.stalled.set()                  nothing goes either way; connections stand
        proxy.cut()                          every connection is reset, answers that waited are lost
        proxy.refusing.set()                 new connections are reset at once
        proxy.loses = lambda: chance() < 0.1 asked for each piece of an answer: it is lost, and the connection reset

Invariant: no thread and no socket outlives the `with` block.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

_STEP = 0.02  # seconds between two looks at the switches


class TcpProxy:
    def __init__(self, target: int, *, host: str = "127.0.0.1", netns: str = "", port: int = 0) -> None:
        self._target = (host, target)
        self.replies_held, self.stalled, self.refusing = threading.Event(), threading.Event(), threading.Event()
        self.loses: Callable[[], bool] = lambda: False
        self._ended = threading.Event()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._listener = _listen_in(netns, port)
        self.port: int = self._listener.getsockname()[1]
        self.accepted = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        for thread in list(self._threads):
            thread.join(10)
        self.cut()
        self._listener.close()

    def cut(self) -> None:
        """Reset every connection that stands."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _reset(*pair)

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            if not select.select([self._listener], [], [], _STEP)[0]:
                continue
            client, _ = self._listener.accept()
            self.accepted += 1
            try:
                server = socket.create_connection(self._target, timeout=10)
            except OSError:
                server = socket.socket()
            pair = (client, server)
            for one in pair:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs.append(pair)  # from now on it may be cut at any moment
            if self.refusing.is_set():
                self.cut()
                continue
            self._start(self._pump, client, server, False)
            self._start(self._pump, server, client, True)

    def _pump(self, source: socket.socket, sink: socket.socket, replies: bool) -> None:
        try:
            while not self._ended.is_set():
                held = self.stalled.is_set() or (replies and self.replies_held.is_set())
                if held or not select.select([source], [], [], _STEP)[0]:
                    if held:
                        self._ended.wait(_STEP)
                    continue
                piece = source.recv(65536)
                if not piece:
                    sink.shutdown(socket.SHUT_WR)
                    return
                if replies and (self._withheld() or self._lost(source, sink)):
                    return
                sink.sendall(piece)
        except (OSError, ValueError):  # closed by `cut`
            for one in (source, sink):
                with suppress(OSError):
                    one.close()

    def _withheld(self) -> bool:
        """Wait while replies are held; whether the end came meanwhile. For a reply read just before it was set."""
        while self.replies_held.is_set() or self.stalled.is_set():
            if self._ended.wait(_STEP):
                return True
        return False

    def _lost(self, *pair: socket.socket) -> bool:
        lost = self.loses()
        if lost:
            _reset(*pair)
        return lost


class BlackHole:
    """A port where connections are never answered: a listener whose queue is full, so that further SYNs are dropped."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._fillers: list[socket.socket] = []

    def __enter__(self) -> Self:
        for _ in range(8):
            filler = self._filler(0.0)
            with suppress(BlockingIOError):
                filler.connect(("127.0.0.1", self.port))
        for _ in range(20):  # the kernel may not have dealt with all of them yet
            try:
                self._filler(0.5).connect(("127.0.0.1", self.port))
            except TimeoutError:
                return self
        raise AssertionError("the kernel still takes connections, so this is no black hole")

    def _filler(self, timeout: float) -> socket.socket:
        filler = socket.socket()
        filler.settimeout(timeout)
        self._fillers.append(filler)
        return filler

    def __exit__(self, *_exc: object) -> None:
        for one in (*self._fillers, self._listener):
            one.close()


def _reset(*pair: socket.socket) -> None:
    for one in pair:
        with suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


def _listen_in(netns: str, port: int, host: str = "127.0.0.1") -> socket.socket:
    """A listener on the loopback of a namespace; a socket stays in the namespace that it was made in."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not netns:
        return socket.create_server((host, port), family=family)
    made: list[socket.socket] = []

    def make() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        handle = os.open(netns, os.O_RDONLY)
        try:
            if libc.setns(handle, 0x40000000) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.create_server((host, port), family=family))
        finally:
            os.close(handle)

    thread = threading.Thread(target=make)  # it alone changes its namespace, and ends
    thread.start()
    thread.join()
    if not made:
        raise RuntimeError(f"cannot listen in {netns}")
    return made[0]
