"""One kube-apiserver as we use it: what is tried again, what a failure means, and what need not be asked twice.

Reads are repeated for a while, so that a restart of the server or a moment of overload is not seen. A write is
repeated only because every write of ours is guarded: if an earlier try has happened after all, the server refuses the
later one. That refusal then proves nothing about others, so the caller is told that the outcome is unknown.

A pod and its namespace are each needed by several steps of one call, so what was read moments ago is remembered until
we write it. What a later step is going to ask goes out with an earlier question (`expect`): one round trip for both.

Invariant: an answer that came along is used once, and soon, or not at all; none that went wrong is ever used.
Nothing is waited for past the deadline; every error names the server; a definite answer to a write is
either about its only try or says that it was carried out.
"""

from __future__ import annotations

from adapters.kubernetes.answers import CONFLICT, GONE, INVALID, NoReply, Reply, read_answer
from adapters.kubernetes.paths import stranger
from adapters.kubernetes.transport.seam import ApiTransportError
from ports.errors import Expired, PortError, Unauthorized, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.kubernetes.transport.seam import ApiTransport, HttpAnswer, HttpRequest
    from ports.clock import Clock, Deadline

PAUSES: Sequence[float] = (
    0.1,
    0.2,
    0.4,
    0.8,
    1.6,
    3.2,
)  # seconds between tries: six seconds in all, within a DEL's ten
FEW_PAUSES = PAUSES[:2]  # where nobody has ever answered: there can be nothing to undo, which is what is asked next
READ_TRY = 15.0  # seconds until a read is sent once more: the way to one of several servers may lead nowhere
FRESH = 2.0  # seconds for which what was read is the answer to the same question
AHEAD = 1.0  # seconds for which what came along with an earlier question is the answer to its own
_OF_WRITES = (CONFLICT, INVALID)
_POD, _NAMESPACE = 7, 5  # parts of their paths, counting the empty one before the first slash


class Forbidden(Unauthorized):
    """The server knows us, and does not let us do this."""


class Api:
    """`where` names the server in errors. `hasty`: somebody waits at a terminal, and is told at once that nobody
    listens there; a plugin tries again, since its next call may be a minute away.
    """

    def __init__(self, transport: ApiTransport, clock: Clock, *, hasty: bool = False) -> None:
        self.where = f"Kubernetes API server {transport.server}"
        self._transport = transport
        self._clock = clock
        self._pauses, self._reached = PAUSES, False
        self._hasty = hasty
        self._seen: dict[HttpRequest, tuple[float, Reply]] = {}
        self._expected: list[HttpRequest] = []
        self._ahead: dict[HttpRequest, tuple[float, Reply]] = {}

    def expect(self, requests: Sequence[HttpRequest]) -> None:
        """Reads that are going to be asked for within a moment: they go out with the next one that is."""
        self._expected += requests

    def read(self, requests: Sequence[HttpRequest], deadline: Deadline) -> list[Reply]:
        """A reply to each, in order; equal requests are sent once, those that need sending all at once.

        `Unavailable`, `Expired` or `Unauthorized` if any has none.
        """
        replies = self._known(requests)
        along = [one for one in dict.fromkeys(self._expected) if one not in requests and one not in self._seen]
        if len(replies) < len(set(requests)):
            self._expected.clear()
            tries = _Tries(self._clock, deadline, self._pauses, READ_TRY)
            self._settle(list(dict.fromkeys(requests)), replies, tries, along)
        for request, reply in replies.items():
            self._remember(request, reply)
        return [replies[request] for request in requests]

    def _known(self, requests: Sequence[HttpRequest]) -> dict[HttpRequest, Reply]:
        """Replies that need no sending."""
        now = self._clock.monotonic()
        self._seen = {request: seen for request, seen in self._seen.items() if now < seen[0]}
        replies = {request: self._seen[request][1] for request in requests if request in self._seen}
        for request in requests:
            until, reply = self._ahead.pop(request, (now, None))
            if reply is not None and now < until:
                replies[request] = reply
        return replies

    def _remember(self, request: HttpRequest, reply: Reply) -> None:
        if reply.ok and request not in self._seen and _worth_remembering(request):
            self._seen[request] = (self._clock.monotonic() + FRESH, reply)

    def write(self, request: HttpRequest, deadline: Deadline) -> Reply:
        """What became of it; `Unavailable` when that is not known."""
        self.forget(request.path.removesuffix("/status"))
        tries = _Tries(self._clock, deadline, self._pauses)
        replies: dict[HttpRequest, Reply] = {}
        self._settle([request], replies, tries)
        reply = replies[request]
        if tries.doubt is not None and not reply.ok:
            raise Unavailable(f"{self.where}: {tries.doubt.text}") from tries.doubt.cause
        return reply

    def close(self) -> None:
        """Safe to repeat."""
        self._transport.close()

    def forget(self, path: str) -> None:
        """What was read there is asked for anew."""
        self._seen = {one: seen for one, seen in self._seen.items() if one.path != path}
        self._ahead = {one: ahead for one, ahead in self._ahead.items() if one.path != path}

    def _settle(
        self,
        requests: list[HttpRequest],
        replies: dict[HttpRequest, Reply],
        tries: _Tries,
        along: Sequence[HttpRequest] = (),
    ) -> None:
        """Ask until `replies` has one to every request. What is to go `along` does so at the first try only."""
        while True:
            left = [request for request in requests if request not in replies]
            if not left:
                return
            fault = self._ask(left, replies, tries, along)
            along = ()
            if fault is None:
                continue
            if fault.refused:
                self._renew(fault, tries)
            else:
                self._wait(fault, tries)

    def _ask(
        self,
        requests: list[HttpRequest],
        replies: dict[HttpRequest, Reply],
        tries: _Tries,
        along: Sequence[HttpRequest],
    ) -> NoReply | None:
        """Send them once; the fault that decides about going on, if there was any."""
        try:
            answers = self._transport.send([*requests, *along], tries.seconds(self.where))
        except ApiTransportError as error:
            return NoReply(str(error), error.harmless, final=error.final and not along, cause=error)
        self._pauses, self._reached = PAUSES, True
        faults: list[NoReply] = []
        for request, answer in zip(requests, answers):
            outcome = _outcome(request, answer)
            if isinstance(outcome, Reply):
                replies[request] = outcome
            else:
                faults.append(outcome)
        until = self._clock.monotonic() + AHEAD
        for request, answer in zip(along, answers[len(requests) :]):
            outcome = _outcome(request, answer)
            if isinstance(outcome, Reply):  # else it is asked for when its time comes, and then the fault counts
                self._ahead[request] = (until, outcome)
        return max(faults, key=lambda fault: (fault.final, fault.refused, fault.after), default=None)

    def _renew(self, fault: NoReply, tries: _Tries) -> None:
        """Credentials get replaced while we run: read them again, once, before giving up.

        A server that has just started refuses everybody until it knows its roles and accounts.
        """
        if fault.final and not tries.shaken:
            raise Forbidden(f"{self.where}: {fault.text}")
        text = fault.text if fault.final else f"{fault.text} ({self._transport.credentials})"
        try:
            renewed = not (fault.final or tries.renewed) and self._transport.renew()
        except (ApiTransportError, PortError) as error:
            raise Unauthorized(f"{self.where}: {text}: {error}") from error
        tries.renewed = tries.renewed or not fault.final
        if renewed:
            return
        if not tries.shaken:
            raise Unauthorized(f"{self.where}: {text}")
        self._wait(fault.replace(text=text, final=False), tries)

    def _wait(self, fault: NoReply, tries: _Tries) -> None:
        """Sleep before another try; `Unavailable` or `Expired` if there is to be none."""
        text = fault.text if self._transport.server in fault.text else f"{self.where}: {fault.text}"
        if tries.expired():
            raise Expired(self.where) from fault.cause
        unheard = self._hasty and not self._reached and fault.harmless and fault.cause is not None
        pause = None if fault.final or unheard else tries.next_pause(fault)
        if pause is None:
            if not self._reached:
                self._pauses = FEW_PAUSES
            raise Unavailable(text) from fault.cause
        self._clock.sleep(pause)


