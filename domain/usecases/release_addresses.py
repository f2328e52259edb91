"""DEL of the IPAM plugin: free whatever a container holds (spec: ipam 5, 14.6).

What a virtual machine has is freed with the machine, not with a pod of it. Whether its addresses are kept may have
been decided otherwise when the pod got them, so the DEL of a machine's pod looks at both handles.

Invariant: a container that holds nothing is released successfully, as often as the runtime asks.
"""

from __future__ import annotations

from domain.ipam.affinity import HOST, Owner
from domain.usecases.steps.find_endpoint import endpoint_name
from domain.usecases.steps.free_addresses import Seen, free_held
from domain.usecases.steps.free_without_handle import free_without_handle
from domain.usecases.steps.host_lock import host_lock
from domain.usecases.steps.node_name import node_name
from domain.usecases.steps.own_namespace import refuse_own_namespace
from domain.usecases.steps.work import Work
from domain.workload.identity import KUBERNETES, identify
from ports.datastore import AllocationConfigKey, HandleKey, IPPools, NodeKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from domain.ipam.config import AllocationConfig
    from domain.ipam.handle import Handle
    from domain.usecases.call import Call
    from domain.workload.identity import Identity
    from ports.datastore import Stored
    from ports.runtime import Runtime

    _Read: TypeAlias = tuple[Stored[AllocationConfig] | None, Stored[Handle] | None, Seen | None]


def release_addresses(call: Call, runtime: Runtime) -> None:
    """The handle of today's form first; only without one is that of old versions (2.x) tried."""
    refuse_own_namespace(call.request, runtime)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    endpoint_name(identity)
    handle = f"{call.netconf.name}.{identity.container_id}"
    kubernetes = identity.orchestrator == KUBERNETES
    legacy = f"{identity.namespace}.{identity.pod}" if kubernetes else identity.container_id
    work = Work.on(runtime, call.deadline)
    with host_lock(call, runtime):
        config, held, seen = _read(work, handle, identity.node)
        cooldown = config.record.cooldown_seconds if config else 0
        if identity.is_named_as_launcher and _leave_machine(call, runtime, identity, cooldown) and held is None:
            return
        held = held or work.datastore.get(HandleKey(legacy), work.deadline)
        if held is not None:
            free_held(work, held, cooldown, seen)
        elif free_without_handle(work, Owner(HOST, identity.node), handle, cooldown):
            runtime.log.warning("Freed addresses whose handle record was gone", handle=handle)
        else:
            runtime.log.warning("Asked to release a container that holds no address", handle=handle)


def _leave_machine(call: Call, runtime: Runtime, identity: Identity, cooldown: int) -> bool:
    """Whether the pod ran a virtual machine that has addresses of its own. Few pods need what this loads."""
    from domain.usecases.steps.find_machine import machine_left
    from domain.usecases.steps.leave_machine import leave_machine

    leaving = machine_left(call, runtime, identity)
    return leaving is not None and leave_machine(Work.on(runtime, call.deadline), runtime.cluster, leaving, cooldown)


def _read(work: Work, handle: str, node: str) -> _Read:
    """Where several reads are one round trip, also what a block that gets empty is judged by."""
    key = HandleKey(handle)
    if not work.datastore.lists_in_one_go:
        config, held = work.datastore.fetch(AllocationConfigKey(), key, deadline=work.deadline)
        return config, held, None
    config, held, its_node, pools = work.datastore.fetch(
        AllocationConfigKey(), key, NodeKey(node), IPPools(), deadline=work.deadline
    )
    return config, held, Seen(its_node, pools)
