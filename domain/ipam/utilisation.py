"""How full pools and blocks are: what an operator looks at before addresses run out.

Every address of a block is in exactly one state, so that a picture of it has no gaps. Blocks are looked at as an
allocation would see them: what has cooled down is free, although no one has written that yet.

Invariant: a block's states are as many as its addresses, and all counts of one line follow from them.
"""

from __future__ import annotations

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Block
from domain.ipam.pools import Pool, pool_of, reserved_cidrs
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.block import Attribute
    from domain.ipam.pools import IPReservation


FREE, USED, BORROWED, COOLING, RESERVED = range(5)


class Space(Value):
    """Addresses of one pool or block.

    `in_use` are held by somebody; `borrowed` are those of them whose holder is on another node than the block's;
    `cooling` were released a moment ago; `reserved` lie in an IPReservation, held or not; `free` could be given out.
    """

    total: int
    in_use: int = 0
    borrowed: int = 0
    cooling: int = 0
    reserved: int = 0
    free: int = 0


class BlockUse(Value):
    """`owner` is the block's affinity; `states` has one number per address, FREE to RESERVED."""

    cidr: Cidr
    owner: str | None
    space: Space
    states: bytes


class PoolUse(Value):
    """`places` is how many blocks the pool has room for; `reserved` are the reserved ranges in it."""

    name: str
    cidr: Cidr
    enabled: bool
    places: int
    space: Space
    blocks: tuple[BlockUse, ...]
    reserved: tuple[Cidr, ...]


class Utilisation(Value):
    """`strays` are blocks in no pool."""

    pools: tuple[PoolUse, ...]
    strays: tuple[BlockUse, ...]


def is_borrowed(block: Block, holder: Attribute) -> bool:
    """Whether an address is used on another node than the one that the block belongs to."""
    kind, _, owner = (block.affinity or "").partition(":")
    node = holder.secondary.get("node")
    return kind == HOST and bool(node) and node != owner


def outermost(cidrs: Iterable[Cidr]) -> tuple[Cidr, ...]:
    """The CIDRs that lie in no other, each once and as its network, in order of IP version and address."""
    kept: list[Cidr] = []
    for cidr in sorted({cidr.network for cidr in cidrs}, key=lambda cidr: (cidr.version, cidr.number, cidr.length)):
        if not kept or cidr not in kept[-1]:
            kept.append(cidr)
    return tuple(kept)


def block_use(block: Block, reserved: Iterable[Cidr]) -> BlockUse:
    """The state of each address. What the block should have collected is the caller's affair."""
    near = [reserved_cidr for reserved_cidr in outermost(reserved) if reserved_cidr.overlaps(block.cidr)]
    set_aside = {
        ordinal
        for one in near
        for ordinal in range(
            max(one.first, block.cidr.first) - block.cidr.first, min(one.end, block.cidr.end) - block.cidr.first
        )
    }
    states = bytearray(block.cidr.size)
    for ordinal in range(block.cidr.size):
        holder = block.holder(ordinal)
        if holder is not None:
            states[ordinal] = COOLING if holder.released_at else BORROWED if is_borrowed(block, holder) else USED
        elif ordinal in set_aside:
            states[ordinal] = RESERVED
    counts = [states.count(state) for state in range(5)]
    space = Space(
        total=block.cidr.size,
        in_use=counts[USED] + counts[BORROWED],
        borrowed=counts[BORROWED],
        cooling=counts[COOLING],
        reserved=len(set_aside),
        free=counts[FREE],
    )
    return BlockUse(block.cidr, block.affinity, space, bytes(states))


def _shared(one: Cidr, other: Cidr) -> int:
    """How many addresses two prefixes have in common: one of them lies inside the other, or they are apart."""
    return min(one.size, other.size) if one.overlaps(other) else 0


def space_outside(pool: Cidr, reserved: Iterable[Cidr], blocks: Iterable[Cidr]) -> Space:
    """The pool's addresses as if its blocks were full: `free` are those that neither block nor reservation covers."""
    reserved = tuple(reserved)
    gone = sum(_shared(taken, pool) for taken in outermost((*reserved, *blocks)))
    set_aside = sum(_shared(reserved_cidr, pool) for reserved_cidr in outermost(reserved))
    return Space(pool.size, reserved=set_aside, free=pool.size - gone)


def utilisation(
    pools: Iterable[Pool], blocks: Iterable[Block], reservations: Iterable[IPReservation], now: int, cooldown: int
) -> Utilisation:
    """Pools in the order given, each with its blocks in the order of their addresses. `cooldown` is in seconds."""
    reservations, pools = tuple(reservations), tuple([pool for pool in pools if pool.cidr is not None])
    reserved = {version: outermost(reserved_cidrs(reservations, version)) for version in (4, 6)}
    homes: dict[Cidr | None, list[BlockUse]] = {}
    for block in sorted(blocks, key=lambda one: (one.cidr.version, one.cidr.first)):
        home = pool_of(pools, block.cidr)
        use = block_use(block.collect(now, cooldown), reserved[block.cidr.version])
        homes.setdefault(home.cidr if home else None, []).append(use)
    return Utilisation(
        tuple([_pool_use(pool, homes.get(pool.cidr, []), reserved[pool.cidr.version]) for pool in pools if pool.cidr]),
        tuple(homes.get(None, [])),
    )


def _pool_use(pool: Pool, blocks: list[BlockUse], reserved: tuple[Cidr, ...]) -> PoolUse:
    cidr = pool.cidr
    assert cidr is not None  # noqa: S101 - `utilisation` has left out the others
    inside = tuple([reserved_cidr for reserved_cidr in reserved if reserved_cidr.overlaps(cidr)])
    outside = space_outside(cidr, inside, [block.cidr for block in blocks])
    space = outside.replace(
        in_use=sum(block.space.in_use for block in blocks),
        borrowed=sum(block.space.borrowed for block in blocks),
        cooling=sum(block.space.cooling for block in blocks),
        free=outside.free + sum(block.space.free for block in blocks),
    )
    places = 1 << max(pool.block_length - cidr.length, 0)
    enabled = not (pool.disabled or pool.deleting or ("Allocatable", "False") in pool.conditions)
    return PoolUse(pool.metadata.name, cidr, enabled, places, space, tuple(blocks), inside)
