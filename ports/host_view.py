"""A host as somebody looks at it who changes nothing: files, devices, settings, and what its kernel can do.

Paths are the host's own, wherever the process that looks has them: in a container the host's root is mounted
somewhere.

Invariant: no verb changes anything on the host, and none waits longer than the time it is given.
"""

from __future__ import annotations

from abc import abstractmethod

from ports.node import ThisNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from domain.doctor.seen import FileSeen, Uplink
    from domain.linux.link import Link
    from ports.clock import Deadline

    T = TypeVar("T")


class HostView(ThisNode):
    @abstractmethod
    def place(self, path: str) -> str:
        """Where this process finds that path of the host; for what opens files by itself."""

    @abstractmethod
    def file(self, path: str) -> FileSeen | None:
        """What is there, symbolic links followed; None if nothing is. `ports.errors.Refused` if nobody may look."""

    @abstractmethod
    def names(self, folder: str) -> tuple[str, ...] | None:
        """What is in a folder, sorted; None if it is not there. `ports.errors.Refused` as above."""

    @abstractmethod
    def links(self) -> tuple[Link, ...]:
        """All devices. `ports.errors.Unavailable` if the kernel does not tell."""

    @abstractmethod
    def uplinks(self) -> tuple[Uplink, ...]:
        """The devices of default routes. `ports.errors.Unavailable` likewise."""

    @abstractmethod
    def setting(self, name: str) -> str:
        """A kernel setting such as `net.ipv4.ip_forward`; "" where there is none."""

    @abstractmethod
    def lacking(self) -> Mapping[str, str]:
        """Why each of `domain.doctor.kernel.FEATURES` is not to be had, for those that are not.

        It is tried in a network namespace of its own, which is gone afterwards. `ports.errors.Refused` for who may not
        make one.
        """

    @abstractmethod
    def version_of(self, program: str, deadline: Deadline) -> str:
        """What a program of the host says to `-v`. `ports.errors.Refused` with the reason if it says nothing.

        `ports.errors.Expired`.
        """

    @abstractmethod
    def within(self, seconds: float, waited_for: str, look: Callable[[], T]) -> T:
        """What `look` gives; `ports.errors.Expired` if it takes longer."""
