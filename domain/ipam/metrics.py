"""What an inventory comes to in numbers, for whoever watches a cluster: Prometheus' names, labels and values.

Where Calico's kube-controllers have a number of the same meaning, it has their name and labels, so that dashboards that
people have go on working: `ipam_…`, by `ippool` and `node`. What is ours begins with `tortie_ipam_`.

Invariant: pure; a pool, and each node with a block in it, has its series even at zero.
"""

from __future__ import annotations

from domain.ipam.inventory import LEAK
from domain.ipam.kept import is_kept, is_over, is_unused
from domain.ipam.pools import pool_of
from domain.ipam.utilisation import FREE, is_borrowed, utilisation
from domain.moment import SECOND
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from domain.ipam.block import Attribute
    from domain.ipam.inventory import Finding, Inventory
    from domain.ipam.utilisation import BlockUse, PoolUse

    Labels: TypeAlias = tuple[str, ...]

NO_POOL, NO_AFFINITY = "no_ippool", "no_affinity"  # kube-controllers' words
NO_NODE = "no_node"  # an address of which nobody has said where it is used
STATES = ("free", "used", "borrowed", "cooling", "reserved")  # as domain/ipam/utilisation numbers them

KEPT_STATES = ("used", "unused", "over")

SIZE, BLOCKS = "ipam_ippool_size", "ipam_blocks"
IN_USE, BORROWED, LEAKED = "ipam_allocations_in_use", "ipam_allocations_borrowed", "ipam_allocations_gc_candidates"
FREE_ADDRESSES, COOLING = "tortie_ipam_addresses_free", "tortie_ipam_addresses_cooling"
RESERVED, ENABLED = "tortie_ipam_addresses_reserved", "tortie_ipam_ippool_enabled"
PLACES, FULL, EMPTY = "tortie_ipam_blocks_max", "tortie_ipam_blocks_full", "tortie_ipam_blocks_empty"
KEPT = "tortie_ipam_addresses_kept"
OF_BLOCK = "tortie_ipam_block_addresses"
HANDLES, ENDPOINTS, NODES = "tortie_ipam_handles", "tortie_ipam_endpoints", "tortie_ipam_nodes"
FINDINGS, LOOKED = "tortie_ipam_findings", "tortie_ipam_look_timestamp_seconds"

# Name, labels, and what it is; in the order in which they are shown.
KNOWN: tuple[tuple[str, Labels, str], ...] = (
    (SIZE, ("ippool",), "Addresses of the pool's CIDR."),
    (BLOCKS, ("ippool", "node"), "Blocks, by the node that they are affine to."),
    (IN_USE, ("ippool", "node"), "Addresses that somebody holds, by the node where they are used."),
    (BORROWED, ("ippool", "node"), "Addresses used on another node than their block's."),
    (LEAKED, ("ippool", "node"), "Addresses whose container, machine or node is gone: tortie ipam gc --leaked."),
    (FREE_ADDRESSES, ("ippool",), "Addresses that could be given out, in blocks or not."),
    (COOLING, ("ippool",), "Addresses released so recently that nobody gets them yet."),
    (RESERVED, ("ippool",), "Addresses in an IPReservation, held or not."),
    (KEPT, ("ippool", "state"), "Addresses that stay with a name: a pod has it, nobody has it, or its time is over."),
    (ENABLED, ("ippool",), "1 if addresses are given out of the pool, else 0."),
    (PLACES, ("ippool",), "Blocks that the pool has room for."),
    (FULL, ("ippool",), "Blocks without a free address."),
    (EMPTY, ("ippool",), "Blocks in which nobody holds an address."),
    (
        OF_BLOCK,
        ("ippool", "node", "block", "state"),
        "Addresses of each block, by what they are; used excludes borrowed.",
    ),
    (HANDLES, (), "Records of handles."),
    (ENDPOINTS, (), "Workload endpoints."),
    (NODES, (), "Nodes."),
    (FINDINGS, ("level", "kind"), "What tortie ipam check finds."),
    (LOOKED, (), "When these numbers were taken."),
)


class Metric(Value):
    """A gauge. `samples` are (values of `labels`, number), sorted."""

    name: str
    about: str
    labels: tuple[str, ...]
    samples: tuple[tuple[tuple[str, ...], int], ...]


