"""Containers connected by a service of the operator's: the `Dataplane` port over the calls of cni_dataplane.proto.

The service may connect containers that this machine's kernel knows nothing of, so nothing is looked at here: the
namespace's path is passed on as it came, and the service's answer is the truth.

Invariant: each verb is one call of at most five seconds, never repeated. Only an Add of which nobody knows how it
ended is followed by a Del, so that no device stays whose addresses are about to be given to others.
"""

from __future__ import annotations

from adapters.grpc.transport import DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE, CallFailed
from domain.linux.link import parse_mac
from ports.dataplane import Connected, Dataplane
from ports.errors import Expired, PortError, Refused, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapters.grpc.messages import DataplaneReply
    from adapters.grpc.transport import GrpcTransport
    from domain.workload.attachment import Attachment
    from ports.clock import Clock, Deadline
    from ports.log import Log

CALL_BUDGET = 5.0  # seconds for each call


class GrpcDataplane(Dataplane):
    """`options` are `dataplane_options`, all of which the service gets; `socket` among them is where it listens."""

    def __init__(
        self,
        options: Mapping[str, str],
        transport: GrpcTransport,
        clock: Clock,
        log: Log,
    ) -> None:
        self._options = options
        self._name = f"gRPC dataplane {options.get('socket')}"
        self._transport = transport
        self._clock = clock
        self._log = log

    def examine(
        self, netns: str, ifname: str, deadline: Deadline, host_name: str = "", *, replace_host_link: bool = False
    ) -> None:
        """Only the service knows what it could not do, and there is no call to ask it."""

    def connect(self, attachment: Attachment, deadline: Deadline) -> Connected:
        """The addresses keep the prefix lengths that they have: what they mean is the service's affair."""
        from adapters.grpc.messages import ADD, add_request, read_add_reply

        request = self._serialised(lambda: add_request(attachment, self._options))
        self._require_time(deadline)
        try:
            reply = self._ask(ADD, request, read_add_reply, deadline)
        except Refused:  # the service has answered: there is nothing that only we could know of
            raise
        except BaseException:
            self._take_back(attachment)
            raise
        _require_success(reply)
        try:
            mac = parse_mac(reply.mac) if reply.mac else ""
        except ValueError as error:
            self._take_back(attachment)
            raise Refused(str(error)) from error
        return Connected(reply.host_interface, mac, attachment.addresses)

    def _take_back(self, attachment: Attachment) -> None:
        """By a deadline of its own, since the call's may be what has ended it."""
        try:
            self.disconnect(attachment.netns, attachment.ifname, self._clock.deadline(CALL_BUDGET))
        except PortError as error:
            self._log.error("Cannot take back a failed call of the dataplane", netns=attachment.netns, error=error)

    def disconnect(self, netns: str, ifname: str, deadline: Deadline) -> None:
        """The service is told even of an empty path: it may know the container's device from elsewhere."""
        from adapters.grpc.messages import DEL, del_request, read_del_reply

        request = self._serialised(lambda: del_request(netns, ifname, self._options))
        self._require_time(deadline)
        _require_success(self._ask(DEL, request, read_del_reply, deadline))

    def look(self, netns: str, name: str, deadline: Deadline) -> None:
        """There is no call to ask the service."""

    def _serialised(self, write: Callable[[], bytes]) -> bytes:
        try:
            return write()
        except ValueError as error:
            raise Refused(f"cannot ask the grpc dataplane: {error}") from error

    def _ask(
        self, method: str, request: bytes, read: Callable[[bytes], DataplaneReply], deadline: Deadline
    ) -> DataplaneReply:
        try:
            answer = self._transport.call(method, request, min(CALL_BUDGET, deadline.left(self._clock.monotonic())))
            return read(answer)
        except CallFailed as error:
            raise self._failure(error, deadline) from error
        except ValueError as error:
            raise Refused(str(CallFailed(INTERNAL, str(error)))) from error

    def _failure(self, error: CallFailed, deadline: Deadline) -> PortError:
        """A service that cannot be reached may be back later; anything else is its answer."""
        if error.code not in (DEADLINE_EXCEEDED, UNAVAILABLE):
            return Refused(str(error))
        if deadline.passed(self._clock.monotonic()):
            return Expired(self._name)
        return Unavailable(f"{error} ({self._name})")

    def _require_time(self, deadline: Deadline) -> None:
        if deadline.passed(self._clock.monotonic()):
            raise Expired(self._name)


def _require_success(reply: DataplaneReply) -> None:
    if reply.error is not None:
        raise Refused(f"grpc dataplane error: {reply.error}")
