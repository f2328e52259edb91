"""HNS over plain dicts: what the service promises about networks, endpoints and namespaces, without Windows.

Read this before the DLLs' side (`native`). Both generations show the same objects, each in its own documents. Any
operation can be told to fail (`fails`), and `said` has what was asked, in order.

Invariant: it refuses what the service refuses, with the same HRESULT, as far as a plan can run into it; the contract
suite that the bindings pass holds for it too.
"""

from __future__ import annotations

from adapters.windows.seam import (
    ADDRESS_TAKEN,
    ELEMENT_NOT_FOUND,
    ENDPOINT,
    ENDPOINT_ATTACHED,
    ENDPOINT_NOT_FOUND,
    FAILED,
    NAMESPACE,
    NETWORK,
    NETWORK_EXISTS,
    NETWORK_NOT_FOUND,
    SYSTEM_NOT_FOUND,
    Hns,
    hns_error,
)
from domain.ipam.address import Address, Cidr
from domain.json_text import dumps, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from adapters.windows.seam import Document

_SCHEMA: Document = {"Major": 2, "Minor": 0}
_NOT_FOUND = {NETWORK: NETWORK_NOT_FOUND, ENDPOINT: ENDPOINT_NOT_FOUND, NAMESPACE: ELEMENT_NOT_FOUND}