def metrics(inventory: Inventory, findings: Iterable[Finding], *, blocks: bool = False) -> tuple[Metric, ...]:
    """In a fixed order. With `blocks` also each block by itself: in a large cluster these are many series."""
    counts = _Counts()
    records = [block for block, _ in inventory.blocks.values()]
    cooldown = inventory.config.cooldown_seconds
    use = utilisation(inventory.pools, records, inventory.reservations, inventory.now, cooldown)
    for pool in use.pools:
        _count_pool(counts, pool)
    for name, block in (
        *[(pool.name, block) for pool in use.pools for block in pool.blocks],
        *[(NO_POOL, block) for block in use.strays],
    ):
        _count_block(counts, inventory, name, block)
        if blocks:
            _count_states(counts, name, block)
    for finding in findings:
        _count_finding(counts, inventory, finding)
    numbers = (len(inventory.handles), len(inventory.endpoints), len(inventory.nodes), inventory.now // SECOND)
    for metric, number in zip((HANDLES, ENDPOINTS, NODES, LOOKED), numbers):
        counts.add(metric, (), number)
    return tuple([Metric(name, about, labels, counts.of(name)) for name, labels, about in KNOWN if counts.of(name)])


class _Counts:
    def __init__(self) -> None:
        self._numbers: dict[str, dict[Labels, int]] = {}

    def add(self, name: str, labels: Labels, number: int = 1) -> None:
        of_name = self._numbers.setdefault(name, {})
        of_name[labels] = of_name.get(labels, 0) + number

    def of(self, name: str) -> tuple[tuple[Labels, int], ...]:
        return tuple(sorted(self._numbers.get(name, {}).items()))


def _count_pool(counts: _Counts, pool: PoolUse) -> None:
    space = pool.space
    full = sum(1 for block in pool.blocks if not block.space.free)
    empty = sum(1 for block in pool.blocks if not block.space.in_use)
    numbers = {
        SIZE: space.total,
        FREE_ADDRESSES: space.free,
        COOLING: space.cooling,
        RESERVED: space.reserved,
        ENABLED: int(pool.enabled),
        PLACES: pool.places,
        FULL: full,
        EMPTY: empty,
    }
    for name, number in numbers.items():
        counts.add(name, (pool.name,), number)
    for state in KEPT_STATES:
        counts.add(KEPT, (pool.name, state), 0)


def _count_block(counts: _Counts, inventory: Inventory, pool: str, block: BlockUse) -> None:
    node = _node_of(block)
    counts.add(BLOCKS, (pool, node))
    for name in (IN_USE, BORROWED, LEAKED):
        counts.add(name, (pool, node), 0)
    record, _ = inventory.blocks[block.cidr]
    for ordinal in range(block.cidr.size):
        holder = record.holder(ordinal)
        if holder is not None and not holder.released_at:
            place = (pool, holder.secondary.get("node") or NO_NODE)
            counts.add(IN_USE, place)
            counts.add(BORROWED, place, int(is_borrowed(record, holder)))
            if is_kept(holder):
                counts.add(KEPT, (pool, _kept_state(holder, inventory.now)))


def _kept_state(holder: Attribute, now: int) -> str:
    used, unused, over = KEPT_STATES
    return over if is_over(holder, now) else unused if is_unused(holder) else used


def _count_states(counts: _Counts, pool: str, block: BlockUse) -> None:
    for state, word in enumerate(STATES, FREE):
        counts.add(OF_BLOCK, (pool, _node_of(block), str(block.cidr), word), block.states.count(state))


def _count_finding(counts: _Counts, inventory: Inventory, finding: Finding) -> None:
    counts.add(FINDINGS, (finding.level, finding.kind))
    if finding.level == LEAK and finding.address is not None:
        pool = pool_of(inventory.pools, finding.address)
        counts.add(LEAKED, (pool.metadata.name if pool else NO_POOL, finding.holder.get("node") or NO_NODE))


def _node_of(block: BlockUse) -> str:
    """The node that it is affine to; `virtual:…` for what is no node."""
    return (block.owner or NO_AFFINITY).removeprefix("host:")
