"""Automatic assignment: from the node's own blocks first, then from new ones, then borrowed (spec: ipam 7–9).

All that the choice depends on is fetched at once. Each address taken is registered for undo on the spot, so that a
later failure, of this family or the other, leaks nothing.

Invariant: a call never takes more addresses than it was asked for.
"""

from __future__ import annotations

from domain.ipam.address import V4, V6, covers
from domain.ipam.config import AllocationConfig
from domain.ipam.errors import BlockLimitReached, IpamError, StillContended
from domain.ipam.pools import PoolRequest, choose_pools, deselects, pool_of
from domain.ipam.request import DEFAULT_BLOCK_LIMIT, Assigned, AssignRequest, Taken
from domain.ipam.reservations import reserved_cidrs
from domain.usecases.steps.claim_block import NotOurs, block_behind, claim_block, release_claim
from domain.usecases.steps.find_block import free_place, in_node_order, reclaim
from domain.usecases.steps.free_addresses import free_taken
from domain.usecases.steps.take_addresses import Want, take_addresses
from domain.usecases.steps.work import MAX_TRIES
from ports.datastore import (
    Affinities,
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    Blocks,
    IPPools,
    IPReservations,
    NodeKey,
)
from ports.errors import Missing, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from domain.ipam.address import Cidr
    from domain.ipam.affinity import Affinity
    from domain.ipam.block import Block
    from domain.ipam.pools import PoolChoice
    from domain.usecases.steps.work import Work
    from domain.usecases.undo import Undo
    from ports.datastore import Stored
    from ports.deadline import Deadline

STRICT = "No more free affine blocks and strict affinity enabled"


def auto_assign(work: Work, request: AssignRequest, undo: Undo) -> tuple[Assigned, ...]:
    """What each requested IP version got, IPv4 first. A version may get less than asked; the messages say why.

    Raises IpamError where the original fails the whole call (no pool, block limit); what was taken until then is
    registered with `undo`.
    """
    versions = [version for version in (V4, V6) if request.counts.get(version, 0) > 0]
    if not versions:
        return ()
    config, reservations, node, pools, affinities = work.datastore.fetch(
        AllocationConfigKey(),
        IPReservations(),
        NodeKey(request.owner.name),
        IPPools(),
        Affinities(request.owner, versions[0] if len(versions) == 1 else None),
        deadline=work.deadline,
    )
    if node is None:
        raise Missing(NodeKey(request.owner.name), "Node not found")
    labels = node.record.metadata.labels
    families = []
    for version in versions:
        wanted = PoolRequest(
            version,
            request.owner.name,
            labels,
            request.namespace_labels,
            wanted=request.pools.get(version, ()),
            use=request.use,
        )
        choice = choose_pools([one.record for one in pools], wanted)
        reserved = reserved_cidrs([one.record for one in reservations], version)
        reserved += tuple([one for one in request.busy if one.version == version])
        family = _Family(work, request, choice, reserved, config.record if config else AllocationConfig())
        own = family.sort_out(version, affinities, labels)
        families.append(family.assign(version, own, undo))
    return tuple(families)


