"""How a Calico workload is connected on Windows, as a value: each step in its order, and what its failure is called.

A node has one network of HNS for each block of addresses, since a network has one subnet; or a single one, which then
limits the node to one block. Of each subnet the first address is the network's gateway, the next one the host's, and a
pod reaches everything through the one of them that the kind of network routes by.

Invariant: pure. What only the host can find out stands in the plan as a placeholder.
"""

from __future__ import annotations

from domain.cni.errors import INTERNAL, CniError
from domain.ipam.address import V4
from domain.windows.names import HOST_ENDPOINT, endpoint_name, is_dockershim, network_name, overlay_mac
from domain.windows.policies import OutgoingNat, endpoint_policies
from domain.windows.steps import (
    L2_BRIDGE,
    OVERLAY,
    AwaitManagement,
    ConnectContainer,
    EnableForwarding,
    Endpoint,
    EnsureHostEndpoint,
    EnsureHostRoutes,
    EnsureNetwork,
    EnsureRemoteEndpoint,
    Step,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.ipam.address import Cidr
    from domain.windows.conf import WindowsConf
    from domain.workload.attachment import Attachment

GATEWAY, HOST = 1, 2  # places in a subnet
_TRIES, _PAUSE = 4, 1.0
_MANAGEMENT_LIMIT, _MANAGEMENT_PAUSE = 30.0, 1.0
_FORWARDING_LIMIT, _FORWARDING_PAUSE = 10.0, 1.0


def plan_for(conf: WindowsConf, attachment: Attachment, container_id: str) -> tuple[Step, ...]:
    """All steps, in order. CniError 999 for an address that Windows cannot be given."""
    address = _address(attachment)
    subnet = address.network
    name = network_name(conf, subnet)
    kind = _overlay if conf.is_overlay else _bridge
    return (*kind(conf, name, subnet), _connect(conf, attachment, container_id, name))


def _address(attachment: Attachment) -> Cidr:
    """The first one counts: an endpoint has one address."""
    first = attachment.addresses[0]
    if first.version != V4:
        raise CniError(INTERNAL, f"{first.address} is an IPv6 address, and Windows endpoints have IPv4 ones only")
    if first.size <= HOST + 1:
        why = f"the subnet of {first} has no room for a gateway and the host beside it"
        raise CniError(INTERNAL, why, "Windows needs the address with its subnet: blocks of /29 or larger")
    return first


def _network(name: str, type: str, subnet: Cidr, vsid: int = 0) -> Step:
    return Step(EnsureNetwork(name, type, subnet, subnet.at(GATEWAY), vsid), f'cannot make the HNS network "{name}": ')


def _bridge(_conf: WindowsConf, name: str, subnet: Cidr) -> Iterator[Step]:
    host = f"{name}{HOST_ENDPOINT}"
    yield _network(name, L2_BRIDGE, subnet)
    yield Step(EnsureHostEndpoint(host, name, subnet.at(HOST)), f'cannot make the host\'s endpoint "{host}": ')
    yield Step(
        AwaitManagement(name, _MANAGEMENT_LIMIT, _MANAGEMENT_PAUSE), f'HNS network "{name}" has no management IP: '
    )
    yield Step(EnableForwarding(subnet.at(HOST), _FORWARDING_LIMIT, _FORWARDING_PAUSE), "cannot enable forwarding: ")


def _overlay(conf: WindowsConf, name: str, subnet: Cidr) -> Iterator[Step]:
    host = f"{name}{HOST_ENDPOINT}"
    yield _network(name, OVERLAY, subnet, conf.vni)
    yield Step(AwaitManagement(name, 0.0, 0.0), f'HNS network "{name}" has no management IP: ')
    yield Step(EnsureHostRoutes(name), f'cannot let the host into the HNS network "{name}": ')
    yield Step(EnsureRemoteEndpoint(host, name, subnet.at(HOST)), f'cannot make the remote endpoint "{host}": ')


def _connect(conf: WindowsConf, attachment: Attachment, container_id: str, network: str) -> Step:
    address = attachment.addresses[0]
    nat = OutgoingNat(attachment.nat_outgoing, attachment.nat_exceptions)
    endpoint = Endpoint(
        endpoint_name(container_id, attachment.netns, conf.name),
        network,
        address,
        address.network.at(GATEWAY if conf.is_overlay else HOST),
        overlay_mac(conf.mac_prefix, address.address) if conf.is_overlay else "",
        conf.dns,
        endpoint_policies(conf, nat, address.address),
    )
    action = ConnectContainer(
        endpoint,
        "" if is_dockershim(attachment.netns) else attachment.netns,
        container_id,
        conf.default_deny,
        _TRIES,
        _PAUSE,
    )
    return Step(action, f'cannot connect the container to the HNS network "{network}": ')
