"""Records of attachments in a dict.

Invariant: `all` gives a network's records in the order of their names, as a sorted directory does.
"""

from __future__ import annotations

from ports.attachments import Attachments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.bridge.attachment import BridgeAttachment
    from domain.bridge.conf import AttachmentId


class MemoryAttachments(Attachments):
    """`failing` is raised by `save` and `forget`, `unlisted` by `all`, if they are set."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], BridgeAttachment] = {}
        self.failing: Exception | None = None
        self.unlisted: Exception | None = None

    def save(self, network: str, attachment: BridgeAttachment) -> None:
        if self.failing is not None:
            raise self.failing
        self.kept[_key(network, attachment.id)] = attachment

    def load(self, network: str, owner: AttachmentId) -> BridgeAttachment | None:
        return self.kept.get(_key(network, owner))

    def forget(self, network: str, owner: AttachmentId) -> None:
        if self.failing is not None:
            raise self.failing
        self.kept.pop(_key(network, owner), None)

    def all(self, network: str) -> tuple[BridgeAttachment, ...]:
        if self.unlisted is not None:
            raise self.unlisted
        return tuple([self.kept[key] for key in sorted(self.kept) if key[0] == network])


def _key(network: str, owner: AttachmentId) -> tuple[str, str]:
    return network, f"{owner.container_id}-{owner.ifname}"
