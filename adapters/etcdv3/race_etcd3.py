"""Connecting to whichever of several endpoints answers first, with the `etcd3` transport.

Each is sent a transaction that reads one key. A server that has lost its cluster does not answer it, although it takes
connections, and would answer one without operations. Whether we may read that key does not matter: a refusal is an
answer, too.

Invariant: of all connections that were begun one is left, or none; the others are closed before anything is returned.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue
from time import monotonic

from adapters.etcdv3.etcdrpc import RangeRequest, RequestOp, TxnRequest
from adapters.etcdv3.transport import DEADLINE_EXCEEDED, ONE_KEY, UNAVAILABLE, EtcdTransportError, EtcdUntrusted
from adapters.etcdv3.transport_etcd3 import Client, Etcd3Transport, let_go, outcome
from adapters.wire.grpcio import SLICE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from adapters.etcdv3.settings import Endpoint
    from adapters.etcdv3.transport import EtcdTls, EtcdTransport, Open, Question
    from adapters.wire.grpcio import Withheld

_HEAD_START = 0.25  # seconds that an endpoint has before the next one is tried as well
_LATER = 1.0  # seconds
_ONE_KEY = TxnRequest(success=[RequestOp(request_range=RangeRequest(key=b"\0"))])


def etcd3_opener(withheld: Callable[[], Withheld]) -> Open:
    """An `adapters.etcdv3.transport.Open`."""

    def open_etcd3(
        endpoints: Sequence[Endpoint],
        tls: EtcdTls,
        seconds: float,
        question: Question = ONE_KEY,  # noqa: ARG001 - it will be asked in its turn
    ) -> EtcdTransport:
        with withheld() as signals:
            race = _Race(tls, monotonic() + seconds, signals)
            try:
                winner = race.run(endpoints)
            finally:
                race.end()
        return Etcd3Transport(winner, withheld)

    return open_etcd3


class _Race:
    """Connections on their way to several endpoints."""

    def __init__(self, tls: EtcdTls, ends: float, signals: Withheld) -> None:
        self._tls = tls
        self._ends = ends
        self._signals = signals
        self._heard: SimpleQueue[tuple[Client, Any]] = SimpleQueue()
        self._runners: list[Client] = []
        self._refused: dict[Client, EtcdTransportError] = {}
        self._winner: Client | None = None

    def run(self, endpoints: Sequence[Endpoint]) -> Client:
        """The first client that is answered; EtcdTransportError when it is time or all were refused."""
        for endpoint in endpoints:
            if self._winner is None:
                self._start(Client(endpoint, self._tls))
                self._wait(min(self._ends, monotonic() + _HEAD_START))
        self._wait(self._ends)
        if self._winner is None:
            raise self._failure()
        return self._winner

    def _start(self, client: Client) -> None:
        self._runners.append(client)
        # gRPC's own deadline is the later one: an end of our time that it reports would look like a server's refusal.
        future = client.kvstub.Txn.future(_ONE_KEY, max(0.0, self._ends - monotonic()) + _LATER)
        future.add_done_callback(lambda done: self._heard.put((client, done)))

    def _wait(self, until: float) -> None:
        """Until one has arrived, or all have been refused, or that time."""
        while self._winner is None and len(self._refused) < len(self._runners) and monotonic() < until:
            try:
                client, done = self._heard.get(timeout=max(0.0, min(SLICE, until - monotonic())))
            except Empty:
                self._signals.admit()
                continue
            try:
                outcome(done)
            except EtcdTransportError as error:
                if error.status in (UNAVAILABLE, DEADLINE_EXCEEDED):
                    self._refused[client] = error
                    continue
            self._winner = client  # an error of another kind is an answer

    def _failure(self) -> EtcdTransportError:
        """The error of a race without a winner: nothing has been written, whatever came of the questions."""
        if len(self._refused) < len(self._runners):
            return EtcdTransportError(DEADLINE_EXCEEDED, "no answer to the attempt to connect", harmless=True)
        reasons = list(self._refused.values())
        text = str(reasons[0])
        if len(reasons) > 1:
            text = "; ".join([f"{client.endpoint}: {reason}" for client, reason in self._refused.items()])
        if all(isinstance(reason, EtcdUntrusted) for reason in reasons):
            return EtcdUntrusted(text)
        return EtcdTransportError(UNAVAILABLE, text, harmless=True)

    def end(self) -> None:
        for client in self._runners:
            if client is not self._winner:
                let_go(client)
