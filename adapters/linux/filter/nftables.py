"""Masquerading and MAC spoof checks with nftables. Rules carry their owner in their comment, and are deleted by handle.

    table inet cni_plugins_masquerade: chain masq_checks, entered from postrouting, one rule per address
    table bridge nat: chain PREROUTING → cni-br-iface-<container>-<interface> → …-mac: return for its MAC, drop the rest

Invariant: names and rules are those of the reference plugin, so that both may work on one host; each change is one
transaction.
"""

from __future__ import annotations

from adapters.linux.filter.tools import ToolFailed
from domain.bridge.marks import guard_chain, guard_comment, network_mark, owner_mark, rule_comment
from domain.ipam.address import V4
from domain.json_text import JsonError, parse
from ports.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adapters.linux.filter.tools import Tools
    from domain.bridge.conf import AttachmentId
    from domain.ipam.address import Cidr
    from ports.clock import Deadline
    from ports.firewall import RuleOwner

_NFT = "nft"
_TABLE, _CHAIN = "inet cni_plugins_masquerade", "masq_checks"
_GUARDS = "bridge nat"
_GUARDS_CHAIN = "PREROUTING"
_DECLARATION = f"""\
add table {_TABLE} {{ comment "Masquerading for plugins from github.com/containernetworking/plugins" ; }}
add chain {_TABLE} {_CHAIN} {{ comment \
"Masquerade traffic from certain IPs to any (non-multicast) IP outside their subnet" ; }}
add chain {_TABLE} postrouting {{ type nat hook postrouting priority srcnat ; }}
flush chain {_TABLE} postrouting
add rule {_TABLE} postrouting ip daddr 224.0.0.0/4 return
add rule {_TABLE} postrouting ip6 daddr ff00::/8 return
add rule {_TABLE} postrouting goto {_CHAIN}
"""