class MemoryHns(Hns):
    """`management` is the address that a network gets from its host, "" for none; `containers` are those that run.

    `networks` and `endpoints` hold documents of the older generation by id, with what only the newer one shows under
    `newer`; `namespaces` the ids of the endpoints in each.
    """

    def __init__(self) -> None:
        self.networks: dict[str, Document] = {}
        self.endpoints: dict[str, Document] = {}
        self.namespaces: dict[str, list[str]] = {}
        self.containers: dict[str, list[str]] = {}
        self.management = "10.11.128.13"
        self.said: list[tuple[str, str]] = []
        self._failures: list[tuple[str, int, int, str]] = []
        self._number = 0

    def fails(self, operation: str, *, hresult: int = FAILED, times: int = 1, record: str = "") -> None:
        """The next operations whose name begins so fail: `POST /endpoints/`, `create Endpoint`, `attach_container`."""
        self._failures.append((operation, hresult, times, record))

    def make_namespace(self) -> str:
        identity = self._identity()
        self.namespaces[identity] = []
        return identity

    def run_container(self, name: str) -> None:
        self.containers[name] = []

    # The older generation.

    def call(self, method: str, path: str, request: Document | None = None) -> Any:
        self._begin(f"{method} {path}", request)
        _, kind, *rest = path.split("/")
        identity, verb = [*rest, "", ""][:2]
        objects = {"networks": self.networks, "endpoints": self.endpoints}[kind]
        if not identity:
            if method == "GET":
                return [_older(one) for one in objects.values()]
            make = self._make_network if kind == "networks" else self._make_endpoint
            return _older(make(_copied(request or {})))
        what = NETWORK if kind == "networks" else ENDPOINT
        found = self._find(what, identity)
        if method == "GET":
            return _older(found)
        if method == "DELETE":
            self._remove(what, found)
            return {}
        return self._change(found, verb, request or {})

    def _change(self, endpoint: Document, verb: str, request: Document) -> Document:
        if verb == "attach":
            endpoint["Attached"] = request["SystemType"]
        elif verb == "detach":
            self.containers.get(request["ContainerId"], []).remove(endpoint["ID"])
        else:
            endpoint["Policies"] = _copied(request).get("Policies", [])
        return _older(endpoint)

    def attach_container(self, container: str, endpoint: str) -> None:
        self._begin("attach_container", {"container": container, "endpoint": endpoint})
        if container not in self.containers:
            raise hns_error("HcsOpenComputeSystem", SYSTEM_NOT_FOUND)
        self._find(ENDPOINT, endpoint)
        if endpoint not in self.containers[container]:
            self.containers[container].append(endpoint)

    # The newer generation.

    def enumerate(self, kind: str, query: Document) -> tuple[str, ...]:
        self._begin(f"enumerate {kind}", query)
        wanted = _parsed(query["Filter"]) if query.get("Filter") else {}
        shown = [self._shown(kind, identity) for identity in self._of(kind)]
        return tuple([one["ID"] for one in shown if all(one.get(name) == item for name, item in wanted.items())])

    def query(self, kind: str, identity: str, query: Document) -> Document:
        self._begin(f"query {kind}", query)
        return self._shown(kind, self._known(kind, identity))

    def create(self, kind: str, settings: Document, network: str = "") -> Document:
        self._begin(f"create {kind}", settings)
        settings = _copied(settings)
        if kind == NAMESPACE:
            return self._shown(kind, self.make_namespace())
        if kind == NETWORK:
            made = self._make_network(
                {**settings, "Subnets": [_older_subnet(one) for ipam in settings["Ipams"] for one in ipam["Subnets"]]}
            )
        else:
            address = settings["IpConfigurations"][0]
            older = {"VirtualNetwork": network, "Name": settings["Name"], "MacAddress": settings.get("MacAddress", "")}
            older |= {"IPAddress": address["IpAddress"], "PrefixLength": address["PrefixLength"]}
            made = self._make_endpoint(older)
        made["newer"] = settings
        return self._shown(kind, made["ID"])

    def modify(self, kind: str, identity: str, request: Document) -> None:
        self._begin(f"modify {kind}", request)
        identity = self._known(kind, identity)
        settings = _copied(request["Settings"])
        if kind != NAMESPACE:
            newer = self._of(kind)[identity].setdefault("newer", {})
            newer["Policies"] = [*newer.get("Policies", []), *settings["Policies"]]
            return
        endpoint = self._known(ENDPOINT, settings["EndpointId"])
        there = self.namespaces[identity]
        if request["RequestType"] == "Remove":
            there.remove(endpoint)
        elif any(endpoint in others for others in self.namespaces.values()):
            raise hns_error("HcnModifyNamespace", ENDPOINT_ATTACHED)
        else:
            there.append(endpoint)

    def delete(self, kind: str, identity: str) -> None:
        self._begin(f"delete {kind}", {})
        identity = self._known(kind, identity)
        if kind == NAMESPACE:
            del self.namespaces[identity]
        else:
            self._remove(kind, self._of(kind)[identity])

    # Both.

    def _begin(self, operation: str, request: Document | None) -> None:
        self.said.append((operation, dumps(request) if request else ""))
        for at, (name, hresult, times, record) in enumerate(self._failures):
            if operation.startswith(name):
                self._failures[at : at + 1] = [(name, hresult, times - 1, record)] if times > 1 else []
                raise hns_error(operation, hresult, record)

    def _identity(self) -> str:
        self._number += 1
        return f"{self._number:08x}-0000-4000-8000-00155d000000"

    def _of(self, kind: str) -> Any:
        return {NETWORK: self.networks, ENDPOINT: self.endpoints, NAMESPACE: self.namespaces}[kind]

    def _known(self, kind: str, identity: str) -> str:
        """The id as we spell it."""
        spelt = identity.strip("{}").lower()
        if spelt not in self._of(kind):
            raise hns_error(f"open {kind} {identity}", _NOT_FOUND[kind])
        return spelt

    def _find(self, kind: str, identity: str) -> Document:
        found: Document = self._of(kind)[self._known(kind, identity)]
        return found

    def _make_network(self, document: Document) -> Document:
        if any(one["Name"] == document["Name"] for one in self.networks.values()):
            raise hns_error("create network", NETWORK_EXISTS)
        document |= {"ID": self._identity(), "ManagementIP": self.management}
        self.networks[document["ID"]] = document
        return document

    def _make_endpoint(self, document: Document) -> Document:
        network = self._find(NETWORK, document.get("VirtualNetwork", ""))
        address = Address.parse(document["IPAddress"])
        inside = any(address in Cidr.parse(subnet["AddressPrefix"]) for subnet in network["Subnets"])
        if not inside or any(one["IPAddress"] == str(address) for one in self._endpoints_of(network)):
            raise hns_error("create endpoint", ADDRESS_TAKEN)
        document["ID"] = self._identity()
        document["VirtualNetwork"] = network["ID"]
        document["MacAddress"] = document.get("MacAddress") or f"00-15-5D-00-{self._number >> 8:02X}-{self._number:02X}"
        self.endpoints[document["ID"]] = document
        return document

    def _endpoints_of(self, network: Document) -> Iterator[Document]:
        return (one for one in self.endpoints.values() if one["VirtualNetwork"] == network["ID"])

    def _remove(self, kind: str, document: Document) -> None:
        if kind == NETWORK:
            for endpoint in list(self._endpoints_of(document)):
                self._remove(ENDPOINT, endpoint)
        for holders in (self.namespaces, self.containers):
            for held in holders.values():
                held[:] = [one for one in held if one != document["ID"]]
        del self._of(kind)[document["ID"]]

    def _shown(self, kind: str, identity: str) -> Document:
        """As the newer generation shows it."""
        if kind == NAMESPACE:
            there = [{"Type": "Endpoint", "Data": {"Id": one}} for one in self.namespaces[identity]]
            return {"ID": identity, "Type": "Host", "Resources": there, "SchemaVersion": _SCHEMA}
        older = self._of(kind)[identity]
        shown = _copied({"SchemaVersion": _SCHEMA, **older.get("newer", {}), "ID": identity, "Name": older["Name"]})
        if kind == NETWORK:
            shown["Type"] = older["Type"]
            shown["Policies"] = [*shown.get("Policies", []), *_own_policies(older)]
            return shown
        home = next((name for name, held in self.namespaces.items() if identity in held), "")
        shown |= {"HostComputeNetwork": older["VirtualNetwork"], "MacAddress": older["MacAddress"]}
        shown["HostComputeNamespace"] = home or "00000000-0000-0000-0000-000000000000"
        shown["IpConfigurations"] = [{"IpAddress": older["IPAddress"], "PrefixLength": older.get("PrefixLength", 0)}]
        return shown


def _own_policies(network: Document) -> list[Document]:
    """Those that an overlay gets from the service."""
    if network["Type"] != "Overlay":
        return []
    address = {"Type": "ProviderAddress", "Settings": {"ProviderAddress": network["ManagementIP"]}}
    return [{"Type": "DrMacAddress", "Settings": {"Address": "00-15-5D-AA-BB-CC"}}, address]


def _older(document: Document) -> Document:
    return _copied({name: item for name, item in document.items() if name != "newer"})


def _older_subnet(subnet: Document) -> Document:
    return {"AddressPrefix": subnet["IpAddressPrefix"], "GatewayAddress": subnet["Routes"][0]["NextHop"]}


def _copied(document: Document) -> Document:
    """As it would come back over the wire."""
    return _parsed(dumps(document))


def _parsed(text: str) -> Document:
    document = parse(text)
    return document if isinstance(document, dict) else {}
