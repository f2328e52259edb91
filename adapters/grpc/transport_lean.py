"""gRPC calls on bare sockets, in plain text.

Invariant: one connection per call, closed with it; no proxy, no retry; a signal that raises ends the call at once.
"""

from __future__ import annotations

from time import monotonic

from adapters.grpc.transport import DEADLINE_EXCEEDED, UNAVAILABLE, CallFailed, GrpcTransport, parse_target
from adapters.wire.faults import Fault, TimedOut
from adapters.wire.grpc_call import Channel, StatusFault
from adapters.wire.sockets import connect_tcp, connect_unix
from adapters.wire.waiting import drive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.wire.waiting import Work


class LeanGrpcTransport(GrpcTransport):
    """`target` is spelled as for Go's library."""

    def __init__(self, target: str) -> None:
        self._target = parse_target(target)

    def call(self, method: str, request: bytes, seconds: float) -> bytes:
        try:
            return drive(self._call(method, request, seconds), monotonic() + seconds)
        except StatusFault as fault:
            raise CallFailed(fault.status, str(fault)) from fault
        except TimedOut:
            raise CallFailed(DEADLINE_EXCEEDED, "Deadline Exceeded") from None
        except Fault as fault:
            raise CallFailed(UNAVAILABLE, str(fault)) from fault

    def _call(self, method: str, request: bytes, seconds: float) -> Work[bytes]:
        target = self._target
        connecting = connect_unix(target.path) if target.path else connect_tcp(target.host, target.port)
        channel = Channel((yield from connecting), target.authority, secure=False)
        try:
            return (yield from channel.call(method, request, seconds))
        finally:
            channel.close()
