"""Connecting a container to a bridge of this machine: the two sides of it, held open for one call.

What is to be done comes as a plan (domain/bridge/plan); the rest is looking, and taking away.

Invariant: no verb makes a network namespace, or deletes a device that it was not told to by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ports.errors import Missing, PortError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from domain.ipam.address import Cidr
    from domain.linux.link import Link, Route
    from domain.linux.steps import Device, Step
    from ports.clock import Deadline


class NamespaceGone(Missing):
    """Nothing is at the path of a namespace, or only the plain file that an unmounted one leaves."""

    def __init__(self, path: str, why: str) -> None:
        PortError.__init__(self, f'failed to open netns "{path}": {why}')
        self.key = path


class Sides(ABC):
    """Host and container. A context manager; errors are `ports.errors.Refused`, `Expired` past the deadline."""

    @abstractmethod
    def apply(self, plan: tuple[Step, ...]) -> tuple[Device, ...]:
        """Make it so. What a `MakePair` in it has called the host's end of the pair, for each of them.

        Refused without the step's text if the container has a device of that name.
        """

    @abstractmethod
    def link(self, device: Device) -> Link | None:
        """With all that a bridge makes of it."""

    @abstractmethod
    def host_links(self) -> tuple[Link, ...]:
        """All devices of the host, without their VLANs."""

    @abstractmethod
    def addresses(self, device: Device, *, link_local: bool = False) -> tuple[Cidr, ...]:
        """Those of global scope, and with `link_local` all; () for a device that is not there."""

    @abstractmethod
    def routes(self, version: int) -> tuple[Route, ...]:
        """The container's, of all tables."""

    @abstractmethod
    def remove(self, device: Device) -> None:
        """Delete the device, and a pair's other end with it. A missing one is fine, and so is one that the
        kernel never lets go, such as `lo`, since no plugin made it.
        """

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Bridges(ABC):
    @abstractmethod
    def is_own_namespace(self, netns: str) -> bool:
        """Whether the path is the namespace this process runs in; a path that cannot be opened is not."""

    @abstractmethod
    def enter(self, netns: str, deadline: Deadline) -> Sides:
        """Both sides; with "" the host alone. `NamespaceGone`; Refused `failed to open netns "<path>": <reason>`."""

    @abstractmethod
    def require_privilege(self) -> None:
        """Refused with code 50 if this process may not change the machine's network."""
