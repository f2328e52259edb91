"""How long a call waits for the other calls on its host.

The lock only keeps calls from contending, so waiting for it must leave most of the call's time to the work itself;
after that the call goes on unlocked, and compare-and-swap keeps it correct.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from domain.usecases.call import Call
    from ports.runtime import Runtime

SHARE = 3  # one part in three of the call's remaining time


def host_lock(call: Call, runtime: Runtime) -> AbstractContextManager[bool]:
    """The host's lock for a `with` block."""
    now = runtime.clock.monotonic()
    return runtime.lock.held(call.deadline.sooner(now, call.deadline.left(now) / SHARE))
