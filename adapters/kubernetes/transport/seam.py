"""The seam between what we mean by an object and what goes over the wire to a kube-apiserver: requests and answers.

A transport is one client of one server with one set of credentials. It knows methods, paths, bodies and status
codes; it knows nothing of records, decides nothing about an answer's meaning, tries nothing twice and waits no longer
than it is told. There are two ways to build one: on a library, and on bare sockets; the same contract suite runs
over both (tests/contracts/kubernetes_transport.py).

Invariant: an answer is what the server said to exactly that request; `ApiTransportError` means that none arrived, and
the request may or may not have been carried out unless `harmless` says that it cannot have been.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JSON = "application/json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class ApiTransportError(Exception):
    """`str()` says what happened and names the server. `harmless`: nothing was sent, so nothing has happened.

    `timed_out`: the seconds given were used up. `final`: another try changes nothing.
    """

    final = False

    def __init__(self, message: str, *, harmless: bool = False, timed_out: bool = False) -> None:
        super().__init__(message)
        self.harmless = harmless
        self.timed_out = timed_out


class ApiUntrusted(ApiTransportError):
    """The two sides do not accept each other's certificates or versions of TLS."""

    final = True

    def __init__(self, message: str) -> None:
        super().__init__(message, harmless=True)


class Oversized(ApiTransportError):
    """More came than any answer has."""

    final = True


class HttpRequest(Value):
    """`path` begins with `/`, without the prefix of the server's URL, its segments percent-encoded; `query` is encoded
    by the transport. A body of b"" is none.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON


class HttpAnswer(Value):
    """Any status. `headers` have lower-case names."""

    status: int
    body: bytes | bytearray
    headers: Mapping[str, str]


class ApiTransport(ABC):
    server: str
    """The URL, for errors and logs; without credentials."""
    credentials: str = "no credentials"
    """Where they come from and until when they are good, for errors: `kubeconfig /k, user 'calico', expired at …`."""

    @abstractmethod
    def send(self, requests: Sequence[HttpRequest], seconds: float) -> list[HttpAnswer]:
        """One answer for each request, in order. Those of one call are independent of each other: they may be sent in
        any order or at once, and an error on one fails the call.
        """

    @abstractmethod
    def renew(self) -> bool:
        """Read the credentials again (kubeconfig, token file, exec plugin). False if they are the same as before, or
        can not change.
        """

    @abstractmethod
    def close(self) -> None:
        """Safe to repeat."""
