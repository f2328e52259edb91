"""What dockershim asks for that no other runtime does: each container of a pod, and sandboxes that it has just deleted.

A pod's containers share the endpoint of the sandbox: an ADD for one of them attaches it, and gives the addresses that
the sandbox has. So does an ADD for a sandbox that has its endpoint already.

Dockershim sends its DEL for a sandbox, and later asks for that sandbox's state by an ADD. Were it networked again,
nobody would ever delete that. So each DEL is noted for a while, and an ADD of the same sandbox is refused meanwhile.

Invariant: nothing is allocated here; notes that have outlived the time that is configured go.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.cni.result import Result, ResultIp
from domain.moment import SECOND, BadMoment, parse_rfc3339, rfc3339
from domain.windows.conf import read_windows_conf
from domain.windows.names import is_dockershim, joins_sandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.endpoint import WorkloadEndpoint
    from ports.datastore import Stored
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.calls.safeguards import Undo


class SharedEndpoint:
    """What there is already, in the place of networking a pod."""

    def __init__(self, result: Result, endpoint: WorkloadEndpoint) -> None:
        self._shared = result, endpoint

    def perform(self, _undo: Undo) -> tuple[Result, WorkloadEndpoint]:
        return self._shared


def shared_endpoint(call: Call, runtime: Runtime, existing: Stored[WorkloadEndpoint] | None) -> SharedEndpoint | None:
    """None if the pod has to be networked.

    CniError 999 for a container whose sandbox is not networked, and for a sandbox that was deleted lately.
    """
    netns = call.request.netns
    if not is_dockershim(netns):
        return None
    addresses = runtime.host_networking.join(netns, call.deadline)
    if addresses and existing is not None:
        runtime.log.info("The sandbox has its endpoint already", netns=netns)
        return SharedEndpoint(Result(ips=tuple([ResultIp(address) for address in addresses])), existing.record)
    if joins_sandbox(netns):
        raise CniError(INTERNAL, f'the sandbox of CNI_NETNS "{netns}" has no endpoint to share')
    _refuse_lately_deleted(call, runtime)
    return None


def _refuse_lately_deleted(call: Call, runtime: Runtime) -> None:
    since = runtime.clock.now() - read_windows_conf(call.netconf).deletion_timeout * SECOND
    host = runtime.host_networking
    for container, when in host.deletions().items():
        if _instant(when) < since:
            host.forget_deletion(container)
        elif container == call.request.container_id:
            raise CniError(INTERNAL, "endpoint with same ID was recently deleted")


def _instant(when: str) -> int:
    """A note that cannot be read is as old as can be."""
    try:
        return parse_rfc3339(when)
    except BadMoment:
        return 0


def note_deletion(call: Call, runtime: Runtime) -> None:
    """Before anything is deleted; a note that cannot be made fails the DEL, which is then repeated."""
    if is_dockershim(call.request.netns):
        runtime.host_networking.note_deletion(call.request.container_id, rfc3339(runtime.clock.now()))
