"""What a Windows host knows of its containers beside their interfaces: who shares one, and which sandbox is gone.

A service of the system keeps interfaces there, not the kernel by namespaces. Dockershim asks for each container of a
pod, all of which have the sandbox's interface; and it may ask for a sandbox again that it has just had deleted.

Invariant: no verb makes an interface, or gives one an address.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Cidr
    from ports.clock import Deadline


class HostNetworking(ABC):
    """Of one call, whose container it is about. Errors: `ports.errors.Refused`, and `Expired` past the deadline."""

    @abstractmethod
    def join(self, netns: str, deadline: Deadline) -> tuple[Cidr, ...]:
        """The addresses of the sandbox's interface, which the container has from now on; () if there is none.

        `netns` is CNI_NETNS: that of the sandbox itself is `none`, and then there is nothing to be done but look.
        """

    @abstractmethod
    def tunnel_mac(self, subnet: Cidr, deadline: Deadline) -> str:
        """The MAC by which other nodes send to that subnet of an overlay; octets joined by colons."""

    @abstractmethod
    def deletions(self) -> Mapping[str, str]:
        """Which containers have been deleted, and when: what `note_deletion` has been told."""

    @abstractmethod
    def note_deletion(self, container_id: str, when: str) -> None: ...

    @abstractmethod
    def forget_deletion(self, container_id: str) -> None:
        """One that is not noted is fine."""
