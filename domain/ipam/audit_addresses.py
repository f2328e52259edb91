"""Compare allocated addresses with the workloads that should have them.

An address counts as leaked only if nothing speaks for its holder: tunnels, Windows' own reservations and load balancers
have no endpoint, and a call that is still at work has not written one yet. A virtual machine keeps its addresses while
it is off; they are left over only once it is known to be gone, and no pod with an endpoint owns them. An address that
is kept for a name is nobody's leak: without a pod its time runs, and when that is over it may be given up.

Invariant: pure; an address for whose holder anything speaks is no leak.
"""

from __future__ import annotations

from domain.ipam.address import Address, Cidr
from domain.ipam.audit_blocks import is_vanished
from domain.ipam.block import MACHINE_MARK
from domain.ipam.inventory import COLLECT, INFO, LEAK, Finding
from domain.ipam.kept import KEPT_AS, KEPT_UNTIL, is_kept, is_over, is_unused
from domain.ipam.pools import pool_of, reserved_cidrs
from domain.moment import SECOND, parse_go_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from domain.ipam.block import Attribute, Block
    from domain.ipam.inventory import Inventory
    from domain.workload.endpoint import WorkloadEndpoint

LEAKED, VANISHED_NODE = "address-without-endpoint", "address-of-vanished-node"
VANISHED_MACHINE = "address-of-vanished-machine"
KEPT_WITHOUT_POD, KEPT_TOO_LONG = "kept-address-without-pod", "kept-address-time-is-over"
UNALLOCATED, ANOTHERS = "endpoint-address-not-allocated", "endpoint-address-of-another"
TWICE, IN_RESERVATION = "endpoints-share-address", "address-in-reservation"
LONGEST_CALL = 90  # seconds: the original's budget for one allocation, and more than ours
_NO_ENDPOINT = "its container has no endpoint"
_LEAKED_GC = "run `tortie ipam gc --leaked --yes`, which releases it"
_KEPT_GC = {
    KEPT_WITHOUT_POD: f"{COLLECT}, with which its time begins",
    KEPT_TOO_LONG: f"{COLLECT}, which gives it up, as whoever is short of addresses does",
}


def address_findings(inventory: Inventory) -> Iterator[Finding]:
    endpoints = Endpoints(inventory.endpoints)
    reserved = {version: reserved_cidrs(inventory.reservations, version) for version in (4, 6)}
    for block, _ in inventory.blocks.values():
        for ordinal in range(block.cidr.size):
            holder = _held(block, ordinal)
            if holder is None:
                continue
            if (leak := _leak(inventory, endpoints, block, ordinal)) is not None:
                yield leak
            if any(block.cidr.at(ordinal) in cidr for cidr in reserved[block.cidr.version]):
                reason = "it lies in an IPReservation, which keeps it from being given out again"
                address = block.cidr.at(ordinal)
                yield Finding(
                    *(IN_RESERVATION, str(address), reason, "nothing to do", INFO, describe(holder)), address=address
                )
    holders = Holders(inventory.blocks)
    for address, those in endpoints.by_address.items():
        yield from _of_endpoints(inventory, holders, address, those)


class Endpoints:
    """Endpoints by what they can be found by."""

    def __init__(self, endpoints: tuple[WorkloadEndpoint, ...]) -> None:
        self.containers = frozenset([endpoint.container_id for endpoint in endpoints if endpoint.container_id])
        self._pods = frozenset([(endpoint.metadata.namespace, endpoint.pod) for endpoint in endpoints if endpoint.pod])
        self.by_address: dict[Address, list[WorkloadEndpoint]] = {}
        for endpoint in endpoints:
            for address in endpoint.addresses:
                self.by_address.setdefault(address, []).append(endpoint)

    def speak_for(self, holder: Attribute, address: Address) -> bool:
        """Whether some endpoint is of the holder's container, or has the address as the holder's.

        A pod that has the address uses it, whichever container its endpoint names: of a pod in Kubernetes the kubelet
        says which addresses it has, and an annotation, which an ADD of another sandbox or the pod's owner may have
        written, which container.
        """
        if self.are_of(holder.holder or ""):
            return True
        owners = _owners(holder)
        return any(
            belongs(endpoint, holder) or _pod_of(endpoint) in owners for endpoint in self.by_address.get(address, ())
        )

    def have_owner_of(self, holder: Attribute) -> bool:
        """Whether some endpoint is of a pod that owns, or is about to own, the virtual machine's address."""
        return not self._pods.isdisjoint(_owners(holder))

    def are_of(self, handle: str) -> bool:
        """Whether some endpoint is of the handle's container."""
        tails = [handle[at + 1 :] for at, letter in enumerate(handle) if letter == "."]  # either part may hold dots
        return handle in self.containers or any(tail in self.containers for tail in tails)


