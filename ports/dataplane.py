"""Making a container reachable: a device pair, its addresses and routes; and finding out what is there.

`connect` takes what is wanted in our words; the Linux adapter turns it into a plan (domain/workload/plan) and applies
that, the gRPC adapter passes it on.

Invariant: no verb creates a network namespace, and `disconnect` touches nothing but the named device inside the
named namespace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.ipam.address import Address, Cidr
from domain.value import Value
from domain.workload.attachment import Attachment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.linux.link import Link
    from ports.clock import Deadline


class Connected(Value):
    """What came of it. `mac` is the container side's, colon-separated lower-case, "" if the dataplane names none.

    `addresses` are those asked for, in order, with the prefix lengths that hold in the container.
    """

    host_interface: str
    mac: str
    addresses: tuple[Cidr, ...]


class Seen(Value):
    """One network namespace as it is now: a link (None if absent), its addresses and the main table's routes over it.

    `routes` are (destination, gateway or None). `proxies` are the IP versions in which a host's link answers its peer's
    neighbour requests for any address; None where that is not known.
    """

    link: Link | None
    addresses: tuple[Cidr, ...] = ()
    routes: tuple[tuple[Cidr, Address | None], ...] = ()
    proxies: frozenset[int] | None = None


def nothing_left(_deadline: Deadline) -> None:
    """What a disconnection that is complete has left to wait for."""


class Dataplane(ABC):
    """Errors: `ports.errors.Refused` with the text for the user; `Expired` past the deadline; `Unavailable` if whoever
    connects containers cannot be reached.
    """

    @abstractmethod
    def examine(
        self, netns: str, ifname: str, deadline: Deadline, host_name: str = "", *, replace_host_link: bool = False
    ) -> None:
        """Refuse, before anything is allocated, what `connect` could not do, as far as that can be known.

        The path is not a network namespace: `failed to Statfs "<p>": <err>` or `unknown FS magic on "<p>": <hex>`.
        A device named `ifname` is in it that is not the other end of the host's `host_name`: `file exists`-style
        text naming device and namespace. The host's `host_name` has its other end elsewhere in a live namespace, and
        `replace_host_link` is not given: a text naming both.
        """

    @abstractmethod
    def connect(self, attachment: Attachment, deadline: Deadline) -> Connected:
        """Make it so. On any error the device pair that this call made is gone again."""

    @abstractmethod
    def disconnect(self, netns: str, ifname: str, deadline: Deadline) -> None:
        """Delete the container's device. A missing device or namespace is fine, and so are an empty path and a plain
        file, which is what a runtime leaves behind when it unmounts a namespace.
        """

    def begin_disconnect(self, netns: str, ifname: str, deadline: Deadline) -> Callable[[Deadline], None]:
        """`disconnect` for a call that has more to do: what takes long and what nobody sees is left for later.

        When it returns the device, its other end and their routes are gone, or nothing was there. What it returns waits
        until the system has done the rest, or for the deadline; it raises nothing. A dataplane that cannot tell
        one from the other does all at once.
        """
        self.disconnect(netns, ifname, deadline)
        return nothing_left

    @abstractmethod
    def look(self, netns: str, name: str, deadline: Deadline) -> Seen | None:
        """What a link looks like now, in that namespace or (netns "") on the host.

        None where this dataplane cannot look, whether or not there is such a link.
        """
