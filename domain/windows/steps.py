"""The vocabulary of plans on Windows: what can be done to networks and endpoints of HNS, and to the host's interfaces.

As on Linux (domain/linux/steps) a plan is a value that a test compares, and whoever takes its steps one after the
other knows nothing of who planned.

Invariant: an action says all that its doing needs, but for what the host finds out meanwhile: the address that it
manages a network by (`AwaitManagement`), for which policies have placeholders (domain/windows/policies).
"""

from __future__ import annotations

from domain.cni.result import Dns
from domain.ipam.address import Address, Cidr
from domain.value import Value
from domain.windows.conf import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

L2_BRIDGE, OVERLAY = "L2Bridge", "Overlay"


class EnsureNetwork(Value):
    """A network of that name and subnet; one of that name with another subnet or type is deleted first.

    `vsid` is the number of an overlay, 0 elsewhere.
    """

    name: str
    type: str
    subnet: Cidr
    gateway: Address
    vsid: int = 0


class AwaitManagement(Value):
    """Wait until the network has the address that its host is managed by, looking every `pause` seconds.

    With `limit` 0 it must be there: the network could not be made without.
    """

    network: str
    limit: float
    pause: float


class EnsureHostRoutes(Value):
    """Let the host reach the containers of an overlay."""

    network: str


class EnsureHostEndpoint(Value):
    """The host's own endpoint in a network, attached to it; one of that name with another address is replaced."""

    name: str
    network: str
    address: Address


class EnsureRemoteEndpoint(Value):
    """The host as the containers of an overlay see it: a remote endpoint at the host's own address and MAC."""

    name: str
    network: str
    address: Address


class EnableForwarding(Value):
    """On the interfaces that have the host's management address, and `address`. One that was attached a moment ago may
    not have its address yet: it is tried every `pause` seconds, at most `limit`.
    """

    address: Address
    limit: float
    pause: float


class Endpoint(Value):
    """A container's. `mac` "" leaves it to HNS."""

    name: str
    network: str
    address: Cidr
    gateway: Address
    mac: str = ""
    dns: Dns = Dns()
    policies: tuple[Policy, ...] = ()


class ConnectContainer(Value):
    """Make the endpoint, attach it, and let nobody in if `default_deny`, before anything runs in the container.

    `netns` is a namespace; with "" the endpoint goes to the container itself (dockershim). Endpoints of that name or
    address go first. What fails is taken back, and begun again after `pause` seconds, `tries` times in all.
    """

    endpoint: Endpoint
    netns: str
    container_id: str
    default_deny: bool
    tries: int
    pause: float


if TYPE_CHECKING:
    Action: TypeAlias = Value  # one of the above


class Step(Value):
    """An action and what its failing means: `failure` followed by the reason is the text for the user."""

    action: Action
    failure: str