def belongs(endpoint: WorkloadEndpoint, holder: Attribute) -> bool:
    """Whether an endpoint's address may be held so: by its container's handle, an old one's, or its pod's machine's."""
    name, container = holder.holder, endpoint.container_id
    if name is None or name in (container, f"{endpoint.metadata.namespace}.{endpoint.pod}"):
        return True
    if container and name.endswith("." + container):
        return True
    shared = not container or is_of_machine(holder) or is_kept(holder)
    return shared and _pod_of(endpoint) in _owners(holder)


def _pod_of(endpoint: WorkloadEndpoint) -> tuple[str, str]:
    return endpoint.metadata.namespace, endpoint.pod


def _owners(holder: Attribute) -> list[tuple[str, str]]:
    slots = (holder.secondary, holder.alternate or {})
    return [(slot["namespace"], slot["pod"]) for slot in slots if "namespace" in slot and "pod" in slot]


def is_of_machine(holder: Attribute) -> bool:
    """Whether a virtual machine holds it, whose pods come and go."""
    return MACHINE_MARK in (holder.holder or "")


def machine_mark(block: Block, ordinal: int) -> str:
    """What names an allocation of a virtual machine together with its owners, each by the time of its call."""
    holder = block.holder(ordinal)
    slots = (holder.secondary, holder.alternate or {}) if holder else ()
    return ";".join([str(block.sequences.get(ordinal, 0)), *[slot.get("timestamp", "") for slot in slots]])


def describe(holder: Attribute) -> dict[str, str]:
    """Who holds an address, in the words that findings use."""
    words = {"handle": holder.holder or "", **{name: holder.secondary.get(name, "") for name in _WORDS}}
    return {name: text for name, text in words.items() if text}


_WORDS = ("node", "namespace", "pod", "type", "timestamp", KEPT_AS, KEPT_UNTIL)


def is_of_container(holder: Attribute) -> bool:
    """Whether the handle is `<network>.<container>`."""
    name = holder.holder or ""
    return "." in name and "type" not in holder.secondary and not is_of_machine(holder)


def is_young(inventory: Inventory, holder: Attribute) -> bool:
    """Whether the call that took the address may still be at work."""
    for owner in (holder.secondary, holder.alternate or {}):
        try:
            age = inventory.now - parse_go_string(owner.get("timestamp", ""))
        except ValueError:
            continue
        if age < LONGEST_CALL * SECOND:
            return True
    return False


def young_addresses(inventory: Inventory) -> int:
    """How many addresses would count as leaked, were they not so young that a call may still be at work on them."""
    endpoints = Endpoints(inventory.endpoints)
    return sum(
        1
        for block, _ in inventory.blocks.values()
        for ordinal in range(block.cidr.size)
        if (holder := _held(block, ordinal)) is not None
        and is_young(inventory, holder)
        and _suspicion(inventory, endpoints, block, ordinal) is not None
    )


def _held(block: Block, ordinal: int) -> Attribute | None:
    """Who uses it. Not what is cooling down, nor what a Windows host keeps for itself."""
    holder = block.holder(ordinal)
    return None if holder is None or holder.released_at or holder.is_hosts_own else holder


def _leak(inventory: Inventory, endpoints: Endpoints, block: Block, ordinal: int) -> Finding | None:
    holder, address = block.holder(ordinal), block.cidr.at(ordinal)
    assert holder is not None  # noqa: S101 - the caller has looked
    suspicion = _suspicion(inventory, endpoints, block, ordinal)
    if suspicion is None or is_young(inventory, holder):
        return None
    kind, reason, mark = suspicion
    advice = _KEPT_GC.get(kind, _LEAKED_GC)
    if inventory.unreadable.endpoints:
        advice = "mend the unreadable endpoint records first: one of them may be its own"
    return Finding(
        kind,
        str(address),
        reason,
        advice,
        level=INFO if kind in _KEPT_GC else LEAK,
        holder=describe(holder),
        repairable=not inventory.unreadable.endpoints,
        address=address,
        block=block.cidr,
        handle=holder.holder or "",
        mark=mark,
    )


