"""A packet filter that remembers who asked for what.

Invariant: a back end that does not work has no rules.
"""

from __future__ import annotations

from ports.errors import Expired, Refused
from ports.firewall import Firewall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.bridge.conf import AttachmentId
    from domain.ipam.address import Cidr
    from ports.clock import Clock, Deadline
    from ports.firewall import RuleOwner

_BACKENDS = ("iptables", "nftables")


class MemoryFirewall(Firewall):
    """`working` are the back ends that this machine has; `masqueraded` and `guarded` the rules that there are.

    `failing` maps a verb to the error that it raises.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.working = set(_BACKENDS)
        self.masqueraded: dict[tuple[str, RuleOwner], tuple[Cidr, ...]] = {}
        self.guarded: dict[RuleOwner, tuple[str, str]] = {}
        self.failing: dict[str, Exception] = {}

    def _begin(self, verb: str, deadline: Deadline) -> None:
        if deadline.passed(self._clock.monotonic()):
            raise Expired("the packet filter")
        if verb in self.failing:
            raise self.failing[verb]

    def choose_backend(self, wanted: str, deadline: Deadline) -> str:
        self._begin("choose_backend", deadline)
        for name in _BACKENDS:
            if name in self.working and wanted in {"", name}:
                return name
        raise Refused(f"cannot masquerade: {wanted or 'neither iptables nor nftables'} does not work on this host")

    def masquerade(self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        self._begin("masquerade", deadline)
        self.masqueraded[backend, owner] = addresses

    def missing_masquerade(
        self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline
    ) -> tuple[Cidr, ...]:
        self._begin("missing_masquerade", deadline)
        present = self.masqueraded.get((backend, owner), ())
        return tuple([cidr for cidr in addresses if cidr not in present])

    def stop_masquerade(self, backend: str, owner: RuleOwner, addresses: tuple[Cidr, ...], deadline: Deadline) -> None:
        self._begin("stop_masquerade", deadline)
        for name in _BACKENDS if not backend else (backend,):
            left = [cidr for cidr in self.masqueraded.pop((name, owner), ()) if addresses and cidr not in addresses]
            if left:
                self.masqueraded[name, owner] = tuple(left)

    def collect_masquerade(self, network: str, valid: Iterable[AttachmentId], deadline: Deadline) -> None:
        self._begin("collect_masquerade", deadline)
        kept = set(valid)
        containers = {one.container_id for one in kept}
        for backend, owner in list(self.masqueraded):
            if owner.network != network or owner.attachment in kept:
                continue
            if backend == "nftables" or owner.attachment.container_id not in containers:
                del self.masqueraded[backend, owner]

    def guard(self, owner: RuleOwner, host_name: str, mac: str, deadline: Deadline) -> None:
        self._begin("guard", deadline)
        self.guarded[owner] = (host_name, mac)

    def is_guarded(self, owner: RuleOwner, deadline: Deadline) -> bool:
        self._begin("is_guarded", deadline)
        return owner in self.guarded

    def stop_guarding(self, owner: RuleOwner, deadline: Deadline) -> None:
        self._begin("stop_guarding", deadline)
        self.guarded.pop(owner, None)
