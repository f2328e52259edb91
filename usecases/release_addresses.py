"""DEL of the IPAM plugin: free whatever a container holds.

What a virtual machine has is freed with the machine, not with a pod of it. Whether its addresses are kept may have
been decided otherwise when the pod got them, so the DEL of a machine's pod looks at both handles. What is kept for a
pod's name only loses its pod.

Invariant: a container that holds nothing is released successfully, as often as the runtime asks; and so is one of
which only damaged records tell.
"""

from __future__ import annotations

from domain.ipam.block import HOST, Owner
from domain.workload.identity import KUBERNETES, identify
from ports.datastore import AllocationConfigKey, HandleKey, IPPools, NodeKey
from ports.errors import Damaged
from usecases.calls.deletion import with_settings_of_add
from usecases.calls.find_endpoint import was_never_ours
from usecases.calls.safeguards import host_lock, refuse_own_namespace
from usecases.calls.this_node import node_name
from usecases.ipam.free_addresses import NodeAndPools, cooldown_of, free_held
from usecases.ipam.free_without_handle import free_without_handle
from usecases.ipam.sound_records import fetch_sound, if_sound
from usecases.ipam.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from domain.ipam.block import Handle
    from domain.workload.identity import Identity
    from ports.datastore import Need, Stored
    from ports.runtime import Runtime
    from usecases.calls.call import Call

    _Read: TypeAlias = tuple[int, Stored[Handle] | Damaged | None, NodeAndPools | None]


def release_addresses(call: Call, runtime: Runtime) -> None:
    """As the plugin that a runtime calls; if its settings are lost, with those that the ADD had."""
    with_settings_of_add(release_held, call, runtime)


def release_held(call: Call, runtime: Runtime) -> None:
    """The handle of today's form first; only without one is that of old versions (2.x) tried."""
    refuse_own_namespace(call.request, runtime)
    identity = identify(call.request, call.args, call.netconf.mesos_labels, node_name(call.netconf, runtime.node))
    if was_never_ours(identity, runtime.log):
        return
    work = Work.on(runtime, call.deadline)
    with host_lock(call, runtime):
        if identity.is_named_as_launcher or not _release_remembered(work, _handle_of(call)):
            _release(call, runtime, identity, work)


def _release_remembered(work: Work, handle: str) -> bool:
    """By the notes of this host's earlier calls; False if these were not true any more."""
    held = work.datastore.remembered(HandleKey(handle))
    if held is None:
        return False
    (config,) = fetch_sound(work.datastore, work.log, AllocationConfigKey(), deadline=work.deadline)
    return free_held(work, held, cooldown_of(config))


def _release(call: Call, runtime: Runtime, identity: Identity, work: Work) -> None:
    handle, kubernetes = _handle_of(call), identity.orchestrator == KUBERNETES
    legacy = f"{identity.namespace}.{identity.pod}" if kubernetes else identity.container_id
    cooldown, held, seen = _read(work, handle, identity.node)
    if identity.is_named_as_launcher and _leave_machine(call, runtime, identity, cooldown) and held is None:
        return
    if held is None and kubernetes and call.netconf.ipam.keep_addresses is not None:
        from usecases.pods.leave_kept import leave_kept  # few networks keep addresses

        if leave_kept(call, runtime, work, identity):
            return
    if held is None:
        held = _second_look(work, HandleKey(handle), HandleKey(legacy))
    if held is not None and not isinstance(held, Damaged):
        _free(work, held, cooldown, seen)
        return
    freed, left = free_without_handle(work, Owner(HOST, identity.node), handle, cooldown, identity.container_id)
    if freed:
        runtime.log.warning("Freed addresses whose handle record was gone", handle=handle)
    elif not left:
        runtime.log.warning("Asked to release a container that holds no address", handle=handle)


def _second_look(work: Work, handle: HandleKey, legacy: HandleKey) -> Stored[Handle] | Damaged | None:
    """The handle of old; and, if it was asked for before the lock, today's once more: an ADD that a runtime has given
    up may have made it while it held the lock.
    """
    keys = (handle, legacy) if _asks_early(work) else (legacy,)
    found = fetch_sound(work.datastore, work.log, *keys, deadline=work.deadline)
    return next((one for one in found if one is not None), None)


def _free(work: Work, held: Stored[Handle], cooldown: int, seen: NodeAndPools | None) -> None:
    """All that the handle holds, and what such an ADD has taken of other blocks since it was read."""
    if free_held(work, held, cooldown, seen) or not _asks_early(work):
        return
    (latest,) = fetch_sound(work.datastore, work.log, HandleKey.of(held), deadline=work.deadline)
    now = if_sound(latest)
    if now is not None and now.record.blocks.keys() - held.record.blocks.keys():
        free_held(work, now, cooldown)


def _asks_early(work: Work) -> bool:
    """Whether the handle was read before the lock, and no notes in the lock tell what has become of it since."""
    return work.datastore.brings_along and work.datastore.lists_in_one_go


def expect_release(call: Call, runtime: Runtime) -> None:
    """What a release reads first may come along with earlier questions of the call."""
    handle = HandleKey(_handle_of(call))
    if runtime.datastore.lists_in_one_go:
        if runtime.datastore.brings_along:
            runtime.datastore.expect(*_needs(handle, node_name(call.netconf, runtime.node), judging=True))
        return
    from usecases.calls.last_calls import recall

    notes = recall(runtime)
    runtime.datastore.expect(AllocationConfigKey())
    if notes is not None and runtime.datastore.remembered(handle) is None:
        runtime.datastore.expect(handle)  # what an ADD that has the lock makes of it meanwhile is in its notes


def _handle_of(call: Call) -> str:
    return f"{call.netconf.name}.{call.request.container_id}"


def _leave_machine(call: Call, runtime: Runtime, identity: Identity, cooldown: int) -> bool:
    """Whether the pod ran a virtual machine that has addresses of its own. Few pods need what this loads."""
    from usecases.pods.find_machine import machine_left
    from usecases.pods.leave_machine import leave_machine

    leaving = machine_left(call, runtime, identity)
    return leaving is not None and leave_machine(Work.on(runtime, call.deadline), runtime.cluster, leaving, cooldown)


def _needs(handle: HandleKey, node: str, *, judging: bool) -> tuple[Need[Any], ...]:
    needs: tuple[Need[Any], ...] = (AllocationConfigKey(), handle)
    return (*needs, NodeKey(node), IPPools()) if judging else needs


def _read(work: Work, handle: str, node: str) -> _Read:
    """Where several reads are one round trip, also what a block that gets empty is judged by."""
    wanted = _needs(HandleKey(handle), node, judging=work.datastore.lists_in_one_go)
    config, held, *judged = fetch_sound(work.datastore, work.log, *wanted, deadline=work.deadline)
    its_node, pools = map(if_sound, judged) if judged else (None, None)
    seen = NodeAndPools(its_node, pools) if its_node is not None and pools is not None else None
    return cooldown_of(config), held, seen
