"""Sandboxes that share their endpoint, and those that were deleted: HNS and the registry.

Invariant: an endpoint is looked for by the sandbox's name, and only attached, never changed.
"""

from __future__ import annotations

from adapters.windows import documents
from adapters.windows.objects import Objects
from adapters.windows.seam import NETWORK, HnsError
from domain.ipam.address import Cidr
from domain.linux.link import parse_mac
from domain.windows.names import endpoint_name, joins_sandbox, network_name
from ports.errors import Refused
from ports.host_networking import HostNetworking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.windows.dataplane import Host
    from adapters.windows.deletion_stamps import DeletionStamps
    from adapters.windows.seam import Document
    from domain.windows.conf import WindowsConf
    from ports.clock import Deadline

_SEEN_WITHIN, _LOOK_EVERY = 3.0, 0.1  # seconds: a stamp may be seen late


class WindowsHostNetworking(HostNetworking):
    """For one call: `conf` and `container_id` are its own."""

    def __init__(self, host: Host, stamps: DeletionStamps, conf: WindowsConf, container_id: str) -> None:
        self._host = host
        self._stamps = stamps
        self._conf = conf
        self._container_id = container_id
        self._objects = Objects(host.hns)

    def join(self, netns: str, deadline: Deadline) -> tuple[Cidr, ...]:
        name = endpoint_name(self._container_id, netns, self._conf.name)
        try:
            with self._host.mutex.held(deadline):
                found = self._objects.older_endpoint(name)
                if found is not None and joins_sandbox(netns):
                    self._host.hns.attach_container(self._container_id, documents.identity(found))
        except HnsError as error:
            raise Refused(f'cannot share the endpoint "{name}": {error}') from error
        return () if found is None else (_address(found),)

    def tunnel_mac(self, subnet: Cidr, deadline: Deadline) -> str:  # noqa: ARG002 - HNS answers at once or not at all
        """That of the network's distributed router."""
        name = network_name(self._conf, subnet)
        try:
            network = documents.identity(self._objects.existing_network(name))
            shown = self._host.hns.query(NETWORK, network, documents.query())
            return parse_mac(documents.text(documents.policy_settings(shown, "DrMacAddress") or {}, "Address"))
        except (HnsError, ValueError) as error:
            raise Refused(f'cannot tell the MAC of the HNS network "{name}": {error}') from error

    def deletions(self) -> dict[str, str]:
        return self._stamps.all()

    def note_deletion(self, container_id: str, when: str) -> None:
        self._stamps.write(container_id, when)
        clock = self._host.clock
        until = clock.deadline(_SEEN_WITHIN)
        while self._stamps.all().get(container_id) != when:
            if until.passed(clock.monotonic()):
                raise Refused(f"the deletion of {container_id} is not to be seen in the registry")
            clock.sleep(_LOOK_EVERY)

    def forget_deletion(self, container_id: str) -> None:
        self._stamps.remove(container_id)


def _address(endpoint: Document) -> Cidr:
    """With the prefix length of its network, where HNS says it."""
    length = endpoint.get("PrefixLength") or 32
    try:
        return Cidr.parse(f"{documents.text(endpoint, 'IPAddress')}/{length}")
    except ValueError as error:
        raise Refused(f"HNS shows an endpoint without a usable address: {error}") from error
