"""Records that are kept in one and the same way: what to ask for them, what the objects mean, how they are written.

Invariant: asking changes nothing, so that the questions of several families can go out together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from adapters.kubernetes.objects import Found
    from adapters.kubernetes.transport.seam import Request
    from ports.datastore import Need, Revision, Stored
    from ports.deadline import Deadline


class Family(ABC):
    """What it does not define itself is not supported for its records."""

    @abstractmethod
    def requests(self, need: Need[Any], deadline: Deadline) -> tuple[Request, ...]:
        """What to read; nothing if the answer needs no object."""

    @abstractmethod
    def answer(self, need: Need[Any], found: list[Found], deadline: Deadline) -> Any:
        """What a key or listing is answered with, given what the requests found."""

    def create(self, key: Any, record: Any, deadline: Deadline) -> Stored[Any]:  # noqa: ARG002 - see the class
        raise unsupported("Create", key)

    def update(self, key: Any, record: Any, replaces: Revision, deadline: Deadline) -> Stored[Any]:  # noqa: ARG002
        raise unsupported("Update", key)

    def delete(self, key: Any, replaces: Revision | None, deadline: Deadline) -> None:  # noqa: ARG002
        raise unsupported("Delete", key)


def unsupported(operation: str, key: object) -> Refused:
    return Refused(f"operation {operation} is not supported on {key}")
