"""Masquerading with iptables: one chain per container in table nat, entered from POSTROUTING by source address.

    -A POSTROUTING -s 10.9.0.5 -m comment --comment 'name: "n1" id: "c1"' -j CNI-…
    -A CNI-…       -d 10.9.0.0/24  -m comment … -j ACCEPT
    -A CNI-…     ! -d 224.0.0.0/4  -m comment … -j MASQUERADE

Invariant: rules are those of the reference plugin to the letter; each is there once.
"""

from __future__ import annotations

from adapters.linux.filter.tools import ToolFailed
from domain.bridge.conf import AttachmentId
from domain.bridge.marks import chain, chain_comment
from domain.ipam.address import V4, V6
from ports.firewall import RuleOwner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.linux.filter.tools import Tools
    from domain.ipam.address import Cidr
    from ports.clock import Deadline

_TOOLS = {V4: "iptables", V6: "ip6tables"}
_MULTICAST = {V4: "224.0.0.0/4", V6: "ff00::/8"}
_POSTROUTING = "POSTROUTING"
_WAIT = "30"  # seconds for the lock that all iptables commands share


class Iptables:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def usable(self, deadline: Deadline) -> bool:
        return bool(self._tools.find(_TOOLS[V4])) and self._listed(V4, _POSTROUTING, deadline) is not None

    def masquerade(self, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        for cidr in addresses:
            rules = _rules(owner, cidr)
            if self._listed(cidr.version, _chain(owner), deadline) is None:
                self._restore(cidr.version, owner, rules, deadline)
                continue
            for rule in rules:
                if not self._has(cidr.version, rule, deadline):
                    self._run(cidr.version, ("-A", *rule), deadline)

    def missing(self, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> tuple[Cidr, ...]:
        return tuple(
            [
                cidr
                for cidr in addresses
                if not all(self._has(cidr.version, rule, deadline) for rule in _rules(owner, cidr))
            ]
        )

    def stop(self, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        versions = {cidr.version for cidr in addresses} or {V4, V6}
        for version in sorted(versions):
            if not self._tools.find(_TOOLS[version]):
                continue
            sources = {text for cidr in addresses for text in _sources(cidr)}
            left = 0
            for source in self._entries(version, owner, deadline):
                if not addresses or source in sources:
                    self._run(version, ("-D", *_entry(owner, source)), deadline)
                else:
                    left += 1
            if not left and self._listed(version, _chain(owner), deadline) is not None:
                self._run(version, ("-F", _chain(owner)), deadline)
                self._run(version, ("-X", _chain(owner)), deadline)

    def collect(self, network: str, valid: Iterable[AttachmentId], deadline: Deadline) -> None:
        """By the names in the comments; a container of which any interface is valid keeps its rules."""
        kept = {one.container_id for one in valid}
        for version in (V4, V6):
            if not self._tools.find(_TOOLS[version]):
                continue
            lines = self._listed(version, _POSTROUTING, deadline) or ()
            named = {container for line in lines if (container := _container_in(line, network))}
            for container in sorted(named - kept):
                self.stop(RuleOwner(network, AttachmentId(container)), (), deadline)

    def _entries(self, version: int, owner: RuleOwner, deadline: Deadline) -> list[str]:
        """The source addresses by which packets enter the container's chain, as iptables prints them."""
        found = []
        for line in self._listed(version, _POSTROUTING, deadline) or ():
            words = line.split()
            if words[-2:] == ["-j", _chain(owner)] and "-s" in words:
                found.append(words[words.index("-s") + 1])
        return found

    def _restore(self, version: int, owner: RuleOwner, rules: tuple[tuple[str, ...], ...], deadline: Deadline) -> None:
        """A new chain and all its rules in one transaction."""
        lines = ["*nat", f":{_chain(owner)} - [0:0]"]
        lines += ["-A " + " ".join([_quoted(word) for word in rule]) for rule in rules]
        text = "\n".join([*lines, "COMMIT", ""])
        self._tools.run(f"{_TOOLS[version]}-restore", ("--noflush", "-w", _WAIT), deadline, text)

    def _listed(self, version: int, name: str, deadline: Deadline) -> list[str] | None:
        """The chain's rules, or None for a missing chain, which iptables tells by failing to list it."""
        try:
            return self._run(version, ("-S", name), deadline).splitlines()
        except ToolFailed:
            return None

    def _has(self, version: int, rule: tuple[str, ...], deadline: Deadline) -> bool:
        try:
            self._run(version, ("-C", *rule), deadline)
        except ToolFailed:
            return False
        return True

    def _run(self, version: int, arguments: tuple[str, ...], deadline: Deadline) -> str:
        return self._tools.run(_TOOLS[version], ("-w", _WAIT, "-t", "nat", *arguments), deadline)


def _container_in(line: str, network: str) -> str:
    """Whose rule of that network a listed one is, by its comment; "" for any other."""
    before, _, _ = chain_comment(network, "").replace('"', '\\"').rpartition('\\"')
    container = line.partition(f'--comment "{before}')[2].partition('\\"')[0]
    return container if container and line.endswith(f"-j {chain(network, container)}") else ""


def _chain(owner: RuleOwner) -> str:
    return chain(owner.network, owner.attachment.container_id)


def _rules(owner: RuleOwner, cidr: Cidr) -> tuple[tuple[str, ...], ...]:
    name = _chain(owner)
    comment = ("-m", "comment", "--comment", chain_comment(owner.network, owner.attachment.container_id))
    return (
        (name, "-d", str(cidr.network), *comment, "-j", "ACCEPT"),
        (name, "!", "-d", _MULTICAST[cidr.version], *comment, "-j", "MASQUERADE"),
        _entry(owner, str(cidr.address)),
    )


def _entry(owner: RuleOwner, source: str) -> tuple[str, ...]:
    comment = chain_comment(owner.network, owner.attachment.container_id)
    return (_POSTROUTING, "-s", source, "-m", "comment", "--comment", comment, "-j", _chain(owner))


def _sources(cidr: Cidr) -> tuple[str, str]:
    """As the rule prints its source: the address alone, and in older plugins with its subnet's length."""
    return str(cidr.address.host_cidr), str(cidr.network)


def _quoted(word: str) -> str:
    """As iptables-restore reads it."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' if set(word) & set(' "\\') else word
