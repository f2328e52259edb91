"""What keeps a call from doing harm: to the host's own network, to other calls, and by what a failed one leaves behind.

A DEL in the plugin's own network namespace would delete the host's interface. (The original looks only after the work
is done, and then prints a result and an error.)

Locks only keep calls from contending, so waiting for one must leave most of the call's time to the work itself; after
that the call goes on unlocked, and compare-and-swap keeps it correct. Something that can never be a lock, such as a
symbolic link in its place, is an operator's to remove: an ADD says so and does nothing, while a DEL goes on, because a
container can always end.

A call may fail, be interrupted, or be unable to deliver its answer. Each effect registers its way back on the line
after it. `keep` forgets them all, and is called only once the answer has left the process. `run` goes them in reverse
order within a budget of its own, so that an expired call can still clean up.

Invariant: every way back, and every part of a DEL, is tried, with time for it, whatever the earlier ones do; failures
are logged, and none is raised from here.
"""

from __future__ import annotations

from domain.cni.errors import INVALID_NETNS, CniError
from domain.ipam.errors import IpamError
from ports.clock import Deadline
from ports.errors import PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from domain.cni.request import Request
    from ports.bridge import Bridges
    from ports.clock import Clock
    from ports.log import Log
    from ports.node import ThisNode
    from ports.runtime import BridgeRuntime, Ports, Runtime
    from usecases.calls.call import BridgeCall, Call, PluginCall

UNDO_BUDGET = 10.0  # seconds for all ways back together
UNDO_LEAST = 2.0  # that each of them has all the same, when an earlier one has used up the budget
LOCK_SHARE = 3  # one part in three of the call's remaining time


class Undo:
    def __init__(self, clock: Clock, log: Log) -> None:
        self._clock = clock
        self._log = log
        self._ways_back: list[tuple[str, Callable[[Deadline], None]]] = []

    def register(self, what: str, take_back: Callable[[Deadline], None]) -> None:
        """`what` names the effect to take back: `release 10.0.0.1`."""
        self._ways_back.append((what, take_back))

    def keep(self) -> None:
        """The effects stay: forget how to undo them."""
        self._ways_back.clear()

    def run(self) -> None:
        """Take everything back, newest first."""
        together = self._clock.deadline(UNDO_BUDGET)
        while self._ways_back:
            what, take_back = self._ways_back.pop()
            own = self._clock.deadline(UNDO_LEAST)
            deadline = own if own.at > together.at else together
            try:
                take_back(deadline)
            except (PortError, IpamError) as error:
                self._log.error("Could not undo", step=what, error=error)
            else:
                self._log.info("Undone", step=what)


def attempt(runtime: Ports, what: str, part: Callable[[], object]) -> Exception | None:
    """Do a part of a DEL; its failure, logged."""
    try:
        part()
    except (PortError, CniError, IpamError) as error:
        runtime.log.error("DEL could not " + what, error=error)
        return error
    return None


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
        runtime.lock.keep(call.request.netns, call.deadline.sooner(now, call.deadline.left(now) / LOCK_SHARE))


def host_lock(call: Call, runtime: Runtime) -> AbstractContextManager[bool]:
    """The host's lock for a `with` block; with what the last call has left in it, where that saves something."""
    now = runtime.clock.monotonic()
    deadline = call.deadline.sooner(now, call.deadline.left(now) / LOCK_SHARE)
    lock = runtime.lock.held(deadline, strict=call.request.command == "ADD")
    if runtime.datastore.lists_in_one_go:
        return lock
    from usecases.calls.last_calls import NotedLock

    return NotedLock(lock, runtime)
