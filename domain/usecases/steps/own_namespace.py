"""Refuse to work on the plugin's own network namespace: a DEL there would delete the host's interface.

The original looks only after the work is done, and then prints a result and an error.
"""

from __future__ import annotations

from domain.cni.errors import INVALID_NETNS, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.cni.request import Request
    from ports.runtime import Runtime


def refuse_own_namespace(request: Request, runtime: Runtime) -> None:
    """Code 8, unless the runtime overrides the check (CNI_NETNS_OVERRIDE)."""
    if request.netns and not request.netns_override and runtime.dataplane.is_own_namespace(request.netns):
        raise CniError(INVALID_NETNS, "plugin's netns and netns from CNI_NETNS should not be the same")