class _Family:
    """One IP version's assignment in progress."""

    def __init__(
        self,
        work: Work,
        request: AssignRequest,
        choice: PoolChoice,
        reserved: tuple[Cidr, ...],
        config: AllocationConfig,
    ) -> None:
        self._work = work
        self._request = request
        self._choice = choice
        self._reserved = reserved
        self._config = config
        self._taken: list[Taken] = []
        self._messages: list[str] = []
        self._used: set[Cidr] = set()

    def sort_out(
        self, version: int, affinities: tuple[Stored[Affinity], ...], labels: Mapping[str, str]
    ) -> list[Stored[Affinity]]:
        """The node's affinities in usable pools. Empty blocks in pools that no longer select the node are given up."""
        own: list[Stored[Affinity]] = []
        for affinity in affinities:
            cidr = _cidr(affinity)
            if cidr.version == version and pool_of(self._choice.usable, cidr):
                own.append(affinity)
            elif cidr.version == version and not pool_of(self._choice.selected, cidr):
                pool = pool_of(self._choice.enabled, cidr)
                if pool is not None and deselects(pool, labels):
                    release_claim(self._work, self._request.owner, cidr)
        return own

    def assign(self, version: int, own: list[Stored[Affinity]], undo: Undo) -> Assigned:
        count = self._request.counts[version]
        for affinity in own:
            if len(self._taken) < count and not covers(self._reserved, _cidr(affinity)):
                self._take(self._own_block(affinity), count, undo, affine=True)
        owned = len(own)
        while len(self._taken) < count:
            try:
                block = self._new_block(version, owned)
            except BlockLimitReached as error:
                self._messages.append(
                    "Need to allocate an IPAM block but could not - "
                    f"limit of {error.limit} blocks reached for this node"
                )
                error.assigned = self._so_far(version, count)
                raise
            if block is None:
                self._take_borrowed(version, count, undo)
                break
            owned += 1
            self._take(block, count, undo, affine=True)
        return self._so_far(version, count)

    def _so_far(self, version: int, count: int) -> Assigned:
        return Assigned(version, count, tuple(self._taken), tuple(dict.fromkeys(self._messages)))

    def _take(self, block: Stored[Block] | None, count: int, undo: Undo, *, affine: bool) -> None:
        if block is None:
            return
        self._used.add(block.record.cidr)
        want = Want(
            self._request,
            count - len(self._taken),
            self._reserved,
            self._config.cooldown_seconds,
            affine,
        )
        for taken in take_addresses(self._work, block, want):
            undo.register(f"assign {taken.address}", self._undoing(taken))
            self._taken.append(taken)

    def _undoing(self, taken: Taken) -> Callable[[Deadline], None]:
        return lambda deadline: free_taken(self._work.until(deadline), self._request.handle, taken)

    def _own_block(self, affinity: Stored[Affinity]) -> Stored[Block] | None:
        """The block an affinity of ours leads to, or None when it does not lead to one of ours."""
        try:
            block = self._work.datastore.get(BlockKey(_cidr(affinity)), self._work.deadline)
            return block_behind(self._work, affinity, block)
        except NotOurs:
            return None
        except Refused as error:  # a damaged record: the node's other blocks may still serve
            self._work.log.error("Leaving out a block that cannot be read", block=_cidr(affinity), error=error)
            return None

    def _new_block(self, version: int, owned: int) -> Stored[Block] | None:
        """Claim one more block; None when the pools have none left. IpamError when no more may be claimed."""
        limit, setting = self._block_limit()
        if owned >= limit:
            raise BlockLimitReached(limit, owned, setting)
        if not self._config.auto_allocate_blocks:
            raise IpamError("failed to find or claim a block")
        damaged: list[Cidr] = []
        for _ in range(MAX_TRIES):
            blocks = self._work.datastore.list(Blocks(version), self._work.deadline)
            taken = [one.record.cidr for one in blocks if not self._is_ours_with_room(one)] + damaged
            cidr = free_place(self._work, self._request.owner, self._choice.usable, self._reserved, taken) or reclaim(
                self._work, self._choice.usable, self._reserved, blocks
            )
            if cidr is None:
                return None
            try:
                return claim_block(self._work, self._request.owner, cidr)
            except NotOurs:
                continue
            except Refused as error:
                self._work.log.error("Leaving out a block that cannot be read", block=cidr, error=error)
                damaged.append(cidr)
        raise StillContended(self._request.owner)

    def _block_limit(self) -> tuple[int, str]:
        """How many blocks the node may own, and which setting says so."""
        limits = [
            (self._request.max_blocks, "windows_use_single_network"),
            (self._config.max_blocks_per_host, "maxBlocksPerHost in the IPAM configuration"),
        ]
        default = (DEFAULT_BLOCK_LIMIT, "the default; maxBlocksPerHost in the IPAM configuration changes it")
        return min([limit for limit in limits if limit[0]], default=default)

    def _is_ours_with_room(self, stored: Stored[Block]) -> bool:
        block = stored.record
        return (
            block.affinity == str(self._request.owner)
            and block.cidr not in self._used
            and bool(block.free(self._reserved))
        )

    def _take_borrowed(self, version: int, count: int, undo: Undo) -> None:
        blocks = self._work.datastore.list(Blocks(version), self._work.deadline)
        if self._config.strict_affinity:
            self._messages.append(STRICT)
            self._log_foreign(blocks)
            return
        exhausted: list[str] = []
        for pool in self._choice.usable:
            for block in in_node_order(self._work, self._request.owner, pool, self._reserved, blocks):
                if len(self._taken) < count:
                    self._take(block, count, undo, affine=False)
            if len(self._taken) < count:
                exhausted.append(str(pool.cidr))
        if exhausted:
            self._messages.append(f"No IPs available in pools: [{' '.join(exhausted)}]")

    def _log_foreign(self, blocks: tuple[Stored[Block], ...]) -> None:
        """Say what strict affinity withholds; the answer's text is the original's and says nothing of it."""
        foreign = sum(
            len(one.record.free(self._reserved)) for one in blocks if pool_of(self._choice.usable, one.record.cidr)
        )
        self._work.log.warning(
            "No address can be assigned because strictAffinity forbids to borrow from other nodes' blocks",
            free_in_foreign_blocks=foreign,
            setting="strictAffinity in the IPAM configuration",
        )


def _cidr(affinity: Stored[Affinity]) -> Cidr:
    key = affinity.key
    assert isinstance(key, AffinityKey)  # noqa: S101 - narrows the type
    return key.cidr
