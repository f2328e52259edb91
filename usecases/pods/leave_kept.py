"""DEL of a sandbox whose addresses are kept for a name: nobody has them from now on, and their time begins.

The name is the pod's own or one that an annotation gave it. The pod may be gone by the time of its DEL, and its
annotation with it; then whoever looks through the node's blocks finds the sandbox in them (`free_without_handle`).
What nobody finds is not lost: the next pod of that name takes it, and garbage collection sees that no pod has it.

Invariant: what another sandbox has, of the same pod too, stays as it is.
"""

from __future__ import annotations

from domain.ipam.kept import KeptName
from domain.workload.kept_wish import named_by
from ports.datastore import HandleKey
from ports.errors import PortError
from usecases.ipam.sound_records import fetch_sound, if_sound
from usecases.ipam.unused_kept import leave_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.workload.identity import Identity
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.ipam.work import Work


def leave_kept(call: Call, runtime: Runtime, work: Work, identity: Identity) -> bool:
    """Whether the sandbox had such addresses."""
    for name in _names(call, runtime, identity):
        handle = KeptName(identity.namespace, name).handle(call.netconf.name)
        (found,) = fetch_sound(work.datastore, work.log, HandleKey(handle), deadline=work.deadline)
        stored = if_sound(found)
        left = [leave_in(work, cidr, identity.container_id) for cidr in (stored.record.blocks if stored else ())]
        if any(left):
            return True
    return False


def _names(call: Call, runtime: Runtime, identity: Identity) -> Iterator[str]:
    yield identity.pod
    try:
        pod = runtime.cluster.pod(identity.namespace, identity.pod, call.deadline)
    except PortError as error:
        runtime.log.debug("Nobody can say what the pod's addresses are kept for", pod=identity.pod, error=error)
        return
    name = named_by(pod)
    if name and name != identity.pod:
        yield name
