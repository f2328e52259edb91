"""A server's clear no, in the datastore port's words (spec: datastore D.2).

Invariant: every refusal becomes exactly one error, and a record that was made again under its old name counts as
`Missing`: the one that was meant is gone.
"""

from __future__ import annotations

from adapters.kubernetes.answers import CONFLICT, INVALID, NOT_FOUND
from ports.errors import AlreadyExists, Conflict, Missing, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.kubernetes.answers import Reply
    from ports.errors import PortError

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
