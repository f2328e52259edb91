"""Refuse to work on the plugin's own network namespace: a DEL there would delete the host's interface.

The original looks only after the work is done, and then prints a result and an error.
"""

from __future__ import annotations

from domain.cni.errors import INVALID_NETNS, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.request import Request
    from ports.bridge import Bridges
    from ports.dataplane import Dataplane
    from ports.runtime import Runtime


def refuse_own_namespace(request: Request, runtime: Runtime) -> None:
    """Code 8, unless the runtime overrides the check (CNI_NETNS_OVERRIDE)."""
    if request.netns and not request.netns_override:
        refuse_if_own(request.netns, runtime.dataplane)


def refuse_if_own(netns: str, machine: Dataplane | Bridges) -> None:
    """Code 8."""
    if machine.is_own_namespace(netns):
        raise CniError(INVALID_NETNS, "plugin's netns and netns from CNI_NETNS should not be the same")
