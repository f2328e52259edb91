"""What is asked of allocation, and what came of it, as values.

Invariant: an answer names each address with the block and the sequence number that give it back.
"""

from __future__ import annotations

from domain.ipam.address import BITS, Address, Cidr
from domain.ipam.block import Attribute, Owner
from domain.ipam.errors import BlockLimitReached, IpamError
from domain.ipam.pools import WORKLOAD
from domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.block import HostReservedAttr

DEFAULT_BLOCK_LIMIT = 20
NO_POOLS: Mapping[int, tuple[Cidr, ...]] = {}
NOTHING_RESERVED: Mapping[int, HostReservedAttr] = {}


class AssignRequest(Value):
    """Automatic addresses for one holder.

    `counts` and `pools` are by IP version; a version without pools is served from whichever pools select the node.
    `secondary` describes the holder; its `timestamp` makes it unique to one call, by which a call recognises its own
    writes. `max_blocks` 0 leaves the limit to the configuration. `max_per_handle` is how many addresses of a version
    the holder may have in all, 0 without a limit. Automatic assignment leaves `busy` addresses alone: a device of the
    node has them.

    `host_reserved` is what the host keeps for itself in each block that it claims, by IP version. On a Windows node
    (`on_windows`) nothing may be borrowed, so the settings must say so. With `optional_families` a version that no
    pool serves by itself is left out, as long as another one is served. `on_known_node`: the node is known to have a
    record.
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
    host_reserved: Mapping[int, HostReservedAttr] = NOTHING_RESERVED
    on_windows: bool = False
    optional_families: bool = False
    on_known_node: bool = False

    @property
    def attribute(self) -> Attribute:
        return Attribute(self.handle, self.secondary)

    def longest_block(self, version: int) -> int:
        """The longest prefix of a block that has room for what the host keeps, and more."""
        host_reserved = self.host_reserved.get(version)
        if host_reserved is None:
            return BITS[version]
        if host_reserved.start < 0 or host_reserved.end < 0 or not host_reserved.start + host_reserved.end:
            raise IpamError("HostReservedAttr has wrong parameters")
        return BITS[version] - (host_reserved.start + host_reserved.end).bit_length()


class Allocation(Value):
    """One address given out. `sequence` is what the block remembers for it; a release that names it frees only this.

    `held_before`: the holder had it before the call, which therefore must not take it back.
    """

    block: Cidr
    ordinal: int
    sequence: int
    held_before: bool = False

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

    @property
    def answer(self) -> Cidr:
        """What an automatic assignment answers."""
        return self.alone if self.held_before else self.in_block


class Assigned(Value):
    """What one IP version got: perhaps less than `requested`, with messages that say why.

    `host_reserved` is what the host keeps for itself in each block.
    """

    version: int
    requested: int
    allocations: tuple[Allocation, ...] = ()
    messages: tuple[str, ...] = ()
    host_reserved: HostReservedAttr | None = None

    @property
    def shortfall(self) -> str:
        """The original's text for a request that was not met in full; "" when it was."""
        if len(self.allocations) >= self.requested:
            return ""
        first = f"Assigned {len(self.allocations)} out of {self.requested} requested IPv{self.version} addresses"
        last = [f"HostReservedAttr: {self.host_reserved.handle}"] if self.host_reserved else []
        return "; ".join([first, *self.messages, *last])


class StoppedAtBlockLimit(BlockLimitReached):
    """The same of a whole assignment. `assigned` is what it had got until then."""

    def __init__(self, reached: BlockLimitReached, assigned: Assigned) -> None:
        super().__init__(reached.limit, reached.owned, reached.setting)
        self.assigned = assigned
