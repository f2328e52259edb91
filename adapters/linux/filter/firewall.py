"""The `Firewall` port over the system's iptables and nft commands.

Invariant: removing succeeds where this system lacks the command, since then there are no rules of its making.
"""

from __future__ import annotations

from adapters.linux.filter.iptables import Iptables
from adapters.linux.filter.nftables import Nftables
from adapters.linux.filter.tools import ToolFailed, Tools
from domain.bridge.conf import IPTABLES, NFTABLES
from ports.errors import Refused
from ports.firewall import Firewall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from domain.bridge.conf import AttachmentId
    from domain.ipam.address import Cidr
    from ports.clock import Clock, Deadline
    from ports.firewall import RuleOwner


class LinuxFirewall(Firewall):
    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._tools = Tools(environment, clock)
        self._iptables, self._nftables = Iptables(self._tools), Nftables(self._tools)

    def choose_backend(self, wanted: str, deadline: Deadline) -> str:
        for name, usable in ((IPTABLES, self._iptables.usable), (NFTABLES, self._nftables.usable)):
            if wanted in {"", name} and usable(deadline):
                return name
        raise Refused(f"cannot masquerade: {wanted or 'neither iptables nor nftables'} does not work on this host")

    def masquerade(self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        try:
            if backend == NFTABLES:
                self._nftables.masquerade(owner, addresses, deadline)
            else:
                self._iptables.masquerade(owner, addresses, deadline)
        except ToolFailed as error:
            raise Refused(str(error)) from error

    def missing_masquerade(
        self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline
    ) -> tuple[Cidr, ...]:
        by = self._nftables if backend == NFTABLES else self._iptables
        return by.missing(owner, addresses, deadline)

    def stop_masquerade(self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        try:
            if backend != NFTABLES:
                self._iptables.stop(owner, addresses, deadline)
            if backend != IPTABLES and self._tools.find("nft"):
                self._nftables.stop(owner, deadline)
        except ToolFailed as error:
            raise Refused(str(error)) from error

    def collect_masquerade(self, network: str, valid: Iterable[AttachmentId], deadline: Deadline) -> None:
        kept = tuple(valid)
        try:
            self._iptables.collect(network, kept, deadline)
            if self._tools.find("nft"):
                self._nftables.collect(network, kept, deadline)
        except ToolFailed as error:
            raise Refused(str(error)) from error

    def guard(self, owner: RuleOwner, host_name: str, mac: str, deadline: Deadline) -> None:
        self._nftables.guard(owner, host_name, mac, deadline)

    def is_guarded(self, owner: RuleOwner, deadline: Deadline) -> bool:
        return self._nftables.is_guarded(owner, deadline)

    def stop_guarding(self, owner: RuleOwner, deadline: Deadline) -> None:
        if self._tools.find("nft"):
            self._nftables.stop_guarding(owner, deadline)