class _Tries:
    """How often one verb has tried, and whether it may go on. `doubt`: a fault after which it may have happened.

    `shaken`: the server was away or in trouble a moment ago.
    """

    def __init__(self, clock: Clock, deadline: Deadline, pauses: Sequence[float], longest: float = 0.0) -> None:
        self._clock = clock
        self._deadline = deadline
        self._pauses = list(pauses)
        self._longest = longest
        self.renewed = False
        self.doubt: NoReply | None = None
        self.shaken = False

    def seconds(self, where: str) -> float:
        """For the next try; `Expired` if none are left."""
        if self.expired():
            raise Expired(where)
        left = self._deadline.left(self._clock.monotonic())
        return min(left, self._longest) if self._longest else left

    def expired(self) -> bool:
        return self._deadline.passed(self._clock.monotonic())

    def next_pause(self, fault: NoReply) -> float | None:
        """None when tried often enough, or when the deadline would pass meanwhile."""
        if not fault.harmless:
            self.doubt = fault
        self.shaken = self.shaken or fault.cause is not None or not fault.harmless
        pause = max(self._pauses.pop(0), fault.after) if self._pauses else None
        if pause is None or pause >= self._deadline.left(self._clock.monotonic()):
            return None
        return pause


def _outcome(request: HttpRequest, answer: HttpAnswer) -> Reply | NoReply:
    outcome = read_answer(answer)
    if isinstance(outcome, Reply) and (wrong := _nonsense(request, outcome)):
        return NoReply(f"the server answers with {wrong}", final=True)
    return outcome


def _nonsense(request: HttpRequest, reply: Reply) -> str:
    """What is wrong with a reply to that request; "" if nothing is."""
    if reply.ok:
        return stranger(request, reply.object)
    refusals = _OF_WRITES if any(name == "continue" for name, _ in request.query) else (*_OF_WRITES, GONE)
    return f"{reply.status} to a read ({reply.message})" if request.method == "GET" and reply.status in refusals else ""


def _worth_remembering(request: HttpRequest) -> bool:
    """A pod or a namespace by name."""
    parts = request.path.split("/")
    if request.method != "GET" or parts[1:4] != ["api", "v1", "namespaces"]:
        return False
    return len(parts) == _NAMESPACE or (len(parts) == _POD and parts[5] == "pods")
