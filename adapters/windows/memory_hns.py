"""HNS over plain dicts: what the service promises about networks, endpoints and namespaces, without Windows.

Read this before the bindings (`hns_library`). Both generations show the same objects, each in its own documents. Any
operation can be told to fail (`fails`), and `said` has what was asked, in order.

Invariant: it refuses what the service refuses, with the same HRESULT, as far as a plan can run into it; the contract
suite that the bindings pass holds for it too.
"""

from __future__ import annotations

from adapters.windows.memory_views import (
    NOWHERE,
    SCHEMA,
    newer_endpoint,
    newer_network,
    newer_policy,
    older_endpoint,
)
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
    from typing import Any

    from adapters.windows.seam import Document

_TYPES = ("L2Bridge", "Overlay")
_NOT_FOUND = {NETWORK: NETWORK_NOT_FOUND, ENDPOINT: ENDPOINT_NOT_FOUND, NAMESPACE: ELEMENT_NOT_FOUND}


class MemoryHns(Hns):
    """`management` is the address that a network gets from its host, "" for none.

    By id: `networks` as the older generation shows them, `endpoints` as the newer one does, and for each of the
    `namespaces`, and of the `containers` that run, the ids of its endpoints. `on_host` are those that the host has.
    """

    def __init__(self, management: str = "10.11.128.13") -> None:
        self.management = management
        self.networks: dict[str, Document] = {}
        self.endpoints: dict[str, Document] = {}
        self.namespaces: dict[str, list[str]] = {}
        self.containers: dict[str, list[str]] = {}
        self.on_host: list[str] = []
        self.said: list[tuple[str, str]] = []
        self._added: dict[str, list[Document]] = {}  # to networks, by the newer generation
        self._failures: list[tuple[str, int, int, str]] = []
        self._number = 0

    def fails(self, operation: str, *, hresult: int = FAILED, times: int = 1, record: str = "") -> None:
        """The next operations whose name begins so fail: `POST /endpoints/`, `create Endpoint`, `attach_container`."""
        self._failures.append((operation, hresult, times, record))

    def run_container(self, name: str) -> None:
        self.containers[name] = []

    def make_namespace(self) -> str:
        identity = self._identity()
        self.namespaces[identity] = []
        return identity

    # The older generation.

    def call(self, method: str, path: str, request: Document | None = None) -> Any:
        self._begin(f"{method} {path}", request)
        _, objects, *rest = path.split("/")
        kind = {"networks": NETWORK, "endpoints": ENDPOINT}[objects]
        identity, verb = [*rest, "", ""][:2]
        if not identity:
            return self._listed(kind) if method == "GET" else self._post(kind, _copied(request or {}))
        known = self._known(kind, identity)
        if method == "DELETE":
            self._remove(kind, known)
            return {}
        return self._older(kind, known) if method == "GET" else self._change(known, verb, _copied(request or {}))

    def _listed(self, kind: str) -> list[Document]:
        return [self._older(kind, identity) for identity in self._of(kind)]

    def _post(self, kind: str, request: Document) -> Document:
        if kind == NETWORK:
            return self._older(kind, self._make_network(request))
        return self._older(kind, self._make_endpoint(newer_endpoint(request), request.get("VirtualNetwork", "")))

    def _change(self, endpoint: str, verb: str, request: Document) -> Document:
        if verb == "attach":
            self.on_host.append(endpoint)
        elif verb == "detach":
            self.containers.get(request["ContainerId"], []).remove(endpoint)
        else:
            self.endpoints[endpoint]["Policies"] = [newer_policy(policy) for policy in request.get("Policies") or []]
        return self._older(ENDPOINT, endpoint)

    def _older(self, kind: str, identity: str) -> Document:
        if kind == NETWORK:
            return _copied(self.networks[identity])
        shared = [name for name, held in self.containers.items() if identity in held]
        return _copied({**older_endpoint(self.endpoints[identity]), "SharedContainers": shared})

    def attach_container(self, container: str, endpoint: str) -> None:
        self._begin("attach_container", {"container": container, "endpoint": endpoint})
        if container not in self.containers:
            raise hns_error("HcsOpenComputeSystem", SYSTEM_NOT_FOUND)
        known = self._known(ENDPOINT, endpoint)
        if known not in self.containers[container]:
            self.containers[container].append(known)

    # The newer generation.

    def enumerate(self, kind: str, query: Document) -> tuple[str, ...]:
        self._begin(f"enumerate {kind}", query)
        wanted = _parsed(query["Filter"]) if query.get("Filter") else {}
        shown = [self._newer(kind, identity) for identity in self._of(kind)]
        return tuple([one["ID"] for one in shown if all(one.get(name) == item for name, item in wanted.items())])

    def query(self, kind: str, identity: str, query: Document) -> Document:
        self._begin(f"query {kind}", query)
        return self._newer(kind, self._known(kind, identity))

    def create(self, kind: str, settings: Document, network: str = "") -> Document:
        self._begin(f"create {kind}", settings)
        made = self.make_namespace() if kind == NAMESPACE else self._make_endpoint(_copied(settings), network)
        return self._newer(kind, made)

    def modify(self, kind: str, identity: str, request: Document) -> None:
        self._begin(f"modify {kind}", request)
        known = self._known(kind, identity)
        settings = _copied(request["Settings"])
        if kind == NAMESPACE:
            self._move(known, request["RequestType"], self._known(ENDPOINT, settings["EndpointId"]))
        elif kind == NETWORK:
            self._added.setdefault(known, []).extend(settings["Policies"])
        else:
            self.endpoints[known].setdefault("Policies", []).extend(settings["Policies"])

    def _move(self, namespace: str, request: str, endpoint: str) -> None:
        if request == "Remove":
            self.namespaces[namespace].remove(endpoint)
        elif any(endpoint in held for held in self.namespaces.values()):
            raise hns_error("HcnModifyNamespace", ENDPOINT_ATTACHED)
        else:
            self.namespaces[namespace].append(endpoint)

    def delete(self, kind: str, identity: str) -> None:
        self._begin(f"delete {kind}", {})
        self._remove(kind, self._known(kind, identity))

    def _newer(self, kind: str, identity: str) -> Document:
        if kind == NETWORK:
            return _copied(newer_network(self.networks[identity], self._added.get(identity, [])))
        if kind == NAMESPACE:
            there = [{"Type": "Endpoint", "Data": {"Id": one}} for one in self.namespaces[identity]]
            return {"ID": identity, "Type": "Host", "Resources": there, "SchemaVersion": SCHEMA}
        home = next((name for name, held in self.namespaces.items() if identity in held), NOWHERE)
        return _copied({**self.endpoints[identity], "HostComputeNamespace": home, "SchemaVersion": SCHEMA})

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

    def _make_network(self, document: Document) -> str:
        if any(one["Name"].lower() == document["Name"].lower() for one in self.networks.values()):
            raise hns_error("HNSCall POST /networks/", NETWORK_EXISTS)
        if document["Type"] not in _TYPES:
            raise hns_error("HNSCall POST /networks/", FAILED, "Invalid network type")
        identity = self._identity()
        self.networks[identity] = {**document, "ID": identity, "ManagementIP": self.management}
        return identity

    def _make_endpoint(self, document: Document, network: str) -> str:
        known = self._known(NETWORK, network)
        text = document["IpConfigurations"][0]["IpAddress"]
        others = [one for one in self.endpoints.values() if one["HostComputeNetwork"] == known]
        inside = any(
            Address.parse(text) in Cidr.parse(subnet["AddressPrefix"]) for subnet in self.networks[known]["Subnets"]
        )
        if not inside or any(one["IpConfigurations"][0]["IpAddress"] == text for one in others):
            raise hns_error("HcnCreateEndpoint", ADDRESS_TAKEN)
        identity = document.get("ID", "").lower() or self._identity()
        mac = document.get("MacAddress") or f"00-15-5D-00-{self._number >> 8:02X}-{self._number & 0xFF:02X}"
        self.endpoints[identity] = {**document, "ID": identity, "HostComputeNetwork": known, "MacAddress": mac}
        return identity

    def _remove(self, kind: str, identity: str) -> None:
        if kind == NETWORK:
            for endpoint in [one for one in self.endpoints.values() if one["HostComputeNetwork"] == identity]:
                self._remove(ENDPOINT, endpoint["ID"])
            self._added.pop(identity, None)
        for held in (*self.namespaces.values(), *self.containers.values(), self.on_host):
            held[:] = [one for one in held if one != identity]
        del self._of(kind)[identity]


def _copied(document: Document) -> Document:
    """As it would come back over the wire."""
    return _parsed(dumps(document))


def _parsed(text: str) -> Document:
    document = parse(text)
    return document if isinstance(document, dict) else {}
