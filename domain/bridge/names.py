"""Names and marks by which what an attachment has on the host is found again.

Invariant: a mark is a function of network, container and interface, and of no two attachments the same.
"""

from __future__ import annotations

from domain.bounded_name import bounded_name
from domain.bridge.conf import AttachmentId

LONGEST_DEVICE_NAME = 15  # bytes: the kernel's IFNAMSIZ without the final zero
_OF_CONTAINER = 5
_ALIAS = "cni:"
_LONGEST_ALIAS = 255


def host_name(attachment: AttachmentId) -> str:
    """The interface's name and the first five characters of the container's: `eth0` of `mycontainer123` is `eth0mycon`.

    A long interface name gives way, so that containers stay apart. Case BT-34.
    """
    tail = attachment.container_id[:_OF_CONTAINER]
    head = attachment.ifname.encode("utf-8", "surrogateescape")[: LONGEST_DEVICE_NAME - len(tail)]
    return head.decode("utf-8", "ignore") + tail


def alias(network: str, attachment: AttachmentId) -> str:
    """The host device's alias (`ip link show` prints it). None of the three can have a colon in it."""
    whole = f"{_ALIAS}{network}:{attachment.container_id}:{attachment.ifname}"
    return bounded_name(whole, _LONGEST_ALIAS)


def attachment_of(network: str, alias: str) -> AttachmentId | None:
    """Whose device of that network an alias marks; None for another network's, a cut one, and any other text.

    A cut one ends within the container's name, or is as long as can be.
    """
    head, _, rest = alias.partition(f"{_ALIAS}{network}:")
    container_id, _, ifname = rest.partition(":")
    if head or not container_id or not ifname or len(alias.encode("utf-8", "surrogateescape")) >= _LONGEST_ALIAS:
        return None
    return AttachmentId(container_id, ifname)
