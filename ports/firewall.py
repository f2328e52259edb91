"""Packet filter rules for one attachment: masquerading its traffic, and holding it to its MAC.

Invariant: rules are found again by who they were made for, never by address alone; what other programs put into the
same tables stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.bridge.conf import AttachmentId
    from domain.ipam.address import Cidr
    from ports.clock import Deadline


class RuleOwner(Value):
    """Whose rules they are."""

    network: str
    attachment: AttachmentId


class Firewall(ABC):
    """Errors: `ports.errors.Refused` with the tool's words; `Expired`."""

    @abstractmethod
    def choose_backend(self, wanted: str, deadline: Deadline) -> str:
        """`wanted`, or without one iptables if that works, else nftables. Refused if what it comes to does not work."""

    @abstractmethod
    def masquerade(self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        """Traffic from these addresses that leaves their subnets takes the host's. True afterwards, however often."""

    @abstractmethod
    def missing_masquerade(
        self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline
    ) -> tuple[Cidr, ...]:
        """Those without their rules."""

    @abstractmethod
    def stop_masquerade(self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        """Remove the owner's rules; "" is every back end that works here. Without rules it is fine.

        iptables' are shared by a container's interfaces on one network: only those of the addresses go, or all if
        none is given.
        """

    @abstractmethod
    def collect_masquerade(self, network: str, valid: Iterable[AttachmentId], deadline: Deadline) -> None:
        """Remove a network's rules whose owner is not valid; iptables' stay if any interface of the container is."""

    @abstractmethod
    def guard(self, owner: RuleOwner, host_name: str, mac: str, deadline: Deadline) -> None:
        """Drop what comes from that device with another source MAC. Refused `failed to setup spoof-check: …`."""

    @abstractmethod
    def is_guarded(self, owner: RuleOwner, deadline: Deadline) -> bool: ...

    @abstractmethod
    def stop_guarding(self, owner: RuleOwner, deadline: Deadline) -> None:
        """Refused `failed to teardown spoof-check: …`; without rules it is fine."""
