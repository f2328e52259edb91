"""Making a plan true in the kernel, step by step, and taking back what could not be finished.

It takes every word of domain/linux and knows nothing of who planned. What bridges need is loaded with the first step
that says so, since most plugin calls have none.

Invariant: after `run` has raised, `undo` removes the pair that this run made and nothing that was there before.
"""

from __future__ import annotations

from adapters.linux.kernel import PlanRun, StepFailed
from adapters.linux.netlink.seam import KernelError
from adapters.linux.steps import Steps
from domain.linux.steps import HOST, AddRoute, Device
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from adapters.linux.kernel import Kernel
    from domain.linux.steps import Action, Step
    from ports.clock import Clock, Deadline
    from ports.log import Log


class Interpreter:
    """Runs one plan in one container's namespace, or several in turn."""

    def __init__(self, kernel: Kernel, clock: Clock, log: Log, deadline: Deadline) -> None:
        self._log = log
        self._run = PlanRun(kernel, clock, log, deadline)
        self._doings = Steps(self._run).doings

    def run(self, plan: Iterable[Step]) -> tuple[Device, ...]:
        """The devices whose names the plan has left open.

        Errors: `Refused` with the step's text and the kernel's reason, `Expired` between two steps.
        """
        self._run.named = []
        for step in plan:
            self._run.check_time(f"the kernel (next: {step.action})")
            try:
                self._doing(step.action)(step.action)
            except (KernelError, StepFailed) as error:
                text = self._text(step, error)
                if isinstance(error, KernelError) and error.explanation:
                    self._log.info("The kernel explains a refusal", step=text, explanation=error.explanation)
                if step.fatal:
                    raise Refused(text) from error
                self._log.warning(text)
        return tuple(self._run.named)

    def _doing(self, action: Action) -> Callable[[Any], None]:
        if type(action) not in self._doings:
            from adapters.linux.bridge_steps import BridgeSteps

            self._doings |= BridgeSteps(self._run).doings
        return self._doings[type(action)]

    def undo(self, kernel: Kernel) -> None:
        """Delete the pair that this run made, if any; the other end goes with it. `kernel` shows the host."""
        if self._run.made is None:
            return
        netlink, device = kernel.netlink(HOST), self._run.made.host
        known = self._run.known(device) or netlink.link(device.name)
        if known is not None:
            netlink.delete_link(known.index)

    def _text(self, step: Step, error: Exception) -> str:
        failure = step.failure
        if isinstance(step.action, AddRoute) and isinstance(step.action.gateway, Device):
            failure = failure.replace("{gateway}", str(self._run.link_local.get(step.action.gateway)))
        return failure + (": " if failure[-1:].isalnum() and str(error) else "") + str(error)
