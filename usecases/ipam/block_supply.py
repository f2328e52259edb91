"""The blocks that a node may take addresses from, one after the other: its own first, then new ones.

A node that has many blocks has filled most of them, so all but the first are read at once. The listings of its blocks
and of the pools may lag; both are read again before a new block is claimed.

Invariant: a block is handed out at most once, the node never claims more blocks than it may own, and none in a pool
that was off when the claim began.
"""

from __future__ import annotations

from domain.ipam.address import covers
from domain.ipam.errors import BlockLimitReached, IpamError
from domain.ipam.pools import deselects, pool_of
from domain.ipam.request import DEFAULT_BLOCK_LIMIT
from ports.datastore import Affinities, BlockKey, IPPools
from ports.errors import Refused
from usecases.ipam.allocation_terms import cidr_of, renewed
from usecases.ipam.claim_block import BlockClaimConflict, ClaimOvertaken, block_behind, claim_block, release_claim
from usecases.ipam.work import MAX_TRIES, LostRace, until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.block import Affinity, Block
    from ports.datastore import Stored
    from usecases.ipam.allocation_terms import Terms
    from usecases.ipam.claim_place import Places
    from usecases.ipam.work import Work


class BlockSupply:
    """For one IP version of one request. `owned` counts the node's blocks in usable pools, those just claimed too.

    `full` are those of the node's that have too few free addresses.
    """

    def __init__(self, work: Work, terms: Terms, *, limited: bool = True) -> None:
        self._work = work
        self._terms = terms
        self._limited = limited
        self._host_reserved = terms.request.host_reserved.get(terms.version)
        self.owned = 0
        self.full: list[Stored[Block]] = []
        self._own: list[Stored[Affinity]] = []
        self._own_are_all = not terms.may_lag
        self._own_from(terms.affinities)
        self._ahead: dict[Cidr, Stored[Block] | None] = {}
        self._reads_ahead = False  # most often the first block is enough
        self._used: set[Cidr] = set()
        self._places: Places | None = None

    def next(self, least: int = 1) -> Stored[Block] | None:
        """A block with at least that many free addresses; None when the pools have none left for the node.

        BlockLimitReached when the node may not claim another one, IpamError when none may be claimed at all.
        """
        while self._own or self._finds_more():
            block = self._behind(self._own.pop(0))
            if block is None:
                continue
            self._used.add(block.record.cidr)
            if self._free(block) >= least:
                return block
            self.full.append(block)
        self._require_claimable()
        return self._claim(least)

    def _can_serve(self, cidr: Cidr) -> bool:
        fits = cidr.length <= self._terms.request.longest_block(cidr.version)
        return fits and not covers(self._terms.reserved, cidr)

    def _free(self, stored: Stored[Block]) -> int:
        block = stored.record.collect(self._work.clock.now(), self._terms.config.cooldown_seconds)
        return len(block.free(self._terms.reserved))

    # --- own blocks ------------------------------------------------------------------------------------------------

    def _own_from(self, affinities: tuple[Stored[Affinity], ...], seen: tuple[Stored[Affinity], ...] = ()) -> None:
        """These are the node's blocks; those that are new since `seen` are looked at next."""
        own = [affinity for affinity in affinities if pool_of(self._terms.choice.usable, cidr_of(affinity))]
        self.owned = len(own)
        known = {cidr_of(affinity) for affinity in seen}
        new = [affinity for affinity in own if cidr_of(affinity) not in known and self._can_serve(cidr_of(affinity))]
        self._own = sorted(new, key=lambda affinity: self._remembered(cidr_of(affinity)) is None)

    def _remembered(self, cidr: Cidr) -> Stored[Block] | None:
        """The block as an earlier call on this host left it: it had room then, and need not be read."""
        return self._work.datastore.remembered(BlockKey(cidr))

    def _finds_more(self) -> bool:
        """Whether the node has blocks that the first listing lacked. Asked once, before any is claimed.

        IpamError if no pool serves the request any more.
        """
        if self._own_are_all:
            return False
        self._own_are_all = True
        then = self._terms
        now, pools = self._work.datastore.fetch(
            Affinities(then.request.owner, then.version), IPPools(), deadline=self._work.deadline
        )
        self._terms = renewed(self._work, then, tuple([pool.record for pool in pools]), now)
        self._own_from(now, then.affinities)
        return bool(self._own)

    def _behind(self, affinity: Stored[Affinity]) -> Stored[Block] | None:
        """The block an affinity of ours leads to, or None when it does not lead to one of ours."""
        for _ in range(MAX_TRIES):  # not `until_won`: where this block stays contended another of ours may serve
            try:
                block = self._block_at(cidr_of(affinity))
                if block is not None and affinity.record.is_settled(self._terms.request.owner, block.record):
                    return block
                return block_behind(self._work, affinity, block, self._host_reserved)
            except ClaimOvertaken:
                again = self._work.datastore.get(affinity.key, self._work.deadline)
                if again is None:
                    return None
                affinity = again
            except BlockClaimConflict:
                return None
            except Refused as error:  # a damaged record: the node's other blocks may still serve
                self._log_damaged(cidr_of(affinity), error)
                return None
        return None

    def _block_at(self, cidr: Cidr) -> Stored[Block] | None:
        """The block, perhaps read ahead: if it has changed since, its write loses the race, and it is read again."""
        if (remembered := self._remembered(cidr)) is not None:
            return remembered
        if cidr not in self._ahead and self._reads_ahead:
            self._read_ahead([cidr, *[cidr_of(affinity) for affinity in self._own]])
        else:
            self._reads_ahead = True
        if cidr in self._ahead:
            return self._ahead.pop(cidr)
        return self._work.datastore.get(BlockKey(cidr), self._work.deadline)

    def _read_ahead(self, cidrs: list[Cidr]) -> None:
        """One damaged record fails them all; then each is read when its turn comes."""
        try:
            found = self._work.datastore.fetch(*[BlockKey(cidr) for cidr in cidrs], deadline=self._work.deadline)
        except Refused:
            self._reads_ahead = False
            return
        self._ahead = dict(zip(cidrs, found))

    # --- new blocks ------------------------------------------------------------------------------------------------

    def _require_claimable(self) -> None:
        limit, setting = self._block_limit()
        if self._limited and self.owned >= limit:
            raise BlockLimitReached(limit, self.owned, setting)
        if not self._terms.config.auto_allocate_blocks:
            raise IpamError(
                "failed to find or claim a block", details="autoAllocateBlocks is off in the IPAM configuration"
            )

    def _block_limit(self) -> tuple[int, str]:
        """How many blocks the node may own, and which setting says so."""
        limits = [
            (self._terms.request.max_blocks, "windows_use_single_network"),
            (self._terms.config.max_blocks_per_host, "maxBlocksPerHost in the IPAM configuration"),
        ]
        default = (DEFAULT_BLOCK_LIMIT, "the default; maxBlocksPerHost in the IPAM configuration changes it")
        return min([limit for limit in limits if limit[0]], default=default)

    def _claim(self, least: int) -> Stored[Block] | None:
        from usecases.ipam.claim_place import Places  # few calls claim

        places = self._places = self._places or Places(self._work, self._terms, self._used)
        block = until_won(self._terms.request.owner, lambda: self._claim_next(places))
        if block is not None:
            self.owned += 1
            self._used.add(block.record.cidr)
            self._require_room(block, least)
        return block

    def _claim_next(self, places: Places) -> Stored[Block] | None:
        place = places.next()
        if place is None:
            return None
        try:
            return claim_block(self._work, self._terms.request.owner, place.cidr, self._host_reserved, place.leads)
        except BlockClaimConflict as error:
            if isinstance(error, ClaimOvertaken):
                places.look_again(place.cidr)
        except Refused as error:
            places.leave_out(place.cidr, error)
        raise LostRace

    def _require_room(self, block: Stored[Block], least: int) -> None:
        """IpamError for a new block with too few free addresses: any other new one would have as few."""
        free = self._free(block)
        if free < least and block.record.is_empty():
            raise IpamError(
                f"Block '{block.record.cidr}' has {free} free ips which is less than {least} ips required.",
                details="the rest is reserved by IPReservations and by the host itself",
            )

    def _log_damaged(self, cidr: Cidr, error: Refused) -> None:
        self._work.log.error("Leaving out a block that cannot be read", block=cidr, error=error)


def give_up_deselected(work: Work, terms: Terms) -> None:
    """Give up the node's empty blocks in pools that no longer select it; those in no enabled pool stay."""
    for affinity in terms.affinities:
        cidr = cidr_of(affinity)
        if pool_of(terms.choice.usable, cidr) or pool_of(terms.choice.selected, cidr):
            continue
        pool = pool_of(terms.choice.enabled, cidr)
        if pool is not None and deselects(pool, terms.labels):
            release_claim(work, terms.request.owner, cidr)
