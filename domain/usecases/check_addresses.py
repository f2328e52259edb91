"""CHECK of the IPAM plugin. The original has no handler: any acceptable configuration succeeds silently."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.usecases.call import Call
    from ports.runtime import Runtime


def check_addresses(call: Call, runtime: Runtime) -> None:
    """Answers as recorded; comparing the allocation is the network plugin's CHECK."""
    runtime.log.debug("IPAM CHECK has nothing to compare", container=call.request.container_id)
