from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AddRequest(_message.Message):
    __slots__ = ("interface_name", "netns", "desired_host_interface_name", "settings", "container_ips", "container_routes", "workload", "dataplane_options")
    class DataplaneOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INTERFACE_NAME_FIELD_NUMBER: _ClassVar[int]
    NETNS_FIELD_NUMBER: _ClassVar[int]
    DESIRED_HOST_INTERFACE_NAME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_IPS_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_ROUTES_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    DATAPLANE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    interface_name: str
    netns: str
    desired_host_interface_name: str
    settings: ContainerSettings
    container_ips: _containers.RepeatedCompositeFieldContainer[IPConfig]
    container_routes: _containers.RepeatedScalarFieldContainer[str]
    workload: WorkloadIDs
    dataplane_options: _containers.ScalarMap[str, str]
    def __init__(self, interface_name: _Optional[str] = ..., netns: _Optional[str] = ..., desired_host_interface_name: _Optional[str] = ..., settings: _Optional[_Union[ContainerSettings, _Mapping]] = ..., container_ips: _Optional[_Iterable[_Union[IPConfig, _Mapping]]] = ..., container_routes: _Optional[_Iterable[str]] = ..., workload: _Optional[_Union[WorkloadIDs, _Mapping]] = ..., dataplane_options: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ContainerSettings(_message.Message):
    __slots__ = ("allow_ip_forwarding", "mtu")
    ALLOW_IP_FORWARDING_FIELD_NUMBER: _ClassVar[int]
    MTU_FIELD_NUMBER: _ClassVar[int]
    allow_ip_forwarding: bool
    mtu: int
    def __init__(self, allow_ip_forwarding: bool = ..., mtu: _Optional[int] = ...) -> None: ...

class IPConfig(_message.Message):
    __slots__ = ("address", "gateway")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    address: str
    gateway: str
    def __init__(self, address: _Optional[str] = ..., gateway: _Optional[str] = ...) -> None: ...

class WorkloadIDs(_message.Message):
    __slots__ = ("name", "namespace", "labels", "annotations", "endpoint", "node", "orchestrator", "pod", "ports")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ORCHESTRATOR_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    namespace: str
    labels: _containers.ScalarMap[str, str]
    annotations: _containers.ScalarMap[str, str]
    endpoint: str
    node: str
    orchestrator: str
    pod: str
    ports: _containers.RepeatedCompositeFieldContainer[Port]
    def __init__(self, name: _Optional[str] = ..., namespace: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., endpoint: _Optional[str] = ..., node: _Optional[str] = ..., orchestrator: _Optional[str] = ..., pod: _Optional[str] = ..., ports: _Optional[_Iterable[_Union[Port, _Mapping]]] = ...) -> None: ...

class Port(_message.Message):
    __slots__ = ("name", "protocol", "port", "host_port", "host_ip")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    HOST_PORT_FIELD_NUMBER: _ClassVar[int]
    HOST_IP_FIELD_NUMBER: _ClassVar[int]
    name: str
    protocol: str
    port: int
    host_port: int
    host_ip: str
    def __init__(self, name: _Optional[str] = ..., protocol: _Optional[str] = ..., port: _Optional[int] = ..., host_port: _Optional[int] = ..., host_ip: _Optional[str] = ...) -> None: ...

class AddReply(_message.Message):
    __slots__ = ("successful", "error_message", "host_interface_name", "container_mac")
    SUCCESSFUL_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HOST_INTERFACE_NAME_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_MAC_FIELD_NUMBER: _ClassVar[int]
    successful: bool
    error_message: str
    host_interface_name: str
    container_mac: str
    def __init__(self, successful: bool = ..., error_message: _Optional[str] = ..., host_interface_name: _Optional[str] = ..., container_mac: _Optional[str] = ...) -> None: ...

class DelRequest(_message.Message):
    __slots__ = ("interface_name", "netns", "dataplane_options")
    class DataplaneOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INTERFACE_NAME_FIELD_NUMBER: _ClassVar[int]
    NETNS_FIELD_NUMBER: _ClassVar[int]
    DATAPLANE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    interface_name: str
    netns: str
    dataplane_options: _containers.ScalarMap[str, str]
    def __init__(self, interface_name: _Optional[str] = ..., netns: _Optional[str] = ..., dataplane_options: _Optional[_Mapping[str, str]] = ...) -> None: ...

class DelReply(_message.Message):
    __slots__ = ("successful", "error_message")
    SUCCESSFUL_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    successful: bool
    error_message: str
    def __init__(self, successful: bool = ..., error_message: _Optional[str] = ...) -> None: ...