class Nftables:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def usable(self, deadline: Deadline) -> bool:
        if not self._tools.find(_NFT):
            return False
        try:
            self._tools.run(_NFT, ("list", "tables"), deadline)
        except ToolFailed:
            return False
        return True

    def masquerade(self, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        stale = self._handles(owner_mark(owner.network, owner.attachment), deadline)
        comment = rule_comment(owner.network, owner.attachment)
        rules = [f'add rule {_TABLE} {_CHAIN} {_match(cidr)} masquerade comment "{comment}"' for cidr in addresses]
        self._apply(_DECLARATION + "\n".join([*_deletions(_TABLE, _CHAIN, stale), *rules, ""]), deadline)

    def missing(self, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> tuple[Cidr, ...]:
        """By the text of the rules, since comparing their JSON would mean to know how nft breaks them up."""
        try:
            listed = self._tools.run(_NFT, ("-n", "list", "chain", *_TABLE.split(), _CHAIN), deadline)
        except ToolFailed:
            return addresses
        mark = owner_mark(owner.network, owner.attachment)
        own = [line for line in listed.splitlines() if f'"{mark}' in line]
        return tuple([cidr for cidr in addresses if not any(_match(cidr) + " masquerade" in line for line in own)])

    def stop(self, owner: RuleOwner, deadline: Deadline) -> None:
        self._delete(lambda comment: comment.startswith(owner_mark(owner.network, owner.attachment)), deadline)

    def collect(self, network: str, valid: Iterable[AttachmentId], deadline: Deadline) -> None:
        kept = tuple([owner_mark(network, one) for one in valid])
        mark = network_mark(network) + "-"
        self._delete(lambda comment: comment.startswith(mark) and not comment.startswith(kept), deadline)

    def guard(self, owner: RuleOwner, host_name: str, mac: str, deadline: Deadline) -> None:
        """Declared first, since only what exists can be flushed."""
        chain, comment = guard_chain(owner.attachment), guard_comment(owner.attachment)
        declaration = (
            f"add table {_GUARDS}\n"
            f"add chain {_GUARDS} {_GUARDS_CHAIN} {{ type filter hook prerouting priority -300 ; policy accept ; }}\n"
            f"add chain {_GUARDS} {chain}\nadd chain {_GUARDS} {chain}-mac\n"
        )
        rules = (
            f"flush chain {_GUARDS} {chain}\nflush chain {_GUARDS} {chain}-mac\n"
            f'add rule {_GUARDS} {_GUARDS_CHAIN} iifname "{host_name}" jump {chain} comment "{comment}"\n'
            f'add rule {_GUARDS} {chain} jump {chain}-mac comment "{comment}"\n'
            f'add rule {_GUARDS} {chain}-mac ether saddr {mac} return comment "{comment}"\n'
            f'add rule {_GUARDS} {chain}-mac drop comment "{comment}"\n'
        )
        try:
            self._apply(declaration + rules, deadline)
        except Refused as error:
            raise Refused(f"failed to setup spoof-check: {error}") from error

    def is_guarded(self, owner: RuleOwner, deadline: Deadline) -> bool:
        chain = guard_chain(owner.attachment)
        return bool(
            self._guard_entries(owner, deadline)
            and self._listed(_GUARDS, chain, deadline)
            and len(self._listed(_GUARDS, chain + "-mac", deadline) or ()) > 1
        )

    def stop_guarding(self, owner: RuleOwner, deadline: Deadline) -> None:
        chain = guard_chain(owner.attachment)
        lines = _deletions(_GUARDS, _GUARDS_CHAIN, self._guard_entries(owner, deadline))
        lines += [
            f"{verb} chain {_GUARDS} {name}"
            for verb in ("flush", "delete")  # the first chain jumps to the second
            for name in (chain, chain + "-mac")
            if self._listed(_GUARDS, name, deadline) is not None
        ]
        if not lines:
            return
        try:
            self._apply("\n".join([*lines, ""]), deadline)
        except Refused as error:
            raise Refused(f"failed to teardown spoof-check: {error}") from error

    def _guard_entries(self, owner: RuleOwner, deadline: Deadline) -> list[int]:
        comment = guard_comment(owner.attachment)
        listed = self._listed(_GUARDS, _GUARDS_CHAIN, deadline) or []
        return [handle for handle, found in listed if found == comment]

    def _delete(self, chosen: Callable[[str], bool], deadline: Deadline) -> None:
        """Once more where somebody else has deleted one of them since they were listed."""
        for last in (False, True):
            rules = self._listed(_TABLE, _CHAIN, deadline) or []
            lines = _deletions(_TABLE, _CHAIN, [handle for handle, comment in rules if chosen(comment)])
            if not lines:
                return
            try:
                self._apply("\n".join([*lines, ""]), deadline)
            except Refused:
                if last:
                    raise
            else:
                return

    def _handles(self, mark: str, deadline: Deadline) -> list[int]:
        rules = self._listed(_TABLE, _CHAIN, deadline) or []
        return [handle for handle, comment in rules if comment.startswith(mark)]

    def _listed(self, table: str, chain: str, deadline: Deadline) -> list[tuple[int, str]] | None:
        """(handle, comment) of each rule; None if there is no such chain."""
        try:
            answer = parse(self._tools.run(_NFT, ("-j", "-a", "list", "chain", *table.split(), chain), deadline))
        except (ToolFailed, JsonError):
            return None
        members = answer.get("nftables", []) if isinstance(answer, dict) else []
        found = []
        for member in members if isinstance(members, list) else ():
            rule = member.get("rule") if isinstance(member, dict) else None
            if isinstance(rule, dict) and isinstance(handle := rule.get("handle"), int):
                found.append((handle, str(rule.get("comment", ""))))
        return found

    def _apply(self, commands: str, deadline: Deadline) -> None:
        try:
            self._tools.run(_NFT, ("-f", "-"), deadline, commands)
        except ToolFailed as error:
            raise Refused(str(error)) from error


def _match(cidr: Cidr) -> str:
    family = "ip" if cidr.version == V4 else "ip6"
    return f"{family} saddr {cidr.address} {family} daddr != {cidr.network}"


def _deletions(table: str, chain: str, handles: list[int]) -> list[str]:
    return [f"delete rule {table} {chain} handle {handle}" for handle in handles]
