"""What things are called in HNS: networks, and endpoints of hosts and containers.

Names are all that a DEL has to find an endpoint by, and all that several calls on one node agree on.

Invariant: the name of an endpoint follows from the container and the configured network alone, whatever its addresses.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Address, Cidr
    from domain.windows.conf import WindowsConf

NO_NAMESPACE = "none"  # what dockershim calls that of a sandbox
_OF_SANDBOX = "container:"  # and before the sandbox's id, that of its other containers
HOST_ENDPOINT = "_ep"


def is_dockershim(netns: str) -> bool:
    """Whether CNI_NETNS is no namespace: then HNS connects containers themselves, as it did before it had any."""
    return netns == NO_NAMESPACE or netns.startswith(_OF_SANDBOX)


def joins_sandbox(netns: str) -> bool:
    """Whether the container shares the endpoint that its sandbox has."""
    return netns.startswith(_OF_SANDBOX)


def network_name(conf: WindowsConf, subnet: Cidr) -> str:
    """One network for each block of addresses: HNS gives a network one subnet. Of a single one the name says none."""
    if conf.single_network:
        return conf.name
    return f"{conf.name}-{str(subnet.network.address).replace('.', '-').replace(':', '-')}"


def endpoint_name(container_id: str, netns: str, network: str) -> str:
    """`network` is the configuration's name."""
    sandbox = netns.removeprefix(_OF_SANDBOX) if joins_sandbox(netns) else container_id
    return f"{sandbox}_{network}"


def overlay_mac(prefix: str, address: Address) -> str:
    """The MAC of a container in an overlay, which its IPv4 address gives: every other node can tell it."""
    return "-".join([prefix, *[f"{address.number >> shift & 0xFF:02x}" for shift in (24, 16, 8, 0)]])
