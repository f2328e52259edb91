"""What we ask of Windows about networks: the seam between the dataplane and the DLLs of the Host Networking Service.

Both of its generations are in use at the same time and see the same objects:

- v1, `HNSCall` of vmcompute.dll, is REST in one function: a method, a path, a JSON text. Networks and the host's own
  endpoints are made with it (`call`), and dockershim's containers are connected with it (`attach_container`).
- v2, `Hcn*` of computenetwork.dll, has functions for each kind of object. Pods whose network namespace is an object of
  its own are connected with it.

Documents are JSON as Microsoft publishes its schema; who implements this turns them into texts and back
(`domain.json_text`). Ids are GUIDs without braces; their case says nothing (`same_id`).

v1: `GET /networks/` and `/endpoints/` are answered with a list, `GET /networks/<id>`, `POST /networks/` and
`POST /endpoints/<id>` (an update) with one object, `DELETE` with anything. `POST /endpoints/<id>/attach` is
`{"SystemType":"Host","CompartmentId":1}`. What travels around that (`Success`, `Output`) is not seen above the seam.

    network    {"ID","Name","Type","ManagementIP","Subnets":[{"AddressPrefix","GatewayAddress",
                "Policies":[{"Type":"VSID","VSID":4096}]}]}
    endpoint   {"ID","Name","VirtualNetwork","IPAddress","MacAddress","GatewayAddress","PrefixLength","DNSSuffix",
                "DNSServerList":"a,b","IsRemoteEndpoint","Policies":[{"Type":"OutBoundNAT","ExceptionList":[]}]}

v2: each object has `"SchemaVersion":{"Major":2,"Minor":0}`. A query is
`{"SchemaVersion":…,"Flags":0,"Filter":F}`, where F is a JSON text, such as `{"Name":"x"}`, within the text.

    endpoint   {"ID","Name","HostComputeNetwork","HostComputeNamespace","MacAddress",
                "Dns":{"Domain","Search","ServerList","Options"},
                "IpConfigurations":[{"IpAddress","PrefixLength"}],"Routes":[{"NextHop","DestinationPrefix"}],
                "Policies":[{"Type":"OutBoundNAT","Settings":{"Exceptions":[]}}]}
    namespace  {"ID","Type","Resources":[{"Type":"Endpoint","Data":{"Id"}}]}
    a change   {"ResourceType":"Endpoint","RequestType":"Add","Settings":{"EndpointId"}}   of a namespace
               {"ResourceType":"Policy","RequestType":"Add","Settings":{"Policies":[…]}}   of a network or endpoint

Invariant: no handle and no memory of a DLL outlives a verb, whether it succeeds or fails; every refusal is an
`HnsError`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Document: TypeAlias = dict[str, Any]

NETWORK, ENDPOINT, NAMESPACE = "Network", "Endpoint", "Namespace"  # of v2, as its functions spell them

ELEMENT_NOT_FOUND = 0x80070490  # HRESULT_FROM_WIN32(ERROR_NOT_FOUND): what v1 and v2 say of most things
NETWORK_NOT_FOUND = 0x803B0001  # HCN_E_NETWORK_NOT_FOUND
ENDPOINT_NOT_FOUND = 0x803B0002  # HCN_E_ENDPOINT_NOT_FOUND
NETWORK_EXISTS = 0x803B0010  # HCN_E_NETWORK_ALREADY_EXISTS
ENDPOINT_ATTACHED = 0x803B0014  # HCN_E_ENDPOINT_ALREADY_ATTACHED
ADDRESS_TAKEN = 0x803B002F  # HCN_E_ADDR_INVALID_OR_RESERVED
SYSTEM_NOT_FOUND = 0xC037010E  # HCS_E_SYSTEM_NOT_FOUND: there is no such container, not yet or not any more
FAILED = 0x80004005  # E_FAIL: what stands for a v1 answer without a code

_NOT_THERE = (ELEMENT_NOT_FOUND, NETWORK_NOT_FOUND, ENDPOINT_NOT_FOUND, SYSTEM_NOT_FOUND)


class HnsError(Exception):
    """HNS said no. `str()` is the reason as the user reads it: what was asked, the service's words, the HRESULT.

    `hresult` is unsigned. `record` is the service's own account, a JSON text (v2) or a sentence (v1), "" without one.
    """

    def __init__(self, operation: str, hresult: int, record: str = "") -> None:
        said = f": {record}" if record else ""
        super().__init__(f"{operation}{said} (HRESULT 0x{hresult & 0xFFFFFFFF:08X})")
        self.operation = operation
        self.hresult = hresult & 0xFFFFFFFF
        self.record = record


class HnsMissing(HnsError):
    """What was asked about is not there."""


class HnsAbsent(HnsError):
    """This machine has no such service: a DLL, or a function of it, is missing."""

    def __init__(self, operation: str, why: str) -> None:
        super().__init__(operation, 0x8007007F, why)  # HRESULT_FROM_WIN32(ERROR_PROC_NOT_FOUND)


def hns_error(operation: str, hresult: int, record: str = "") -> HnsError:
    """The error for an HRESULT, signed or not."""
    kind = HnsMissing if hresult & 0xFFFFFFFF in _NOT_THERE else HnsError
    return kind(operation, hresult, record)


def same_id(one: str, other: str) -> bool:
    """Whether two GUIDs are the same, in whichever way each is written."""
    return one.strip("{}").lower() == other.strip("{}").lower()


class Hns(ABC):
    """Errors: `HnsError`."""

    @abstractmethod
    def call(self, method: str, path: str, request: Document | None = None) -> Any:
        """v1: the answer's `Output`, None without one. An answer whose `Success` is false is an error with its `Error`
        and `ErrorCode`.
        """

    @abstractmethod
    def attach_container(self, container: str, endpoint: str) -> None:
        """v1: add an endpoint to a container that runs (HcsOpenComputeSystem, HcsModifyComputeSystem with
        `{"ResourceType":"Network","RequestType":"Add","Settings":"<endpoint>"}`). `HnsMissing` without that container.
        """

    @abstractmethod
    def enumerate(self, kind: str, query: Document) -> tuple[str, ...]:
        """v2: the ids of the objects that a query finds."""

    @abstractmethod
    def query(self, kind: str, identity: str, query: Document) -> Document:
        """v2: an object as it is now. `HnsMissing` if there is none."""

    @abstractmethod
    def create(self, kind: str, settings: Document, network: str = "") -> Document:
        """v2: the new object as it is. An endpoint is made in the network of that id."""

    @abstractmethod
    def modify(self, kind: str, identity: str, request: Document) -> None:
        """v2: change an object. `HnsMissing` if there is none."""

    @abstractmethod
    def delete(self, kind: str, identity: str) -> None:
        """v2: `HnsMissing` if there is none."""
