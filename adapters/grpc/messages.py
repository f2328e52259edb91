"""Our words ↔ the messages of cni_dataplane.proto, serialised.

Invariant: pure. What the original sends is sent, quirks included, because services are written for it.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from adapters.grpc import cni_dataplane_pb2 as wire
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from domain.workload.attachment import Attachment
    from domain.workload.endpoint import Port

    Message = TypeVar("Message", wire.AddReply, wire.DelReply)

ADD = "/cni.CniDataplane/Add"
DEL = "/cni.CniDataplane/Del"
_NO_GATEWAY = "<nil>"  # Calico quirk: how Go prints an address that is not there


class Reply(Value):
    """`error` is None for success. The others are of Add only."""

    error: str | None
    host_interface: str = ""
    mac: str = ""


def add_request(attachment: Attachment, options: Mapping[str, str]) -> bytes:
    """ValueError for what the messages cannot carry: texts that are not Unicode, numbers out of range."""
    return wire.AddRequest(
        interface_name=attachment.ifname,
        netns=attachment.netns,
        desired_host_interface_name=attachment.host_name,
        settings=wire.ContainerSettings(allow_ip_forwarding=attachment.allow_ip_forwarding, mtu=attachment.mtu),
        container_ips=_addresses(attachment),
        container_routes=[str(route) for route in attachment.routes],
        workload=_workload(attachment),
        dataplane_options=options,
    ).SerializeToString(deterministic=True)


def _addresses(attachment: Attachment) -> list[wire.IPConfig]:
    gateways = attachment.gateways or (None,) * len(attachment.addresses)
    return [
        wire.IPConfig(address=str(address), gateway=_NO_GATEWAY if gateway is None else str(gateway))
        for address, gateway in zip(attachment.addresses, gateways, strict=True)
    ]


def _workload(attachment: Attachment) -> wire.WorkloadIDs:
    return wire.WorkloadIDs(
        name=attachment.name,
        namespace=attachment.namespace,
        labels=attachment.labels,
        annotations=attachment.annotations,
        endpoint=attachment.endpoint,
        node=attachment.node,
        orchestrator=attachment.orchestrator,
        pod=attachment.pod,
        ports=[_port(port) for port in attachment.ports],
    )


def _port(port: Port) -> wire.Port:
    return wire.Port(
        name=port.name, protocol=port.protocol, port=port.port, host_port=port.host_port, host_ip=port.host_ip
    )


def del_request(netns: str, ifname: str, options: Mapping[str, str]) -> bytes:
    """ValueError as above."""
    return wire.DelRequest(interface_name=ifname, netns=netns, dataplane_options=options).SerializeToString(
        deterministic=True
    )


def read_add_reply(answer: bytes) -> Reply:
    """ValueError for bytes that are no such message."""
    reply = _read(wire.AddReply, answer)
    return Reply(None if reply.successful else reply.error_message, reply.host_interface_name, reply.container_mac)


def read_del_reply(answer: bytes) -> Reply:
    """ValueError as above."""
    reply = _read(wire.DelReply, answer)
    return Reply(None if reply.successful else reply.error_message)


def _read(kind: type[Message], answer: bytes) -> Message:
    try:
        return kind.FromString(answer)
    except DecodeError as error:
        raise ValueError(str(error)) from error
