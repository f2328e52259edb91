"""Kubernetes' own objects → what we know of them, and what we write into a pod.

Only members that networking asks for are read; of an object the size of a pod that is a small part.

Invariant: an object that can be read gives a value; one of the wrong shape gives `BadRecord`, never a crash.
"""

from __future__ import annotations

from adapters.records.custom_names import ObjectKey
from adapters.records.members import BadRecord, Members
from domain.json_text import dumps, parse
from domain.workload.pod import ContainerPort, Namespace, OwnerReference, Pod, VirtualMachineObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from domain.json_text import Json
    from domain.workload.endpoint import WorkloadEndpoint
    from ports.datastore import Revision

    Read = TypeVar("Read")

CONTAINER_ID = "cni.projectcalico.org/containerID"
POD_IP = "cni.projectcalico.org/podIP"
POD_IPS = "cni.projectcalico.org/podIPs"


def read_object(source: Json, kind: str, read: Callable[[Members, Members], Read]) -> Read:
    """What `read` makes of an object (JSON text or its value), given its members and those of its metadata.

    BadRecord, naming kind, namespace and name, when it raises ValueError.
    """
    named = ""
    try:
        members = Members(parse(source) if isinstance(source, str) else source)
        metadata = members.inner("metadata")
        name, namespace = metadata.peek("name"), metadata.peek("namespace")
        named = f"{namespace}/{name}" if namespace else f"{name}"
        return read(members, metadata)
    except ValueError as fault:
        raise BadRecord(ObjectKey(kind, named), str(fault)) from fault


def decode_pod(source: Json) -> Pod:
    """A pod as GET answers. BadRecord when its members have other types than a pod's."""
    return read_object(source, "Pod", _pod)


def _pod(members: Members, metadata: Members) -> Pod:
    spec, status = members.inner("spec"), members.inner("status")
    containers = [*spec.objects("containers"), *spec.objects("initContainers")]
    ips = tuple([one.text("ip") for one in status.objects("podIPs")])
    only = status.text("podIP")
    return Pod(
        name=metadata.text("name"),
        namespace=metadata.text("namespace"),
        uid=metadata.text("uid"),
        revision=metadata.text("resourceVersion"),
        created=metadata.text("creationTimestamp"),
        generate_name=metadata.text("generateName"),
        labels=metadata.labels("labels"),
        annotations=metadata.labels("annotations"),
        owners=_owners(metadata),
        deleting=bool(metadata.text("deletionTimestamp")),
        node=spec.text("nodeName"),
        service_account=spec.text("serviceAccountName"),
        host_network=spec.flag("hostNetwork"),
        ports=tuple([_port(port) for container in containers for port in container.objects("ports")]),
        phase=status.text("phase"),
        ips=ips or ((only,) if only else ()),
    )


def _port(port: Members) -> ContainerPort:
    return ContainerPort(
        port=port.number("containerPort"),
        name=port.text("name"),
        protocol=port.text("protocol"),
        host_port=port.number("hostPort"),
        host_ip=port.text("hostIP"),
    )


def _owners(metadata: Members) -> tuple[OwnerReference, ...]:
    return tuple(
        [
            OwnerReference(
                one.text("apiVersion"), one.text("kind"), one.text("name"), one.text("uid"), one.flag("controller")
            )
            for one in metadata.objects("ownerReferences")
        ]
    )


def decode_namespace(source: Json) -> Namespace:
    """A namespace as GET answers."""
    return read_object(source, "Namespace", _namespace)


def _namespace(_members: Members, metadata: Members) -> Namespace:
    return Namespace(metadata.text("name"), metadata.labels("labels"), metadata.labels("annotations"))


def decode_virtual_machine_object(source: Json) -> VirtualMachineObject:
    """A VirtualMachine or a VirtualMachineInstance as GET answers."""
    return read_object(source, "VirtualMachine", _virtual_machine_object)


def _virtual_machine_object(_members: Members, metadata: Members) -> VirtualMachineObject:
    return VirtualMachineObject(
        name=metadata.text("name"),
        namespace=metadata.text("namespace"),
        uid=metadata.text("uid"),
        deleting=bool(metadata.text("deletionTimestamp")),
        owners=_owners(metadata),
    )


def endpoint_patch(endpoint: WorkloadEndpoint, uid: str = "") -> str:
    """The strategic merge patch of a pod's status that stores its endpoint: container and addresses.

    Without addresses it changes nothing. It names no version of the pod, since nobody else writes these annotations,
    but the pod's uid ("" for any): one that is made again has the same name.
    """
    metadata: dict[str, Json] = {}
    if endpoint.ip_networks:
        addresses = [str(address.host_cidr) for address in endpoint.addresses]
        metadata["annotations"] = {
            CONTAINER_ID: endpoint.container_id,
            POD_IP: addresses[0],
            POD_IPS: ",".join(addresses),
        }
    if uid:
        metadata["uid"] = uid
    return dumps({"metadata": metadata})


def endpoint_removal_patch(revision: Revision, uid: str) -> str:
    """The patch that deletes the endpoint of exactly that version of that pod ("" for any).

    The container's ID stays, so that a later DEL of another sandbox is told apart.
    """
    metadata: dict[str, Json] = {"annotations": {POD_IP: "", POD_IPS: ""}}
    metadata |= {name: text for name, text in (("resourceVersion", revision), ("uid", uid)) if text}
    return dumps({"metadata": metadata})
