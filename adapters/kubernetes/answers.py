"""What an answer of a kube-apiserver means: an object, a clear no, or a fault after which another try may help.

Whatever stands between us and the server may answer in its place, so an answer counts only if it speaks Kubernetes:
a page of HTML with status 404 says nothing about whether an object exists.

Invariant: a `Reply` holds a JSON object that a server of Kubernetes' kind has sent; everything else is a `NoReply`.
Every refusal becomes exactly one error of the datastore port's, and a record that was made again under its old name
counts as `Missing`: the one that was meant is gone.
"""

from __future__ import annotations

from domain.json_text import JsonError, parse
from domain.value import Value
from ports.errors import AlreadyExists, Conflict, Missing, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.kubernetes.transport.seam import HttpAnswer
    from domain.json_text import Json
    from ports.errors import PortError

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, INVALID = 401, 403, 404, 409, 410, 422
_BUSY = 429
_PASSING = (_BUSY, 500, 502, 503, 504)
_LONGEST = 2000  # characters of the server's own text that are passed on
_NO_SUCH_PATH = b"404 page not found"  # a kube-apiserver's own answer about a group that it does not serve
_NO_SUCH_RESOURCE: dict[str, Json] = {
    "kind": "Status",
    "reason": "NotFound",
    "message": "the server could not find the requested resource",
}


class Reply(Value):
    """`object` is what was read or written (status below 300), else the `Status` that says why not."""

    status: int
    object: dict[str, Json]
    octets: int = 0
    """How many it took."""

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        """The server's own text about a refusal."""
        return _text(self.object, "message")[:_LONGEST] or f"the server answered {self.status}"

    @property
    def reason(self) -> str:
        return _text(self.object, "reason")

    @property
    def causes(self) -> list[tuple[str, str]]:
        """The (reason, field) pairs of an invalid object."""
        details = self.object.get("details")
        causes = details.get("causes") if isinstance(details, dict) else None
        found = causes if isinstance(causes, list) else []
        return [(_text(one, "reason"), _text(one, "field")) for one in found if isinstance(one, dict)]


class NoReply(Value):
    """No answer, or one that settles nothing.

    `harmless`: the request has certainly not been carried out. `final`: another try changes nothing. `after`: how
    many seconds the server asks to wait. `cause` is the transport's error, if it was one.
    """

    text: str
    harmless: bool = False
    final: bool = False
    refused: bool = False
    after: float = 0.0
    cause: Exception | None = None


def read_answer(answer: HttpAnswer) -> Reply | NoReply:
    """`refused` faults are those of credentials."""
    status = answer.status
    body = _object(answer.body)
    if status in (UNAUTHORIZED, FORBIDDEN):
        return NoReply(_shown(status, body), harmless=True, final=status == FORBIDDEN, refused=True)
    if status in _PASSING:
        return NoReply(_shown(status, body), harmless=status == _BUSY, after=_retry_after(answer))
    if status == NOT_FOUND and body is None and answer.body.strip() == _NO_SUCH_PATH:
        body = _NO_SUCH_RESOURCE
    if body is None:
        return NoReply(f"the answer ({_described(answer)}) is not that of a Kubernetes API server", final=True)
    if 200 <= status < 300 or (400 <= status < 500 and body.get("kind") == "Status"):
        return Reply(status, body, len(answer.body))
    return NoReply(_shown(status, body), final=True)


def _object(body: bytes | bytearray) -> dict[str, Json] | None:
    try:
        found = parse(body.decode("utf-8", "replace"))
    except JsonError:
        return None
    return found if isinstance(found, dict) else None


def _text(members: dict[str, Json], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _shown(status: int, body: dict[str, Json] | None) -> str:
    message = _text(body, "message")[:_LONGEST] if body and body.get("kind") == "Status" else ""
    return message or f"the server answered {status}"


def _described(answer: HttpAnswer) -> str:
    """Its status, and what keeps it from being read."""
    coding = answer.headers.get("content-encoding", "")
    return f"{answer.status}, compressed though nobody asked for that" if coding else str(answer.status)


def _retry_after(answer: HttpAnswer) -> float:
    """Whole seconds; the other form, a date, is not used by Kubernetes."""
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0


# One reason covers all conflicts; only the text tells that it is another object (of a PUT or PATCH; of a DELETE).
_OTHER_OBJECT = ("UID in precondition", "UID in the precondition")
_INVALID_VALUE = "FieldValueInvalid"


def refusal(reply: Reply, key: object) -> PortError:
    """The error to raise for a reply that is not `ok`."""
    if reply.status == NOT_FOUND:
        return Missing(key, reply.message)
    if reply.status == CONFLICT:
        if reply.reason == "AlreadyExists":
            return AlreadyExists(key, reply.message)
        return Missing(key, reply.message) if any(text in reply.message for text in _OTHER_OBJECT) else Conflict(key)
    causes = set(reply.causes) if reply.status == INVALID else set()
    if causes == {(_INVALID_VALUE, "metadata.uid")}:
        return Missing(key, reply.message)
    if causes == {(_INVALID_VALUE, "metadata.resourceVersion")}:
        return Conflict(key)
    return Refused(reply.message)
