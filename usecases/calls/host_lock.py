"""How long a call waits for the other calls on its host, and for those about its own container.

The lock only keeps calls from contending, so waiting for it must leave most of the call's time to the work itself;
after that the call goes on unlocked, and compare-and-swap keeps it correct. Something that can never be a lock, such
as a symbolic link in its place, is an operator's to remove: an ADD says so and does nothing, while a DEL goes on,
because a container can always end.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ports.runtime import Ports, Runtime
    from usecases.calls.call import Call, PluginCall

SHARE = 3  # one part in three of the call's remaining time


def host_lock(call: Call, runtime: Runtime) -> AbstractContextManager[bool]:
    """The host's lock for a `with` block."""
    now = runtime.clock.monotonic()
    deadline = call.deadline.sooner(now, call.deadline.left(now) / SHARE)
    return runtime.lock.held(deadline, strict=call.request.command == "ADD")


def lock_container(call: PluginCall, runtime: Ports) -> None:
    """One call at a time for a container: a runtime that gave up an ADD may repeat it, or send DEL, while it runs."""
    if call.request.netns:
        now = runtime.clock.monotonic()
        runtime.lock.keep(call.request.netns, call.deadline.sooner(now, call.deadline.left(now) / SHARE))
