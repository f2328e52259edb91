"""What keeps a call from doing harm: to the host's own network, to other calls for its container, to those on its host.

A DEL in the plugin's own network namespace would delete the host's interface. (The original looks only after the work
is done, and then prints a result and an error.)

Locks only keep calls from contending, so waiting for one must leave most of the call's time to the work itself; after
that the call goes on unlocked, and compare-and-swap keeps it correct. Something that can never be a lock, such as a
symbolic link in its place, is an operator's to remove: an ADD says so and does nothing, while a DEL goes on, because a
container can always end.
"""

from __future__ import annotations

from domain.cni.errors import INVALID_NETNS, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from domain.cni.request import Request
    from ports.bridge import Bridges
    from ports.node import ThisNode
    from ports.runtime import BridgeRuntime, Ports, Runtime
    from usecases.calls.call import BridgeCall, Call, PluginCall

SHARE = 3  # one part in three of the call's remaining time


def refuse_own_namespace(request: Request, runtime: Runtime) -> None:
    """Code 8 before anything is done, unless the runtime overrides the check (CNI_NETNS_OVERRIDE)."""
    if request.netns and not request.netns_override:
        _refuse_if_own(request.netns, runtime.node)


def refuse_host_namespace(call: BridgeCall, runtime: BridgeRuntime) -> None:
    """The same for the bridge plugin."""
    if call.request.netns and not call.request.netns_override:
        _refuse_if_own(call.request.netns, runtime.bridges)


def _refuse_if_own(netns: str, machine: ThisNode | Bridges) -> None:
    if machine.is_own_namespace(netns):
        raise CniError(INVALID_NETNS, "plugin's netns and netns from CNI_NETNS should not be the same")


def lock_container(call: PluginCall, runtime: Ports) -> None:
    """One call at a time for a container: a runtime that gave up an ADD may repeat it, or send DEL, while it runs."""
    if call.request.netns:
        now = runtime.clock.monotonic()
        runtime.lock.keep(call.request.netns, call.deadline.sooner(now, call.deadline.left(now) / SHARE))


def host_lock(call: Call, runtime: Runtime) -> AbstractContextManager[bool]:
    """The host's lock for a `with` block."""
    now = runtime.clock.monotonic()
    deadline = call.deadline.sooner(now, call.deadline.left(now) / SHARE)
    return runtime.lock.held(deadline, strict=call.request.command == "ADD")
