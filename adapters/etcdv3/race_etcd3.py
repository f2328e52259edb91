"""Connecting to whichever of several endpoints answers first, with the `etcd3` transport.

Invariant: of all connections that were begun one is left, or none; the others are closed before anything is returned.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue
from time import monotonic

import grpc

from adapters.etcdv3 import etcdrpc
from adapters.etcdv3.transport import DEADLINE_EXCEEDED, UNAVAILABLE, TransportError, Untrusted
from adapters.etcdv3.transport_etcd3 import SLICE, Client, Etcd3Transport, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapters.etcdv3.endpoint import Endpoint
    from adapters.etcdv3.transport import Open, Tls, Transport
    from adapters.etcdv3.transport_etcd3 import Withheld

_HEAD_START = 0.25  # seconds that an endpoint has before the next one is tried as well


def etcd3_opener(withheld: Callable[[], Withheld]) -> Open:
    """An `adapters.etcdv3.transport.Open`."""

    def open_etcd3(endpoints: Sequence[Endpoint], tls: Tls, seconds: float) -> Transport:
        with withheld() as signals:
            race = _Race(tls, signals)
            try:
                winner = race.run(endpoints, monotonic() + seconds)
            finally:
                race.end()
        return Etcd3Transport(winner, withheld)

    return open_etcd3


class _Race:
    """Connections on their way to several endpoints."""

    def __init__(self, tls: Tls, signals: Withheld) -> None:
        self._tls = tls
        self._signals = signals
        self._heard: SimpleQueue[tuple[_Runner, grpc.ChannelConnectivity]] = SimpleQueue()
        self._runners: list[_Runner] = []
        self._refused: dict[_Runner, TransportError] = {}
        self._winner: _Runner | None = None

    def run(self, endpoints: Sequence[Endpoint], ends: float) -> Client:
        """The first client that is connected; TransportError when it is time or all were refused."""
        for endpoint in endpoints:
            if self._winner is None:
                self._runners.append(_Runner(Client(endpoint, self._tls), self._heard))
                self._wait(min(ends, monotonic() + _HEAD_START))
        self._wait(ends)
        if self._winner is None:
            raise self._failure()
        return self._winner.client

    def _wait(self, until: float) -> None:
        """Until one has arrived, or all have been refused, or that time."""
        while self._winner is None and len(self._refused) < len(self._runners) and monotonic() < until:
            try:
                runner, state = self._heard.get(timeout=max(0.0, min(SLICE, until - monotonic())))
            except Empty:
                self._signals.admit()
                continue
            if state is grpc.ChannelConnectivity.READY:
                self._winner = runner
            elif state is grpc.ChannelConnectivity.TRANSIENT_FAILURE and runner not in self._refused:
                self._refused[runner] = runner.refusal()

    def _failure(self) -> TransportError:
        if len(self._refused) < len(self._runners):
            return TransportError(DEADLINE_EXCEEDED, "no answer to the attempt to connect", harmless=True)
        reasons = list(self._refused.values())
        if len(reasons) == 1:
            return reasons[0]
        text = "; ".join([f"{runner.client.endpoint}: {reason}" for runner, reason in self._refused.items()])
        if all(isinstance(reason, Untrusted) for reason in reasons):
            return Untrusted(text)
        return TransportError(UNAVAILABLE, text, harmless=True)

    def end(self) -> None:
        for runner in self._runners:
            runner.end(keep=runner is self._winner)


class _Runner:
    """A client on its way; each state of its channel is put where it is heard."""

    def __init__(self, client: Client, heard: SimpleQueue[tuple[_Runner, grpc.ChannelConnectivity]]) -> None:
        self.client = client
        self._tell: Callable[[grpc.ChannelConnectivity], None] = lambda state: heard.put((self, state))
        client.channel.subscribe(self._tell, try_to_connect=True)

    def refusal(self) -> TransportError:
        """Why the connection has failed: a request on it fails at once, and tells."""
        try:
            self.client.kvstub.Txn(etcdrpc.TxnRequest(), 1.0)
        except grpc.RpcError as error:
            fault = translated(error)
            return fault if fault.harmless else TransportError(UNAVAILABLE, str(fault), harmless=True)
        return TransportError(UNAVAILABLE, "the connection was lost at once", harmless=True)

    def end(self, *, keep: bool) -> None:
        self.client.channel.unsubscribe(self._tell)
        if not keep:
            self.client.close()
