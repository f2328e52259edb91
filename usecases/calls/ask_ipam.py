"""Ask the IPAM plugin for addresses, and see that they go back if a later step fails.

Invariant: the undoing is registered before the plugin runs, since one that is cut short may have given addresses out;
a plugin that said no has given out nothing, and is not asked to take anything back.
"""

from __future__ import annotations

from domain.cni.result import Result
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ports.deadline import Deadline
    from ports.ipam_plugin import IpamCall
    from ports.runtime import Runtime
    from usecases.calls.undo import Undo


def ask_ipam(runtime: Runtime, ipam_call: IpamCall, deadline: Deadline, undo: Undo) -> Result:
    """The plugin's own result, which may be without addresses."""
    plugin = runtime.ipam_plugin
    result = Result()
    said_no = False

    def take_back(deadline: Deadline) -> None:
        if not said_no:
            plugin.withdraw(ipam_call, result, deadline)

    undo.register("IPAM ADD", take_back)
    try:
        result = plugin.add(ipam_call, deadline)
    except Refused:
        said_no = True
        raise
    return result
