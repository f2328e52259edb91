"""Automatic assignment: from the node's own blocks first, then from new ones, then borrowed.

All that the choice depends on is fetched at once. Each address taken is registered for undo on the spot, so that a
later failure, of this family or the other, leaks nothing.

Invariant: a call never takes more addresses than it was asked for, nor more than its holder may have.
"""

from __future__ import annotations

from domain.ipam.errors import BlockLimitReached, HandleFull, IpamError, NoPool
from domain.ipam.pools import pool_of
from domain.ipam.request import Allocation, Assigned, AssignRequest, StoppedAtBlockLimit
from ports.datastore import Blocks, HandleKey
from usecases.ipam.allocation_terms import read_surroundings, terms_for, versions_of
from usecases.ipam.block_supply import BlockSupply, give_up_deselected
from usecases.ipam.free_addresses import free_allocation
from usecases.ipam.held_before import adopt_held
from usecases.ipam.take_addresses import Want, take_addresses
from usecases.ipam.work import LostRace, until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from domain.ipam.block import Block
    from ports.clock import Deadline
    from ports.datastore import Stored
    from usecases.calls.safeguards import Undo
    from usecases.ipam.allocation_terms import Surroundings, Terms
    from usecases.ipam.work import Work

STRICT = "No more free affine blocks and strict affinity enabled"


def auto_assign(
    work: Work, request: AssignRequest, undo: Undo, found: Surroundings | None = None
) -> tuple[Assigned, ...]:
    """What each requested IP version got, IPv4 first. A version may get less than asked; the messages say why.

    `found` is what has been read for this request already. Raises IpamError where the original fails the whole call
    (no pool, block limit); what was taken until then is registered with `undo`. A version that may be left out is
    missing from the answer if no pool serves it.
    """
    versions = versions_of(request)
    if not versions:
        return ()
    if found is None:
        found = read_surroundings(work, request)
    families: list[Assigned] = []
    left_out: list[NoPool] = []
    for version in versions:
        try:
            terms = terms_for(version, found)
            give_up_deselected(work, terms)
            families.append(_Family(work, terms, undo).assign())
        except NoPool as error:
            if not request.optional_families:
                raise
            work.log.warning("Leaving an IP version out", version=version, error=error, details=error.details)
            left_out.append(error)
    if not families:
        raise left_out[0]
    return tuple(families)


class _Family:
    """One IP version's assignment in progress."""

    def __init__(self, work: Work, terms: Terms, undo: Undo) -> None:
        self._work = work
        self._terms = terms
        self._request = terms.request
        self._count = terms.request.counts[terms.version]
        self._undo = undo
        self._gave_up_kept = False
        self._allocations: list[Allocation] = []
        self._messages: list[str] = []

    def assign(self) -> Assigned:
        """Terms may lag, and such terms refuse nobody.

        When an attempt by them comes to nothing, they are read again; if they have changed, another attempt follows.
        """
        if not self._terms.may_lag:
            return self._attempt()
        try:
            found = self._attempt()
            if found.allocations or not self._finds_other_terms():
                return found
        except IpamError:
            if self._allocations or not self._finds_other_terms():
                raise
        self._messages.clear()
        return self._attempt()

    def _finds_other_terms(self) -> bool:
        """Read the terms again; whether they have changed. Pools that do not serve the request are left out of it."""
        then = self._terms
        self._terms = now = terms_for(then.version, read_surroundings(self._work, self._request))
        return (now.choice.usable, now.reserved, now.config) != (then.choice.usable, then.reserved, then.config)

    def _attempt(self) -> Assigned:
        return until_won(HandleKey(self._request.handle), self._adopt_and_draw)

    def _adopt_and_draw(self) -> Assigned:
        if self._request.max_per_handle:
            self._allocations += adopt_held(self._work, self._request, self._terms.version, self._allocations)
        try:
            self._draw()
        except HandleFull:  # a rival of the same handle was faster: what it has got is the answer
            raise LostRace from None
        return self._so_far()

    def _draw(self) -> None:
        """Take what is missing, from block after block."""
        supply = BlockSupply(self._work, self._terms)
        while len(self._allocations) < self._count:
            try:
                block = supply.next()
            except BlockLimitReached as error:
                if self._gives_up_kept(supply.full):
                    return self._draw()
                self._messages.append(
                    "Need to allocate an IPAM block but could not - "
                    f"limit of {error.limit} blocks reached for this node"
                )
                raise StoppedAtBlockLimit(error, self._so_far()) from None
            if block is None:
                return self._take_borrowed()
            self._take(block, affine=True)
        return None

    def _so_far(self) -> Assigned:
        host_reserved = self._request.host_reserved.get(self._terms.version)
        messages = tuple(dict.fromkeys(self._messages))
        return Assigned(self._terms.version, self._count, tuple(self._allocations), messages, host_reserved)

    def _take(self, block: Stored[Block], *, affine: bool) -> None:
        want = Want(
            self._request,
            self._count - len(self._allocations),
            self._terms.reserved,
            self._terms.config.cooldown_seconds,
            affine,
        )
        for allocation in take_addresses(self._work, block, want):
            self._undo.register(f"assign {allocation.address}", self._undoing(allocation))
            self._allocations.append(allocation)

    def _undoing(self, allocation: Allocation) -> Callable[[Deadline], None]:
        request = self._request
        return lambda deadline: free_allocation(
            self._work.until(deadline), request.handle, allocation, request.attribute
        )

    def _take_borrowed(self) -> None:
        from usecases.ipam.claim_place import in_node_order  # few calls borrow

        blocks = self._work.datastore.list(Blocks(self._terms.version), self._work.deadline)
        if self._gives_up_kept(blocks):
            return self._draw()
        if self._terms.config.strict_affinity:
            self._messages.append(STRICT)
            self._log_foreign(blocks)
            return None
        exhausted: list[str] = []
        for pool in self._terms.choice.usable:
            for block in in_node_order(self._work, self._request.owner, pool, self._terms.reserved, blocks):
                if len(self._allocations) < self._count:
                    self._take(block, affine=False)
            if len(self._allocations) < self._count:
                exhausted.append(str(pool.cidr))
        if exhausted:
            self._messages.append(f"No IPs available in pools: [{' '.join(exhausted)}]")
        return None

    def _gives_up_kept(self, blocks: Iterable[Stored[Block]]) -> bool:
        """Whether there are addresses now that were kept for a name for too long. Asked once, when others are short."""
        from usecases.ipam.unused_kept import give_up_kept  # few calls are short of addresses

        if self._gave_up_kept:
            return False
        self._gave_up_kept = True
        return give_up_kept(self._work, [block.record for block in blocks])

    def _log_foreign(self, blocks: tuple[Stored[Block], ...]) -> None:
        """Say what strict affinity withholds; the answer's text is the original's and says nothing of it."""
        foreign = sum(
            len(block.record.free(self._terms.reserved))
            for block in blocks
            if pool_of(self._terms.choice.usable, block.record.cidr)
        )
        self._work.log.warning(
            "No address can be assigned because strictAffinity forbids to borrow from other nodes' blocks",
            free_in_foreign_blocks=foreign,
            setting="strictAffinity in the IPAM configuration",
        )
