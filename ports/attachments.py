"""What each ADD has left on this host, so that a DEL without a namespace and a GC find it.

Invariant: a record is whole or not there, and belongs to one attachment of one network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.bridge.attachment import BridgeAttachment
    from domain.bridge.conf import AttachmentId


class Attachments(ABC):
    """Errors: `ports.errors.Unavailable` with path and reason."""

    @abstractmethod
    def save(self, network: str, attachment: BridgeAttachment) -> None:
        """Replace what there is."""

    @abstractmethod
    def load(self, network: str, owner: AttachmentId) -> BridgeAttachment | None:
        """None if there is no record, or one that cannot be read."""

    @abstractmethod
    def forget(self, network: str, owner: AttachmentId) -> None:
        """One that is not there is fine."""

    @abstractmethod
    def all(self, network: str) -> tuple[BridgeAttachment, ...]:
        """Those that make sense."""
