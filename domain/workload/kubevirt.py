"""KubeVirt: which pod runs a virtual machine, which IPAM handle the machine has, and when it is over.

KubeVirt runs a virtual machine in a `virt-launcher-` pod. The machine outlives its pods, and during a live migration
two of them run it, so its addresses are held by a handle of its own that is made of its name.

Invariant: a pod's owner reference decides, with the object of that name and UID; the pod's own name only says where to
look. Two machines have the same handle only if they are one and the same, created anew under its old name.
"""

from __future__ import annotations

from domain.ipam.block import MACHINE_MARK
from domain.value import Value
from domain.workload.annotations import CONTAINER_ID, POD_IP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.workload.pod import OwnerReference, Pod, VirtualMachineObject

LAUNCHER = "virt-launcher-"
MIGRATION = "kubevirt.io/migrationJobUID"
API_VERSION = "kubevirt.io/v1"
INSTANCE, MACHINE = "VirtualMachineInstance", "VirtualMachine"
DEFAULT_NETWORK = "k8s-pod-network"
LONGEST_HANDLE = 128
DIGEST_LENGTH = 43  # of a SHA-256, in base64


class NoSuchMachine(ValueError):
    """Nobody can tell which machine a pod runs, or it can have no handle. `str()` is the text for the user."""


class VirtualMachine(Value):
    """The machine as one of its pods is about to run it, by the name and UID of its VirtualMachineInstance.

    `machine_uid` is that of the VirtualMachine above it, "" without one. `migration` is the UID of the live migration
    that the pod is the target of, "" for a pod that starts the machine.
    """

    namespace: str
    instance_name: str
    instance_uid: str
    machine_uid: str = ""
    migration: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """What the owner of an address says about the machine, beside the pod's own."""
        found = {
            "vmi-name": self.instance_name,
            "vmi-uid": self.instance_uid,
            "vm-uid": self.machine_uid,
            "vmim-uid": self.migration,
        }
        return {name: text for name, text in found.items() if text}


def instance_reference(pod: Pod) -> OwnerReference | None:
    """The VirtualMachineInstance that controls the pod, if one does. NoSuchMachine for a reference that names none."""
    for owner in pod.owners:
        if owner.api_version == API_VERSION and owner.kind == INSTANCE and owner.controller:
            if owner.name and owner.uid:
                return owner
            raise NoSuchMachine(
                f'pod {pod.namespace}/{pod.name} has invalid VMI ownerReference: name="{owner.name}" uid="{owner.uid}"'
            )
    return None


def machine_reference(instance: VirtualMachineObject) -> OwnerReference | None:
    """The VirtualMachine that an instance belongs to; one that was made by itself has none."""
    return next(
        (owner for owner in instance.owners if owner.api_version == API_VERSION and owner.kind == MACHINE), None
    )


def virtual_machine(pod: Pod, instance: VirtualMachineObject, machine: VirtualMachineObject | None) -> VirtualMachine:
    """What the pod runs. NoSuchMachine if its instance is not the one that is there now."""
    reference = instance_reference(pod)
    if reference is None or reference.uid != instance.uid:
        told = reference.uid if reference else ""
        raise NoSuchMachine(f"VMI UID mismatch: pod ownerReference has {told} but VMI resource has {instance.uid}")
    return VirtualMachine(
        pod.namespace,
        reference.name,
        reference.uid,
        machine.uid if machine else "",
        pod.labels.get(MIGRATION, ""),
    )


def is_ending(instance: VirtualMachineObject | None, machine: VirtualMachineObject | None) -> bool:
    """Whether the machine is being deleted, or gone. None: there is no such object.

    A VirtualMachine outlives its instances, so only its own end counts. An instance whose machine is gone goes too.
    """
    if machine is not None:
        return machine.deleting
    return instance is None or instance.deleting or machine_reference(instance) is not None


def has_newer_sandbox(pod: Pod, container_id: str) -> bool:
    """Whether the pod's endpoint is that of another container, as it is when an earlier one's DEL comes late."""
    return bool(pod.annotations.get(POD_IP)) and pod.annotations.get(CONTAINER_ID, "") not in ("", container_id)


def instance_name_in(pod_name: str) -> str:
    """The machine that a launcher's name speaks of, to look there; "" if of none. It is no proof."""
    return pod_name.removeprefix(LAUNCHER).rpartition("-")[0] if pod_name.startswith(LAUNCHER) else ""


def machine_handle(network: str, namespace: str, name: str) -> str:
    """The handle of a machine. NoSuchMachine if it has none, since its name is too long.

    A name that is too long is replaced by its hash, as far as there is room. A network's name may be so short that the
    room is longer than the hash: the original crashes there, and we refuse.
    """
    prefix, suffix = f"{network or DEFAULT_NETWORK}{MACHINE_MARK}", f"{namespace}.{name}"
    length = len(prefix) + len(suffix)
    if length < LONGEST_HANDLE or (length == LONGEST_HANDLE and not suffix.startswith("_")):
        return prefix + suffix
    room = LONGEST_HANDLE - 1 - len(prefix)
    if not 0 < room <= DIGEST_LENGTH:
        raise NoSuchMachine(
            f"the IPAM handle of virtual machine {namespace}/{name} would have {length} characters, "
            f"and no more than {LONGEST_HANDLE} are possible"
        )
    return f"{prefix}_{_digest(suffix)[:room]}"


def machines_named_by(handle: str) -> tuple[tuple[str, str], ...]:
    """(namespace, name) of the machines that a handle can be the one of; none if that cannot be read from it."""
    parts = handle.split(MACHINE_MARK)
    suffixes = [MACHINE_MARK.join(parts[at:]) for at in range(1, len(parts))]  # a network's name may have the mark
    split = [suffix.partition(".") for suffix in suffixes if not suffix.startswith("_")]
    return tuple([(namespace, name) for namespace, _, name in split if namespace and name])


def _digest(text: str) -> str:
    """SHA-256 as base64 for URLs, without padding. C modules alone: `hashlib` and `base64` take longer than an ADD."""
    from binascii import b2a_base64

    try:
        from _sha2 import sha256  # type: ignore[import-not-found]  # CPython's own since 3.12, unknown to typeshed
    except ImportError:  # pragma: no cover - not on every Python
        from _sha256 import sha256  # type: ignore[import-not-found]  # its name in 3.11
    octets: bytes = sha256(text.encode("utf-8", "surrogateescape")).digest()
    return b2a_base64(octets, newline=False).decode().translate({ord("+"): "-", ord("/"): "_", ord("="): None})
