"""One remote procedure call: bytes there, bytes back, or the status that it ended with; and where the service listens,
spelled as for Go's library.

Invariant: a call is made at most once, and whatever it opened is closed when it returns. Every text is a target, since
what leads nowhere is told by the attempt to connect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value

PASSTHROUGH = "passthrough:"  # a scheme of Go's library: no name resolution of gRPC's own
_DEFAULT_PORT = 443


class Target(Value):
    """A Unix socket's `path`, after a NUL in the abstract namespace; else `host`, IPv6 without brackets, and `port`."""

    path: str = ""
    host: str = ""
    port: int = 0

    @property
    def authority(self) -> str:
        """What the service is told that it is called."""
        if self.path:
            return "localhost"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def without_passthrough(target: str) -> str:
    """The target for those that have no such scheme and look up `host:port` by themselves."""
    if not target.startswith(PASSTHROUGH):
        return target
    rest = target.removeprefix(PASSTHROUGH)
    return rest.removeprefix("//").partition("/")[2] if rest.startswith("//") else rest


def parse_target(text: str) -> Target:
    """`unix:///path`, `unix:path`, `unix-abstract:name`, `host:port`, the latter also after `dns:///`."""
    text = without_passthrough(text)
    if text.startswith("unix:"):
        return Target(path=text.removeprefix("unix:").removeprefix("//"))
    if text.startswith("unix-abstract:"):
        return Target(path="\0" + text.removeprefix("unix-abstract:"))
    if text.startswith("dns:"):
        text = text.removeprefix("dns:").rpartition("/")[2]
    host, colon, port = text.rpartition(":")
    if (
        not colon
        or not (port.isascii() and port.isdigit() and len(port) < 6)
        or (":" in host and not host.startswith("["))
    ):
        host, port = text, str(_DEFAULT_PORT)
    return Target(host=host.removeprefix("[").removesuffix("]"), port=int(port))


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


class GrpcTransport(ABC):
    @abstractmethod
    def call(self, method: str, request: bytes, seconds: float) -> bytes:
        """`method` is `/<package>.<service>/<name>`. CallFailed, after that many seconds at the latest."""
