"""What is asked of allocation, and what came of it, as values."""

from __future__ import annotations

from domain.ipam.address import BITS, Address, Cidr
from domain.ipam.affinity import Owner
from domain.ipam.block import Attribute
from domain.ipam.pools import WORKLOAD
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_BLOCK_LIMIT = 20
NO_POOLS: Mapping[int, tuple[Cidr, ...]] = {}


class AssignRequest(Value):
    """Automatic addresses for one holder.

    `counts` and `pools` are by IP version; a version without pools is served from whichever pools select the node.
    `secondary` describes the holder; its `timestamp` makes it unique to one call, by which a call recognises its own
    writes. `max_blocks` 0 leaves the limit to the configuration. `max_per_handle` 0 is no limit. Automatic
    assignment leaves `busy` addresses alone: a device of the node has them.
    """

    owner: Owner
    handle: str
    secondary: Mapping[str, str]
    counts: Mapping[int, int]
    pools: Mapping[int, tuple[Cidr, ...]] = NO_POOLS
    namespace_labels: Mapping[str, str] | None = None
    use: str = WORKLOAD
    max_blocks: int = 0
    max_per_handle: int = 0
    busy: tuple[Cidr, ...] = ()

    @property
    def attribute(self) -> Attribute:
        return Attribute(self.handle, self.secondary)


class Taken(Value):
    """One address given out. `sequence` is what the block remembers for it; a release that names it frees only this."""

    block: Cidr
    ordinal: int
    sequence: int

    @property
    def address(self) -> Address:
        return self.block.at(self.ordinal)

    @property
    def in_block(self) -> Cidr:
        """The address with the block's mask: the form in which automatic addresses are answered."""
        return Cidr(self.block.version, self.address.number, self.block.length)

    @property
    def alone(self) -> Cidr:
        return Cidr(self.block.version, self.address.number, BITS[self.block.version])


class Assigned(Value):
    """What one IP version got: perhaps less than `requested`, with messages that say why."""

    version: int
    requested: int
    taken: tuple[Taken, ...] = ()
    messages: tuple[str, ...] = ()

    @property
    def shortfall(self) -> str:
        """The original's text for a request that was not met in full; "" when it was."""
        if len(self.taken) >= self.requested:
            return ""
        first = f"Assigned {len(self.taken)} out of {self.requested} requested IPv{self.version} addresses"
        return "; ".join([first, *self.messages])
