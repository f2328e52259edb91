"""What every use of gRPC's own library needs: settings that it takes from the environment, and waiting for a call.

The library reads its environment once, when it is loaded. It works in threads of its own, and its Python part holds
locks that an exception from a signal handler would leave locked. So termination signals are withheld while it runs,
and admitted between two moments of waiting.

Invariant: nothing here loads the library.
"""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Protocol, Self

    class Withheld(Protocol):
        """A block that termination signals do not interrupt, except at `admit`."""

        def __enter__(self) -> Self: ...
        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None: ...
        def admit(self) -> None: ...


SLICE = 0.05  # seconds between two chances for termination signals
GRACE = 1.0  # seconds that the library may take to notice that the time is over
# The library has no setting for the oldest version of TLS. This is a cipher of version 1.2 that needs a key known to
# both sides beforehand, so nobody can agree on it; version 1.3 has ciphers of its own.
_NO_CIPHER_BEFORE_1_3 = "ECDHE-PSK-AES128-CBC-SHA"
_CIPHERS = "GRPC_SSL_CIPHER_SUITES"


def prepare(*, only_tls_1_3: bool = False) -> None:
    """To be called before the library is first loaded."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it writes to stderr what its errors say anyway
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # its handlers crash a child that only execs a plugin
    if only_tls_1_3:
        os.environ[_CIPHERS] = _NO_CIPHER_BEFORE_1_3


def takes_only_tls_1_3() -> bool:
    """Whether it has been prepared so."""
    return os.environ.get(_CIPHERS) == _NO_CIPHER_BEFORE_1_3


def is_over(future: Any, seconds: float, signals: Withheld) -> bool:
    """Whether the call is over within that time. Waiting on a bare lock leaves nothing half done."""
    answered = _thread.allocate_lock()
    answered.acquire()
    future.add_done_callback(lambda _: answered.release())
    for _ in range(int((seconds + GRACE) / SLICE)):
        if answered.acquire(timeout=SLICE):
            return True
        signals.admit()
    return False
