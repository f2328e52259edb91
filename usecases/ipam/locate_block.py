"""In which block an address lives: its pool says so, and where no pool is left, the blocks themselves.

Disabled pools count too: whoever releases an address or looks it up does not care whether new ones are given out.

Invariant: nothing is changed, and blocks are listed at most once for each IP version.
"""

from __future__ import annotations

from domain.ipam.pools import pool_of
from ports.datastore import Blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Address, Cidr
    from domain.ipam.pools import Pool
    from usecases.ipam.work import Work


class BlockLocator:
    """Reads the blocks of an IP version at most once, and only if some address of that version is in no pool."""

    def __init__(self, work: Work, pools: Iterable[Pool]) -> None:
        self._work = work
        self._pools = tuple(pools)
        self._blocks: dict[int, tuple[Cidr, ...]] = {}

    def block_of(self, address: Address) -> Cidr | None:
        """The block's range; whether the block exists is another question. None: in no pool and in no block."""
        pool = pool_of(self._pools, address)
        if pool is not None:
            return address.host_cidr.replace(length=pool.block_length).network
        return next((cidr for cidr in self._existing(address.version) if address in cidr), None)

    def _existing(self, version: int) -> tuple[Cidr, ...]:
        if version not in self._blocks:
            listed = self._work.datastore.list(Blocks(version), self._work.deadline)
            self._blocks[version] = tuple(block.record.cidr for block in listed)
        return self._blocks[version]
