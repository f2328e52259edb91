"""gRPC calls through the grpcio library, in plain text.

Termination signals are withheld for the whole call (`adapters.wire.grpcio`). The library's threads begin with the
signals withheld too, so none of them swallows one.

Invariant: one connection per call, closed with it; no proxy, no retry; a signal that raises ends the call at once.
"""

from __future__ import annotations

from adapters.grpc.transport import DEADLINE_EXCEEDED, CallFailed, GrpcTransport, without_passthrough
from adapters.wire.grpcio import is_over, prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

    from adapters.wire.grpcio import Withheld


_OPTIONS = (("grpc.enable_retries", 0), ("grpc.enable_http_proxy", 0))


class GrpcioTransport(GrpcTransport):
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
                if not is_over(future, seconds, signals):
                    raise CallFailed(DEADLINE_EXCEEDED, "Deadline Exceeded")
                return _outcome(future)
            finally:
                channel.close()


def _open(target: str) -> grpc.Channel:
    prepare()
    import grpc

    return grpc.insecure_channel(target, _OPTIONS)


def _outcome(future: grpc.Future[bytes]) -> bytes:
    import grpc

    try:
        answer: bytes = future.result()
    except grpc.RpcError as error:
        raise CallFailed(error.code().value[0], error.details() or "") from error
    return answer
