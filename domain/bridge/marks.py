"""How packet filter rules carry their owner's name: the very names and comments that the reference plugin uses, so
that either plugin removes what the other has made.

Invariant: pure; two owners share no mark, but for iptables chains, which all interfaces of a container on one network
share (as in the reference).
"""

from __future__ import annotations

from domain.bounded_name import bounded_name, digest
from domain.cni.go_quote import go_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.bridge.conf import AttachmentId

_CHAIN_PREFIX, _CHAIN_LENGTH = "CNI-", 28
_HASH_LENGTH = 16
_LONGEST_COMMENT, _LONGEST_IPTABLES_COMMENT = 128, 255  # bytes
_LONGEST_CHAIN = 251  # in nftables, with room for `-mac` behind it


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
