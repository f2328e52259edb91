"""gRPC calls through the grpcio library, in plain text.

The library works in threads of its own, and its Python part holds locks that an exception from a signal handler
would leave locked. So termination signals are withheld for the whole call, and admitted between two moments of
waiting. The library's threads begin with the signals withheld too, so none of them swallows one.

Invariant: one connection per call, closed with it; no proxy, no retry; a signal that raises ends the call at once.
"""

from __future__ import annotations

import _thread
import os

from adapters.grpc.transport import DEADLINE_EXCEEDED, CallFailed, Transport, without_passthrough

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Protocol, Self

    import grpc

    class Withheld(Protocol):
        """A block that termination signals do not interrupt, except at `admit`."""

        def __enter__(self) -> Self: ...
        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None: ...
        def admit(self) -> None: ...


_SLICE = 0.05  # seconds between two chances for termination signals
_GRACE = 1.0  # seconds that the library may take to notice that the time is over
_OPTIONS = (("grpc.enable_retries", 0), ("grpc.enable_http_proxy", 0))


class GrpcioTransport(Transport):
    """`target` is spelled as for Go's library: `unix:///path`, `host:port`, or a scheme that both libraries know."""

    def __init__(self, target: str, withheld: Callable[[], Withheld]) -> None:
        self._target = without_passthrough(target)
        self._withheld = withheld

    def call(self, method: str, request: bytes, seconds: float) -> bytes:
        with self._withheld() as signals:
            channel = _open(self._target)
            try:
                procedure: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
                future = procedure.future(request, timeout=seconds)
                _wait(future, seconds + _GRACE, signals)
                return _outcome(future)
            finally:
                channel.close()


def _open(target: str) -> grpc.Channel:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # all that it has to say comes back as a status
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # its handlers crash a child that only execs a plugin
    import grpc

    return grpc.insecure_channel(target, _OPTIONS)


def _wait(future: grpc.Future[bytes], seconds: float, signals: Withheld) -> None:
    """Until the call is over. Waiting on a bare lock leaves nothing half done."""
    answered = _thread.allocate_lock()
    answered.acquire()
    future.add_done_callback(lambda _: answered.release())
    for _ in range(int(seconds / _SLICE)):
        if answered.acquire(timeout=_SLICE):
            return
        signals.admit()
    raise CallFailed(DEADLINE_EXCEEDED, "Deadline Exceeded")


def _outcome(future: grpc.Future[bytes]) -> bytes:
    import grpc

    try:
        answer: bytes = future.result()
    except grpc.RpcError as error:
        raise CallFailed(error.code().value[0], error.details() or "") from error
    return answer
