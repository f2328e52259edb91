"""One remote procedure call: bytes there, bytes back, or the status that it ended with.

Invariant: a call is made at most once, and whatever it opened is closed when it returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE = 4, 13, 14
_NAMES = (
    *("OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists"),
    *("PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented"),
    *("Internal", "Unavailable", "DataLoss", "Unauthenticated"),
)


class CallFailed(Exception):
    """There is no reply. `code` is the number that gRPC gives the status; the text is spelled as Go's library does."""

    def __init__(self, code: int, reason: str) -> None:
        name = _NAMES[code] if 0 <= code < len(_NAMES) else f"Code({code})"
        super().__init__(f"rpc error: code = {name} desc = {reason}")
        self.code = code


class Transport(ABC):
    @abstractmethod
    def call(self, method: str, request: bytes, seconds: float) -> bytes:
        """`method` is `/<package>.<service>/<name>`. CallFailed, after that many seconds at the latest."""
