"""Names and marks by which what an attachment has on the host is found again: its device, and its packet filter rules.

The rules have the very names and comments that the reference plugin uses, so that either plugin removes what the other
has made.

Invariant: a mark is a function of network, container and interface. Two attachments share none, but for iptables
chains, which all interfaces of a container on one network share (as in the reference).
"""

from __future__ import annotations

from domain.bounded_name import bounded_name, digest
from domain.bridge.conf import AttachmentId
from domain.cni.go_quote import go_quoted

LONGEST_DEVICE_NAME = 15  # bytes: the kernel's IFNAMSIZ without the final zero
_OF_CONTAINER = 5
_ALIAS = "cni:"
_LONGEST_ALIAS = 255
_CHAIN_PREFIX, _CHAIN_LENGTH = "CNI-", 28
_HASH_LENGTH = 16
_LONGEST_COMMENT, _LONGEST_IPTABLES_COMMENT = 128, 255  # bytes
_LONGEST_CHAIN = 251  # in nftables, with room for `-mac` behind it


def host_name(attachment: AttachmentId) -> str:
    """The interface's name and the first five characters of the container's: `eth0` of `mycontainer123` is `eth0mycon`.

    A long interface name gives way, so that containers stay apart.
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


def chain(network: str, container_id: str) -> str:
    """The iptables chain of a container on a network."""
    return (_CHAIN_PREFIX + digest(network + container_id))[:_CHAIN_LENGTH]


def chain_comment(network: str, container_id: str) -> str:
    whole = f"name: {go_quoted(network)} id: {go_quoted(container_id)}"
    return bounded_name(whole, _LONGEST_IPTABLES_COMMENT)


def network_mark(network: str) -> str:
    """What the comments of all of a network's nftables rules begin with."""
    return digest(network)[:_HASH_LENGTH]


def owner_mark(network: str, owner: AttachmentId) -> str:
    """What those of one attachment's rules begin with."""
    return f"{network_mark(network)}-{digest(f'{owner.ifname}:{owner.container_id}')[:_HASH_LENGTH]}"


def rule_comment(network: str, owner: AttachmentId) -> str:
    names = [name.replace('"', "") for name in (network, owner.ifname, owner.container_id)]
    whole = "{}, net: {}, if: {}, id: {}".format(owner_mark(network, owner), *names)
    return whole.encode("utf-8", "surrogateescape")[:_LONGEST_COMMENT].decode("utf-8", "ignore")


def guard_chain(owner: AttachmentId) -> str:
    return bounded_name(f"cni-br-iface-{owner.container_id}-{owner.ifname}", _LONGEST_CHAIN)


def guard_comment(owner: AttachmentId) -> str:
    return bounded_name(f"macspoofchk-{owner.container_id}-{owner.ifname}", _LONGEST_COMMENT)
