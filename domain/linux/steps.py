"""The vocabulary of plans: what can be done to devices, addresses, routes and sysctls on the two sides of a container.

Both plugins plan with these words (domain/workload/plan, domain/bridge/plan). One interpreter takes the steps one after
the other, and knows nothing of who planned them or why; so a test can compare a plan as a value. What only bridges
need is in `bridge_steps`, which a plugin without them never loads.

Invariant: an action says all that its doing needs; only `AwaitLinkLocal` finds out something that later actions use.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

HOST, CONTAINER = "host", "container"
SCOPE_LINK, SCOPE_UNIVERSE = "link", "universe"


class Device(Value):
    """A network device by name. `side` is HOST or CONTAINER."""

    side: str
    name: str


class RemoveLeftover(Value):
    """Delete the device if it is there. Refused while its other end lives in a namespace that is neither the host's
    nor, under that name, `other_end`; unless `force`.
    """

    device: Device
    other_end: Device
    force: bool = False


class CreatePair(Value):
    """Make a pair, one end on each side, both down. Asked for from the host, whose end is the primary one.

    `kind` is veth or netkit; where the kernel says that it does not support that, `fallback` ("" for none) is made.
    `mtu` 0 and `tx_queue_length` None leave the kernel's defaults; the latter is the host end's and only veth has
    it. `mac` is the host end's.
    """

    host: Device
    container: Device
    kind: str
    fallback: str
    mtu: int
    queues: int
    mac: str
    tx_queue_length: int | None


class FindLink(Value):
    """Make sure that the device is there; later actions on it mean the one found now."""

    device: Device


class HoldMac(Value):
    """Read the MAC, set it where it differs, and read again every `pause` seconds until it stays, at most `limit`.

    A MAC that the kernel refuses to set is a warning, and the one it has stays.
    """

    device: Device
    mac: str
    limit: float
    pause: float


class SetMac(Value):
    device: Device
    mac: str


class SetUp(Value):
    device: Device


class WriteSysctl(Value):
    """`path` is below /proc/sys, as that side sees it; a missing one is never created."""

    side: str
    path: str
    value: str


class KeepLearnedRoutes(Value):
    """Let the host keep the IPv6 routes that routers advertise, though it is about to forward. The kernel then drops
    those over devices whose `accept_ra` is 1, and learns no others: there it becomes 2.

    Nothing is done if the setting at `path`, which is about to be written, is 1 already ("": do it anyway).
    """

    path: str = ""


class AwaitLinkLocal(Value):
    """Wait until the device has its IPv6 link-local address, looking every `pause` seconds, at most `limit`.

    Where `HoldMac` succeeded on it that must be the one of `mac`; otherwise the device goes down, gets the MAC, and
    `settle` seconds later goes up again.
    """

    device: Device
    mac: str
    limit: float
    pause: float
    settle: float


class AwaitUsable(Value):
    """Wait until the kernel has settled the device's global IPv6 addresses, looking every `pause` seconds.

    It does so in its own time, even where no duplicate is looked for; till then nobody can send from them. What is
    still tentative after `limit` seconds fails the step.
    """

    device: Device
    limit: float
    pause: float


class AddRoute(Value):
    """`gateway` is an address, the device whose link-local address was awaited, or None for on-link.

    In the step's failure text `{gateway}` stands for the address.
    """

    device: Device
    destination: Cidr
    gateway: Address | Device | None
    scope: str


class EnsureRoute(Value):
    """An on-link route that may be there already, over the same device; over another one it is an error."""

    device: Device
    destination: Cidr
    scope: str


class AddAddress(Value):
    device: Device
    address: Cidr


if TYPE_CHECKING:
    Action: TypeAlias = Value  # one of the above, or of those in `bridge_steps`


class Step(Value):
    """An action and what its failing means: `failure` followed by the kernel's reason is the text for the user.

    A failure that is not `fatal` is logged and the plan goes on.
    """

    action: Action
    failure: str = ""
    fatal: bool = True
