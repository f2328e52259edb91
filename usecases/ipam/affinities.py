"""Claim blocks for an owner and give them up again, by range, by block, by owner and by pool.

No plugin and no command calls this yet. It is kept for Windows nodes, which claim and give up blocks by themselves, and
for taking a node or a pool out of service, as Calico's IPAM library can. Windows also needs to know a node's range when
it makes the node's network, which comes before the first container (`ensure_block`).

Giving up a block that holds addresses leaves it to those who hold them: it gets no new owner, and its last address
takes it along. Blocks that somebody else owns are never touched.

Invariant: the order of writes is that of `claim_block` and `give_up_block`, so a death anywhere leaves a state that
the owner's next allocation, or a repetition of the call, recovers from.
"""

from __future__ import annotations

from domain.ipam.address import BITS, Cidr
from domain.ipam.block import HOST, PENDING, Owner
from domain.ipam.errors import IpamError
from domain.ipam.pools import enabled_pools, pool_of, require_block_size
from ports.datastore import Affinities, AffinityKey, BlockKey, IPPools, affinities_of_all
from ports.errors import Conflict, Missing, PortError
from usecases.ipam.allocation_terms import read_surroundings, terms_for, versions_of
from usecases.ipam.block_supply import BlockSupply, give_up_deselected
from usecases.ipam.claim_block import BlockClaimConflict, ClaimOvertaken, claim_block, drop_affinity, give_up_block
from usecases.ipam.work import LostRace, until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from domain.ipam.block import Affinity, Block
    from domain.ipam.pools import Pool
    from domain.ipam.request import AssignRequest
    from ports.datastore import Stored
    from usecases.ipam.work import Work


def claim_affinity(work: Work, cidr: Cidr, owner: Owner) -> tuple[tuple[Cidr, ...], tuple[Cidr, ...]]:
    """Claim every block of a range: which are the owner's now, and which are somebody else's.

    IpamError if the range is in no enabled pool or smaller than a block; StillContended if a block kept changing.
    """
    pool = _pool_around(work, cidr)
    size = 1 << (BITS[cidr.version] - pool.block_length)
    claimed: list[Cidr] = []
    failed: list[Cidr] = []
    place = Cidr(cidr.version, cidr.first, pool.block_length)
    while place.first < cidr.end:
        (claimed if _claim(work, owner, place) else failed).append(place)
        place = place.replace(number=place.number + size)
    return tuple(claimed), tuple(failed)


def _claim(work: Work, owner: Owner, cidr: Cidr) -> bool:
    def claim() -> bool:
        try:
            claim_block(work, owner, cidr)
        except ClaimOvertaken:
            raise
        except BlockClaimConflict:
            return False
        return True

    return until_won(BlockKey(cidr), claim, ClaimOvertaken)


def _pool_around(work: Work, cidr: Cidr) -> Pool:
    pools = [pool.record for pool in work.datastore.list(IPPools(), work.deadline)]
    pool = pool_of(enabled_pools(pools, cidr.version), cidr)
    if pool is None:
        raise IpamError(f"The requested CIDR ({cidr.network}) is not within any configured pools.")
    if cidr.length > pool.block_length:
        raise IpamError(f"The requested CIDR ({cidr.network}) is smaller than the minimum.")
    require_block_size(pool)
    return pool


def release_affinity(work: Work, cidr: Cidr, owner: Owner, *, must_be_empty: bool) -> None:
    """Give up the owner's blocks of a range. IpamError as `claim_affinity`, and for the first block not empty."""
    _pool_around(work, cidr)
    for affinity in work.datastore.list(Affinities(owner, cidr.version), work.deadline):
        if AffinityKey.of(affinity).cidr in cidr:
            _release(work, affinity, must_be_empty=must_be_empty)


def release_block_affinity(work: Work, block: Block, *, must_be_empty: bool) -> None:
    """Give up a block for whoever it names as its owner. Raises what `give_up_block` does, Conflict for a lost race."""
    give_up_block(work, Owner.parse(block.affinity or ""), block.cidr, must_be_empty=must_be_empty)


def release_host_affinities(work: Work, owner: Owner, *, must_be_empty: bool) -> None:
    """Give up all blocks of an owner, as many as possible; then the last failure is raised, if there was one.

    Unless the blocks must be empty, affinities that lead to no block go too.
    """
    failure: Exception | None = None
    for affinity in work.datastore.list(Affinities(owner), work.deadline):
        try:
            found = _release(work, affinity, must_be_empty=must_be_empty)
            if not found and not must_be_empty:
                drop_affinity(work, affinity)
        except (IpamError, PortError) as error:
            work.log.error("Could not give up a block", affinity=affinity.key, error=error)
            failure = error
    if failure is not None:
        raise failure


def release_pool_affinities(work: Work, pool: Cidr) -> None:
    """Take all blocks of a pool from their owners, whoever these are, until none is left.

    An affinity that leads to no block goes too, unless somebody may be about to make the block.
    """

    def release() -> None:
        inside = [affinity for affinity in _all_affinities(work) if AffinityKey.of(affinity).cidr in pool]
        leading_nowhere = [affinity for affinity in inside if not _release(work, affinity, must_be_empty=False)]
        for affinity in leading_nowhere:
            if affinity.record.state != PENDING:
                drop_affinity(work, affinity)
        if len(leading_nowhere) < len(inside):
            raise LostRace

    until_won(pool, release)


def remove_host(work: Work, node: str) -> None:
    """Take all blocks from a node that is gone. A node that never had one is fine."""
    release_host_affinities(work, Owner(HOST, node), must_be_empty=False)


def _all_affinities(work: Work) -> Iterable[Stored[Affinity]]:
    hosts, virtual = work.datastore.fetch(*affinities_of_all(), deadline=work.deadline)
    return (*hosts, *virtual)


def _release(work: Work, affinity: Stored[Affinity], *, must_be_empty: bool) -> bool:
    """Give up the block an affinity leads to, going round after lost races. False if affinity or block is gone."""
    key = AffinityKey.of(affinity)

    def give_up() -> bool:
        try:
            give_up_block(work, key.owner, key.cidr, must_be_empty=must_be_empty)
        except Missing:
            return False
        except BlockClaimConflict:
            return True
        return True

    return until_won(key, give_up, Conflict)


def ensure_block(work: Work, request: AssignRequest) -> Mapping[int, Cidr]:
    """A block of the node for each IP version with a count above 0; how many blocks it may own does not matter.

    A version is missing from the answer if the pools have no place left. IpamError as for an assignment.
    """
    found = read_surroundings(work, request)
    blocks: dict[int, Cidr] = {}
    for terms in [terms_for(version, found) for version in versions_of(request)]:
        give_up_deselected(work, terms)
        block = BlockSupply(work, terms, limited=False).next(least=0)
        if block is not None:
            blocks[terms.version] = block.record.cidr
    return blocks
