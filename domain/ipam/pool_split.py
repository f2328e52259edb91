"""One IPPool becomes several equal ones, for example so that each half can serve other nodes.

Invariant: the children cover the pool exactly, and every block there is lies in one of them.
"""

from __future__ import annotations

from domain.ipam.address import BITS, Cidr
from domain.ipam.pool_rules import BadPool
from domain.resource import Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.pools import Pool

MOST = 256


def children(pool: Pool, number: int, blocks: Iterable[Cidr]) -> tuple[Pool, ...]:
    """The pools to have instead, settings and labels as the pool's. BadPool says why that is not possible.

    `blocks` are those that there are.
    """
    name, cidr = pool.metadata.name, pool.cidr
    if cidr is None:
        raise BadPool(f"its range {pool.cidr_text!r} is no CIDR", name)
    if not 2 <= number <= MOST or number & (number - 1):
        raise BadPool(f"it cannot be split into {number}; give a power of two from 2 to {MOST}", name)
    length = cidr.length + number.bit_length() - 1
    if length > pool.block_length:
        most = 1 << max(pool.block_length - cidr.length, 0)
        raise BadPool(f"{cidr} has room for {most} blocks of /{pool.block_length}; {number} pools are too many", name)
    for block in blocks:
        if block in cidr and block.length < length:
            raise BadPool(f"block {block} is larger than a pool of /{length} would be; split it into fewer", name)
    size = 1 << (BITS[cidr.version] - length)
    return tuple([_child(pool, Cidr(cidr.version, cidr.first + at * size, length), at) for at in range(number)])


def _child(pool: Pool, cidr: Cidr, at: int) -> Pool:
    about = pool.metadata
    metadata = Metadata(f"split-{about.name}-{at}", labels=about.labels, annotations=about.annotations)
    return pool.replace(metadata=metadata, cidr_text=str(cidr), conditions=(), deleting=False)
