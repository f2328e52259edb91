"""What can be done to a bridge, its ports and what hangs on them, beside what `steps` says of every device.

Invariant: as there, an action says all that its doing needs. Those called Ensure… are true afterwards whether or not
they were before, so that many calls may make them true at once.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.linux.steps import Device
from domain.value import Value


class EnsureBridge(Value):
    """A bridge of that name; one that exists keeps its MTU and whether it filters VLANs. `mtu` 0: the kernel's."""

    name: str
    mtu: int
    filters_vlans: bool
    promiscuous: bool


class MakePair(Value):
    """Make a veth pair, both ends down. `device` is the container's end, and `mac` its own; "" and 0 leave the kernel's
    defaults. The host's end is called `wanted`, or has a name at random if that is "" or taken; whoever makes the plan
    true tells which.
    """

    device: Device
    wanted: str
    mtu: int
    mac: str


class Enslave(Value):
    """Make the device a port of the bridge."""

    device: Device
    bridge: str
    hairpin: bool = False
    isolated: bool = False


class JoinVlans(Value):
    """Make the port a member: of `untagged` (0: none) as its own, of `tagged` too; with `only` of no other VLAN."""

    device: Device
    untagged: int
    tagged: tuple[int, ...]
    only: bool


class EnsureVlanDevice(Value):
    """A pair on the host whose end `name` carries the addresses of one VLAN; the other end is a port in it alone."""

    name: str
    bridge: str
    vlan: int
    only: bool


class AssignAddress(Value):
    """With a broadcast address where there is one; with `settled` no duplicate is looked for."""

    device: Device
    address: Cidr
    settled: bool


class AwaitSettled(Value):
    """Wait until no IPv6 address of the device is tentative, at most `limit` seconds."""

    device: Device
    limit: float
    pause: float


class EnsureAddress(Value):
    """The gateway's address. In its way are any other IPv4 address, and IPv6 ones that share its network, but for
    link-local ones: an error, or with `force` they go.
    """

    device: Device
    address: Cidr
    force: bool


class PinMac(Value):
    """Set the MAC that the device has, so that a bridge no longer takes that of a port."""

    device: Device


class EnsureSysctl(Value):
    """Write a setting only where it is another: /proc/sys may be read-only."""

    side: str
    path: str
    value: str


class AppendRoute(Value):
    """A route beside others to the same destination. 0 leaves priority, MTU and the like to the kernel."""

    device: Device
    destination: Cidr
    gateway: Address | None
    priority: int = 0
    table: int = 0
    scope: int = 0
    mtu: int = 0
    advmss: int = 0


class AwaitPort(Value):
    """Wait until the device is operational, looking again after each of the pauses."""

    device: Device
    pauses: tuple[float, ...]


class SetAlias(Value):
    device: Device
    alias: str
