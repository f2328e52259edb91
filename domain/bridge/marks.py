"""How packet filter rules carry their owner's name: the very names and comments that the reference plugin uses, so
that either plugin removes what the other has made.

Invariant: pure; two owners share no mark, but for iptables chains, which all interfaces of a container on one network
share (as in the reference).
"""

from __future__ import annotations

from sys import version_info

from domain.cni.go_quote import go_quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.bridge.conf import AttachmentId

# The C module alone: `hashlib` loads OpenSSL, which takes longer than the rest of a DEL.
_sha512 = __import__("_sha512" if version_info < (3, 12) else "_sha2").sha512
_CHAIN_PREFIX, _CHAIN_LENGTH = "CNI-", 28
_HASH_LENGTH = 16
_LONGEST_COMMENT = 128  # bytes, in nftables


def _digest(text: str) -> str:
    digest: str = _sha512(text.encode("utf-8", "surrogateescape")).hexdigest()
    return digest


def chain(network: str, container_id: str) -> str:
    """The iptables chain of a container on a network."""
    return (_CHAIN_PREFIX + _digest(network + container_id))[:_CHAIN_LENGTH]


def chain_comment(network: str, container_id: str) -> str:
    return f"name: {go_quoted(network)} id: {go_quoted(container_id)}"


def network_mark(network: str) -> str:
    """What the comments of all of a network's nftables rules begin with."""
    return _digest(network)[:_HASH_LENGTH]


def owner_mark(network: str, owner: AttachmentId) -> str:
    """What those of one attachment's rules begin with."""
    return f"{network_mark(network)}-{_digest(f'{owner.ifname}:{owner.container_id}')[:_HASH_LENGTH]}"


def rule_comment(network: str, owner: AttachmentId) -> str:
    names = [name.replace('"', "") for name in (network, owner.ifname, owner.container_id)]
    whole = "{}, net: {}, if: {}, id: {}".format(owner_mark(network, owner), *names)
    return whole.encode("utf-8", "surrogateescape")[:_LONGEST_COMMENT].decode("utf-8", "ignore")


def guard_chain(owner: AttachmentId) -> str:
    return f"cni-br-iface-{owner.container_id}-{owner.ifname}"


def guard_comment(owner: AttachmentId) -> str:
    return f"macspoofchk-{owner.container_id}-{owner.ifname}"
