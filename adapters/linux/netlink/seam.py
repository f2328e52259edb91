"""What we ask of the kernel about devices, addresses and routes: the seam between the dataplane and a netlink library.

A transport speaks for one network namespace, the one its socket was opened in, and knows nothing of Calico. Two kinds
of it can exist: one on a library, and a lean one that costs a plugin less time to load.

Invariant: every refusal of the kernel is a `KernelError` with Go's wording; "not there" is an answer, not an error,
where something is looked up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from errno import EINVAL, ENODEV, ENOTSUP, EOPNOTSUPP

from adapters.linux.files import go_text
from domain.ipam.address import Address, Cidr
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.linux.link import Link

SCOPES = {"universe": 0, "site": 200, "link": 253, "host": 254, "nowhere": 255}
SCOPE_NAMES = {number: name for name, number in SCOPES.items()}


class KernelError(Exception):
    """The kernel, or a file of it, said no. `str()` is the reason as the user reads it.

    `explanation` is what the kernel adds for those who read logs, "" if it adds nothing.
    """

    def __init__(self, number: int, text: str = "", *, explanation: str = "") -> None:
        super().__init__(text or go_text(number))
        self.errno = number
        self.explanation = explanation


class Unanswered(KernelError):
    """The request or its answer was lost on the way, as for want of memory: nobody knows whether it was done."""


class LinkMissing(KernelError):
    """A device that has to be there is not; the wording is that of the Go netlink library."""

    def __init__(self) -> None:
        super().__init__(ENODEV, "Link not found")


def no_socket(error: OSError) -> KernelError:
    number = error.errno or EINVAL
    return KernelError(number, f"cannot open a netlink socket: {go_text(number)}")


def unsupported(error: BaseException | None) -> bool:
    """Whether the kernel said that it does not know such a thing at all, be it as the cause of another error."""
    while error is not None:
        if getattr(error, "errno", None) in {EOPNOTSUPP, ENOTSUP}:
            return True
        error = error.__cause__
    return False


class KernelRoute(Value):
    """A unicast route of the main table. `link` is the outgoing device's index."""

    link: int
    destination: Cidr
    gateway: Address | None
    scope: str


class PairRequest(Value):
    """A pair whose peer is made directly in another namespace, down. 0, "" and None leave the kernel's defaults.

    `tx_queue_length` and `mac` are the primary end's. `peer_namespace` is an open descriptor.
    """

    kind: str
    name: str
    peer_name: str
    peer_namespace: int
    mtu: int = 0
    queues: int = 0
    mac: str = ""
    tx_queue_length: int | None = None


class Netlink(ABC):
    """Errors: `KernelError`. With `may_change_threads` another thread than the one that opened it may use it up."""

    may_change_threads = False

    @abstractmethod
    def link(self, name: str) -> Link | None:
        """The device of that name, or None."""

    @abstractmethod
    def link_by_index(self, index: int) -> Link | None:
        """The device of that index, or None."""

    @abstractmethod
    def create_pair(self, request: PairRequest) -> None:
        """`file exists` if either name is taken; `operation not supported` for an unknown kind."""

    @abstractmethod
    def set_up(self, index: int, *, up: bool) -> None: ...

    @abstractmethod
    def set_mac(self, index: int, mac: str) -> None: ...

    @abstractmethod
    def delete_link(self, index: int) -> None:
        """A device that is gone already is fine."""

    @abstractmethod
    def add_address(self, index: int, address: Cidr) -> None:
        """Without a broadcast address."""

    @abstractmethod
    def addresses(self, index: int, version: int) -> list[Cidr]:
        """In the kernel's order."""

    @abstractmethod
    def has_tentative(self, index: int) -> bool:
        """Whether a global IPv6 address of the device is not usable yet."""

    @abstractmethod
    def add_route(self, index: int, destination: Cidr, gateway: Address | None, scope: str) -> None:
        """Main table, protocol boot; `file exists` if there is one."""

    @abstractmethod
    def routes(self, version: int) -> list[KernelRoute]:
        """The main table's unicast routes over one device."""

    @abstractmethod
    def learned_over(self) -> list[int]:
        """The indexes of the devices over which IPv6 routes lead that routers have advertised."""

    @abstractmethod
    def namespace_id(self, namespace: int) -> int | None:
        """The id that this namespace has for another one, given as an open descriptor; None without one."""

    @abstractmethod
    def close(self) -> None: ...


def delete_named(netlink: Netlink, name: str) -> None:
    """Delete the device of that name, if there is one that can go.

    The kernel keeps the loopback device and physical ones. No plugin made those, so they are left as they are.
    """
    found = netlink.link(name)
    if found is not None:
        delete_found(netlink, found)


def delete_found(netlink: Netlink, found: Link) -> None:
    """The same for a device that has been looked up."""
    try:
        netlink.delete_link(found.index)
    except KernelError as error:
        if found.kind or not unsupported(error):
            raise
