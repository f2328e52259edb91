"""How each step of a plan is done with HNS and the host's interfaces.

Networks and the host's endpoints are made by the older generation of HNS, as the original makes them: it is what other
parts of Calico on a node look for. A container's endpoint is made by the generation that its namespace is of.

Invariant: what is there as it should be is left alone; an endpoint that could not be finished is gone again.
"""

from __future__ import annotations

from adapters.windows import documents
from adapters.windows.documents import (
    Found,
    endpoint_change,
    identity,
    needs_subnet,
    policy_change,
    policy_settings,
    text,
)
from adapters.windows.objects import Objects
from adapters.windows.seam import ENDPOINT, NAMESPACE, NETWORK, HnsError, HnsMissing, same_id
from domain.ipam.address import Address
from domain.linux.link import parse_mac
from domain.windows.steps import (
    AwaitManagement,
    ConnectContainer,
    EnableForwarding,
    EnsureHostEndpoint,
    EnsureHostRoutes,
    EnsureNetwork,
    EnsureRemoteEndpoint,
)
from ports.errors import Expired, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from adapters.windows.host_interfaces import HostInterfaces
    from adapters.windows.seam import Document, Hns
    from ports.clock import Clock, Deadline
    from ports.log import Log


class Steps:
    """One plan being made true. `doings` has the doing of each kind of action; `mac` is the container's, once it is
    connected.
    """

    def __init__(self, hns: Hns, interfaces: HostInterfaces, clock: Clock, log: Log, deadline: Deadline) -> None:
        self._hns = hns
        self._objects = Objects(hns)
        self._interfaces = interfaces
        self._clock = clock
        self._log = log
        self._deadline = deadline
        self._found = Found()
        self._way_back: Callable[[], object] | None = None
        self.mac = ""
        self.doings: Mapping[type, Callable[[Any], None]] = {
            EnsureNetwork: self._ensure_network,
            AwaitManagement: self._await_management,
            EnsureHostRoutes: self._ensure_host_routes,
            EnsureHostEndpoint: self._ensure_host_endpoint,
            EnsureRemoteEndpoint: self._ensure_remote_endpoint,
            EnableForwarding: self._enable_forwarding,
            ConnectContainer: self._connect,
        }

    def check_time(self, what: str) -> None:
        if self._deadline.passed(self._clock.monotonic()):
            raise Expired(what)

    def _ensure_network(self, action: EnsureNetwork) -> None:
        found = self._objects.network(action.name)
        if found is not None and documents.is_network(found, action):
            return
        if found is not None:
            self._log.warning("Replacing a network of HNS that has another subnet or type", network=action.name)
            self._hns.call("DELETE", f"/networks/{identity(found)}")
        self._hns.call("POST", "/networks/", documents.network(action))

    def _await_management(self, action: AwaitManagement) -> None:
        until = self._deadline.sooner(self._clock.monotonic(), action.limit)
        while True:
            address = text(self._objects.existing_network(action.network), "ManagementIP")
            if address:
                self._found.management = _address(address)
                return
            if until.passed(self._clock.monotonic()):
                raise Refused(f"timed out after {action.limit:g} seconds")
            self._clock.sleep(action.pause)

    def _ensure_host_routes(self, action: EnsureHostRoutes) -> None:
        network = identity(self._objects.existing_network(action.network))
        if policy_settings(self._hns.query(NETWORK, network, documents.query()), "HostRoute") is None:
            self._hns.modify(NETWORK, network, policy_change({"Type": "HostRoute", "Settings": {}}))

    def _ensure_host_endpoint(self, action: EnsureHostEndpoint) -> None:
        network = identity(self._objects.existing_network(action.network))
        found = self._objects.older_endpoint(action.name)
        if found is not None and not _is_endpoint(found, network, action.address):
            self._hns.call("DELETE", f"/endpoints/{identity(found)}")
            found = None
        if found is not None:
            return
        made = identity(self._hns.call("POST", "/endpoints/", documents.host_endpoint(action, network)))
        try:
            attach = {"SystemType": "Host", "CompartmentId": documents.HOST_COMPARTMENT}
            self._hns.call("POST", f"/endpoints/{made}/attach", attach)
        except BaseException:  # one that is not attached would be taken for a sound one by the next call
            self._take_back(lambda: self._hns.call("DELETE", f"/endpoints/{made}"))
            raise

    def _ensure_remote_endpoint(self, action: EnsureRemoteEndpoint) -> None:
        management = self._management()
        network = identity(self._objects.existing_network(action.network))
        found = self._objects.older_endpoint(action.name)
        if found is not None:
            sound = _is_endpoint(found, network, action.address)
            if sound and documents.provider_address(found) == str(management):
                return
            self._hns.call("DELETE", f"/endpoints/{identity(found)}")
        mac = self._interfaces.mac_of(management, self._deadline).replace(":", "-")
        self._hns.call("POST", "/endpoints/", documents.remote_endpoint(action, network, management, mac))

    def _enable_forwarding(self, action: EnableForwarding) -> None:
        addresses = (self._management(), action.address)
        until = self._deadline.sooner(self._clock.monotonic(), action.limit)
        while True:
            try:
                self._interfaces.enable_forwarding(addresses, self._deadline)
            except Refused:
                if until.passed(self._clock.monotonic()):
                    raise
            else:
                return
            self._clock.sleep(action.pause)

    def _management(self) -> Address:
        if self._found.management is None:
            raise Refused("the management IP is not known")
        return self._found.management

    def _connect(self, action: ConnectContainer) -> None:
        if needs_subnet(action.endpoint.policies):
            self._found.management_subnet = self._interfaces.subnet_of(self._management(), self._deadline)
        connect = self._connect_newer if action.netns else self._connect_older
        for left in range(action.tries - 1, -1, -1):
            try:
                connect(action)
            except HnsError as error:
                self.undo()
                if not left or isinstance(error, HnsMissing):
                    raise
                self._log.warning("Trying again to connect the container", error=error, tries_left=left)
            else:
                return
            self._clock.sleep(action.pause)
            self.check_time("the Host Networking Service")

    def _connect_newer(self, action: ConnectContainer) -> None:
        endpoint, hns = action.endpoint, self._hns
        network = identity(self._objects.existing_network(endpoint.network))
        for rival in self._objects.newer_rivals(endpoint.name, str(endpoint.address.address)):
            self._log.info("Removing an endpoint that is in the way", endpoint=rival.get("Name"))
            hns.delete(ENDPOINT, identity(rival))
        made = hns.create(ENDPOINT, documents.newer_endpoint(endpoint, network, self._found), network)
        own = identity(made)
        self._way_back = lambda: hns.delete(ENDPOINT, own)
        self.mac = _mac(made)
        hns.modify(NAMESPACE, action.netns, endpoint_change("Add", own))
        if action.default_deny:
            hns.modify(ENDPOINT, own, policy_change(documents.newer_deny()))

    def _connect_older(self, action: ConnectContainer) -> None:
        endpoint, hns = action.endpoint, self._hns
        network = identity(self._objects.existing_network(endpoint.network))
        for rival in self._objects.older_rivals(endpoint.name, str(endpoint.address.address)):
            self._log.info("Removing an endpoint that is in the way", endpoint=rival.get("Name"))
            hns.call("DELETE", f"/endpoints/{identity(rival)}")
        made = hns.call("POST", "/endpoints/", documents.older_endpoint(endpoint, network, self._found))
        own = identity(made)
        self._way_back = lambda: hns.call("DELETE", f"/endpoints/{own}")
        self.mac = _mac(made)
        self._attach_older(action.container_id, own)
        if action.default_deny:
            policies = [*documents.objects(made.get("Policies")), documents.older_deny()]
            hns.call("POST", f"/endpoints/{own}", {**made, "Policies": policies})

    def _attach_older(self, container_id: str, endpoint: str) -> None:
        """A container that is not there (yet) gets the endpoint when it starts, as dockershim has it."""
        try:
            self._hns.attach_container(container_id, endpoint)
        except HnsMissing:
            self._log.info("The container is not running, so its endpoint is not attached", container=container_id)

    def undo(self) -> None:
        """Take back the endpoint that was made for the container, if any."""
        way_back, self._way_back = self._way_back, None
        if way_back is not None:
            self._take_back(way_back)

    def _take_back(self, delete: Callable[[], object]) -> None:
        try:
            delete()
        except HnsMissing:
            pass
        except HnsError as error:
            self._log.error("Cannot remove the endpoint of a failed call", error=error)


def _is_endpoint(document: Document, network: str, address: Address) -> bool:
    return same_id(text(document, "VirtualNetwork"), network) and document.get("IPAddress") == str(address)


def _mac(endpoint: Document) -> str:
    """As Calico's records spell it."""
    try:
        return parse_mac(text(endpoint, "MacAddress"))
    except ValueError as error:
        raise Refused(f"HNS has given the endpoint no MAC address: {error}") from error


def _address(said: str) -> Address:
    try:
        return Address.parse(said)
    except ValueError as error:
        raise Refused(str(error)) from error
