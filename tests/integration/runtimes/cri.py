"""The Container Runtime Interface, version 1, as far as tests call it.

    with Cri("/path/to.sock") as runtime:
        pod = runtime.call("RunPodSandbox", config={...}, seconds=10)["pod_sandbox_id"]

Requests and replies are dicts. The table below has the fields that are used; others that a runtime sends are passed
over, so a newer one does not matter. Invariant: numbers and types are those of runtime.v1.
"""

from __future__ import annotations

from typing import Any, Self

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

_PACKAGE = "runtime.v1"
_TYPES = {"bytes": 12, "string": 9, "int64": 3, "int32": 5, "uint32": 13, "bool": 8}
_STRING_MAP = "map"
# message: {field: (number, type)}; a type in a list is repeated, one that is a message's name is that message.
_MESSAGES: dict[str, dict[str, tuple[int, Any]]] = {
    "VersionRequest": {"version": (1, "string")},
    "VersionResponse": {"runtime_name": (2, "string"), "runtime_version": (3, "string")},
    "StatusRequest": {"verbose": (1, "bool")},
    "StatusResponse": {"status": (1, "RuntimeStatus"), "info": (2, "map")},
    "RuntimeStatus": {"conditions": (1, ["RuntimeCondition"])},
    "RuntimeCondition": {
        "type": (1, "string"),
        "status": (2, "bool"),
        "reason": (3, "string"),
        "message": (4, "string"),
    },
    "RunPodSandboxRequest": {"config": (1, "PodSandboxConfig")},
    "RunPodSandboxResponse": {"pod_sandbox_id": (1, "string")},
    "PodSandboxConfig": {
        "metadata": (1, "PodSandboxMetadata"),
        "hostname": (2, "string"),
        "log_directory": (3, "string"),
        "dns_config": (4, "DNSConfig"),
        "port_mappings": (5, ["PortMapping"]),
        "labels": (6, _STRING_MAP),
        "annotations": (7, _STRING_MAP),
        "linux": (8, "LinuxPodSandboxConfig"),
    },
    "PodSandboxMetadata": {
        "name": (1, "string"),
        "uid": (2, "string"),
        "namespace": (3, "string"),
        "attempt": (4, "uint32"),
    },
    "DNSConfig": {"servers": (1, ["string"]), "searches": (2, ["string"]), "options": (3, ["string"])},
    # TCP is 0
    "PortMapping": {
        "protocol": (1, "int32"),
        "container_port": (2, "int32"),
        "host_port": (3, "int32"),
        "host_ip": (4, "string"),
    },
    "LinuxPodSandboxConfig": {"cgroup_parent": (1, "string")},
    "StopPodSandboxRequest": {"pod_sandbox_id": (1, "string")},
    "StopPodSandboxResponse": {},
    "RemovePodSandboxRequest": {"pod_sandbox_id": (1, "string")},
    "RemovePodSandboxResponse": {},
    "ListPodSandboxRequest": {},
    "ListPodSandboxResponse": {"items": (1, ["PodSandbox"])},
    "PodSandbox": {"id": (1, "string"), "metadata": (2, "PodSandboxMetadata"), "state": (3, "int32")},
    "PodSandboxStatusRequest": {"pod_sandbox_id": (1, "string")},
    "PodSandboxStatusResponse": {"status": (1, "PodSandboxStatus")},
    "PodSandboxStatus": {"id": (1, "string"), "state": (3, "int32"), "network": (5, "PodSandboxNetworkStatus")},
    "PodSandboxNetworkStatus": {"ip": (1, "string"), "additional_ips": (2, ["PodIP"])},
    "PodIP": {"ip": (1, "string")},
    "CreateContainerRequest": {
        "pod_sandbox_id": (1, "string"),
        "config": (2, "ContainerConfig"),
        "sandbox_config": (3, "PodSandboxConfig"),
    },
    "ContainerConfig": {
        "metadata": (1, "ContainerMetadata"),
        "image": (2, "ImageSpec"),
        "command": (3, ["string"]),
        "linux": (15, "LinuxContainerConfig"),
    },
    "ContainerMetadata": {"name": (1, "string"), "attempt": (2, "uint32")},
    "ImageSpec": {"image": (1, "string")},
    "LinuxContainerConfig": {"security_context": (2, "LinuxContainerSecurityContext")},
    "LinuxContainerSecurityContext": {},
    "CreateContainerResponse": {"container_id": (1, "string")},
    "StartContainerRequest": {"container_id": (1, "string")},
    "StartContainerResponse": {},
    "ExecSyncRequest": {"container_id": (1, "string"), "cmd": (2, ["string"]), "timeout": (3, "int64")},
    "ExecSyncResponse": {"stdout": (1, "bytes"), "stderr": (2, "bytes"), "exit_code": (3, "int32")},
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="cri_as_called.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            repeated, one = isinstance(kind, list), kind[0] if isinstance(kind, list) else kind
            made = message.field.add(name=field, number=number, label=3 if repeated or one == _STRING_MAP else 1)
            if one == _STRING_MAP:
                entry = message.nested_type.add(name=f"{field.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, type=9, label=1)
                entry.field.add(name="value", number=2, type=9, label=1)
                made.type, made.type_name = 11, f".{_PACKAGE}.{name}.{entry.name}"
            elif one in _TYPES:
                made.type = _TYPES[one]
            else:
                made.type, made.type_name = 11, f".{_PACKAGE}.{one}"
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


class CriRefused(Exception):
    """What the runtime says when it does not do it; `code` is gRPC's, such as DEADLINE_EXCEEDED."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


class Cri:
    def __init__(self, socket: str) -> None:
        self._socket = socket

    def __enter__(self) -> Self:
        self._channel = grpc.insecure_channel(
            f"unix://{self._socket}",
            # Back at once after the runtime was away.
            options=[
                ("grpc.max_reconnect_backoff_ms", 200),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.initial_reconnect_backoff_ms", 100),
            ],
        )
        return self

    def __exit__(self, *_exc: object) -> None:
        self._channel.close()

    def call(self, verb: str, *, seconds: float = 60, **request: Any) -> dict[str, Any]:
        method = self._channel.unary_unary(
            f"/{_PACKAGE}.RuntimeService/{verb}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_message(f"{verb}Response").FromString,
        )
        try:
            reply = method(json_format.ParseDict(request, _message(f"{verb}Request")()), timeout=seconds)
        except grpc.RpcError as error:
            raise CriRefused(error.code().name, error.details() or "") from None
        return dict(
            json_format.MessageToDict(
                reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
        )
