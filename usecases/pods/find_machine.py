"""Find the virtual machine that a pod runs, and whether its addresses are to stay with it.

An ADD that cannot find out fails, since an address given to the pod instead would be lost with the pod. A DEL has to
end even when the objects that it asks for are gone, so it takes what it finds.

Invariant: a pod that is only named as a launcher is a pod like any other.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, INVALID_CONFIG, CniError
from domain.value import Value
from domain.workload.kubevirt import (
    NoSuchMachine,
    has_newer_sandbox,
    instance_name_in,
    instance_reference,
    is_ending,
    machine_handle,
    machine_reference,
    virtual_machine,
)
from ports.cluster import NoSuchObject
from ports.datastore import IPAMConfigurationKey
from ports.errors import BadConfiguration, PortError, Unauthorized, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from domain.workload.identity import Identity
    from domain.workload.kubevirt import VirtualMachine
    from domain.workload.pod import Pod
    from ports.clock import Deadline
    from ports.cluster import Cluster
    from ports.runtime import Runtime
    from usecases.calls.call import Call
    from usecases.ipam.work import Work

    Found = TypeVar("Found")

_DISABLED = "Disabled"


def machine_to_keep(call: Call, runtime: Runtime, work: Work, identity: Identity) -> VirtualMachine | None:
    """ADD of a pod that is named as a launcher: the machine whose addresses outlive the pod.

    None for a pod like any other. CniError if it may not be networked at all.
    """
    try:
        machine = _machine_of(runtime.cluster, identity, call.deadline)
    except Unavailable:
        raise
    except (PortError, NoSuchMachine) as error:
        raise CniError(INTERNAL, f"failed to get VMI info: {error}") from error
    if machine is None or keeps_addresses(work):
        return machine
    if machine.migration:
        text = "live migration target pod is not allowed when KubeVirtVMAddressPersistence is disabled"
        raise CniError(INTERNAL, text)
    return None


def _machine_of(cluster: Cluster, identity: Identity, deadline: Deadline) -> VirtualMachine | None:
    pod = cluster.pod(identity.namespace, identity.pod, deadline)
    reference = instance_reference(pod)
    if reference is None:
        return None
    where = f"{pod.namespace}/{reference.name}"
    try:
        instance = cluster.virtual_machine_instance(pod.namespace, reference.name, deadline)
    except NoSuchObject as error:
        raise NoSuchMachine(f"failed to query VMI resource {where}: {error}") from error
    owner = machine_reference(instance)
    try:
        machine = cluster.virtual_machine(pod.namespace, owner.name, deadline) if owner else None
    except NoSuchObject as error:
        raise NoSuchMachine(f"failed to query VM resource of VMI {where}: {error}") from error
    return virtual_machine(pod, instance, machine)


def handle_of(call: Call, machine: VirtualMachine) -> str:
    """CniError for a machine that can have none."""
    try:
        return machine_handle(call.netconf.name, machine.namespace, machine.instance_name)
    except NoSuchMachine as error:
        details = (
            "give the virtual machine or its namespace a shorter name, "
            "or set kubeVirtVMAddressPersistence to Disabled in the IPAMConfiguration"
        )
        raise CniError(INVALID_CONFIG, str(error), details) from error


def keeps_addresses(work: Work) -> bool:
    """The cluster's setting: yes, unless somebody has said no. A setting that cannot be read has not said so."""
    try:
        stored = work.datastore.get(IPAMConfigurationKey("default"), work.deadline)
    except Unavailable:
        raise
    except PortError as error:
        work.log.warning("Could not read kubeVirtVMAddressPersistence; taking it as Enabled", error=error)
        return True
    return stored is None or stored.record.kubevirt_persistence != _DISABLED


class Leaving(Value):
    """A launcher's sandbox that is about to go: the pod, the machine's name and handle.

    `pod_is_gone`: the API server has it no more, and the machine's name is only what the pod's name speaks of.
    """

    namespace: str
    pod: str
    machine: str
    handle: str
    pod_is_gone: bool = False


def machine_left(call: Call, runtime: Runtime, identity: Identity) -> Leaving | None:
    """DEL of a pod that is named as a launcher: what it leaves.

    None for a pod that runs no machine, or runs it in another sandbox by now.
    """
    try:
        pod = if_there(lambda: runtime.cluster.pod(identity.namespace, identity.pod, call.deadline))
    except BadConfiguration as error:
        from usecases.calls.lost_settings import settings_of_add

        if settings_of_add(call.netconf, runtime) is not None:
            raise  # with those that are found there the DEL is tried once more
        runtime.log.debug("Nobody can say whether the pod runs a virtual machine", pod=identity.pod, error=error)
        return None
    if pod is None:
        return _leaving(call, identity, instance_name_in(identity.pod), pod_is_gone=True)
    if has_newer_sandbox(pod, identity.container_id):
        runtime.log.info("Leaving the virtual machine to the pod's newer sandbox", pod=identity.pod)
        return None
    return _leaving(call, identity, _machine_named_by(pod), pod_is_gone=False)


def _machine_named_by(pod: Pod) -> str:
    try:
        reference = instance_reference(pod)
    except NoSuchMachine:
        return ""  # no ADD of such a pod has given it anything
    return reference.name if reference else ""


def _leaving(call: Call, identity: Identity, machine: str, *, pod_is_gone: bool) -> Leaving | None:
    try:
        handle = machine_handle(call.netconf.name, identity.namespace, machine)
    except NoSuchMachine:
        return None  # likewise
    return Leaving(identity.namespace, identity.pod, machine, handle, pod_is_gone) if machine else None


def machine_is_over(cluster: Cluster, namespace: str, name: str, deadline: Deadline) -> bool:
    """Whether the machine of that name is being deleted, or gone: then its addresses are free for others."""
    instance = if_there(lambda: cluster.virtual_machine_instance(namespace, name, deadline))
    owner = machine_reference(instance) if instance else None
    if instance is not None and owner is None:
        return is_ending(instance, None)
    called = owner.name if owner else name
    return is_ending(instance, if_there(lambda: cluster.virtual_machine(namespace, called, deadline)))


def if_there(look: Callable[[], Found]) -> Found | None:
    """An object of the cluster, or None. CniError for an answer that says neither."""
    try:
        return look()
    except NoSuchObject:
        return None
    except (Unavailable, Unauthorized, BadConfiguration):
        raise
    except PortError as error:
        raise CniError(INTERNAL, f"failed to get VMI info: {error}") from error