def _suspicion(inventory: Inventory, endpoints: Endpoints, block: Block, ordinal: int) -> tuple[str, str, str] | None:
    """Kind, reason and mark of the finding if nothing speaks for the holder."""
    holder, address = block.holder(ordinal), block.cidr.at(ordinal)
    assert holder is not None  # noqa: S101 - the caller has looked
    node = holder.secondary.get("node", "")
    if is_kept(holder):
        left_over = not is_unused(holder) or is_over(holder, inventory.now)
        kind, reason = KEPT_WITHOUT_POD, "it is kept for a name, and the pod that had it has no endpoint"
        if is_unused(holder):
            kind, reason = KEPT_TOO_LONG, "it was kept for a name, for longer than it is to be"
        mark = str(block.sequences.get(ordinal, 0))
    elif is_of_machine(holder):
        left_over = inventory.machines.get(holder.holder or "") is False and not endpoints.have_owner_of(holder)
        kind, reason = VANISHED_MACHINE, "its virtual machine does not exist, and no pod owns it"
        mark = machine_mark(block, ordinal)
    else:
        gone = is_vanished(inventory, node)
        left_over = gone or is_of_container(holder)
        kind, reason = (VANISHED_NODE, f"its node {node} does not exist") if gone else (LEAKED, _NO_ENDPOINT)
        mark = str(block.sequences.get(ordinal, 0))
    return (kind, reason, mark) if left_over and not endpoints.speak_for(holder, address) else None


def _of_endpoints(
    inventory: Inventory, holders: Holders, address: Address, endpoints: list[WorkloadEndpoint]
) -> Iterator[Finding]:
    names = [f"{endpoint.metadata.namespace}/{endpoint.metadata.name}" for endpoint in endpoints]
    found = holders.of(address)
    if len(endpoints) > 1 and not _share_machine(found, endpoints):
        reason = f"{len(endpoints)} endpoints have it: {', '.join(names)}"
        yield Finding(TWICE, str(address), reason, "delete the workload that should not have it", address=address)
    if found is None and pool_of(inventory.pools, address) is None:
        return  # given out by somebody else: another IPAM plugin
    if found is None and any(address in cidr for cidr in inventory.unreadable.blocks):
        return
    for name, endpoint in zip(names, endpoints):
        container = {"endpoint": name, "node": endpoint.node, "container": endpoint.container_id}
        who = {word: text for word, text in container.items() if text}
        advice = "delete the workload and let it be made again"
        if found is None or found[2] is None or found[2].released_at:
            state = "in cooldown" if found is not None and found[2] is not None else "free"
            reason = f"endpoint {name} has it, but it is {state} and can be given to another"
            yield Finding(UNALLOCATED, str(address), reason, advice, holder=who, address=address)
        elif not belongs(endpoint, found[2]):
            reason = f"endpoint {name} has it, but it is allocated to {found[2].holder}"
            holder = {**describe(found[2]), **who}
            yield Finding(ANOTHERS, str(address), reason, advice, holder=holder, address=address)


def _share_machine(found: tuple[Block, int, Attribute | None] | None, endpoints: list[WorkloadEndpoint]) -> bool:
    """Whether they are the source and the target of a live migration, which have the address both."""
    holder = found[2] if found else None
    return holder is not None and is_of_machine(holder) and all(belongs(endpoint, holder) for endpoint in endpoints)


class Holders:
    """Who holds an address, found without walking the blocks."""

    def __init__(self, blocks: Mapping[Cidr, tuple[Block, str]]) -> None:
        self._blocks = blocks
        self._sizes = sorted({(cidr.version, cidr.length) for cidr in blocks})

    def of(self, address: Address) -> tuple[Block, int, Attribute | None] | None:
        """The block with the address, its ordinal there, and who holds it; None when no block has it."""
        for version, length in self._sizes:
            if version == address.version:
                found = self._blocks.get(Cidr(version, address.number, length).network)
                if found is not None:
                    ordinal = found[0].ordinal(address)
                    return found[0], ordinal, found[0].holder(ordinal)
        return None
