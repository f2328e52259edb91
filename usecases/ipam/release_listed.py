"""Release addresses by name, many at once: one write per block, then the handles counted down.

A stale request (other sequence number, other handle) fails the whole of its block, and other blocks go on.

Invariant: of addresses whose allocation is not the one meant, nothing changes.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from domain.ipam.release import ReleaseOutcome, releasable
from ports.datastore import AllocationConfigKey, BlockKey, Blocks, HandleKey, Handles, IPPools
from ports.errors import Conflict, Missing, PortError, Refused
from usecases.ipam.count_handle import lower, settle
from usecases.ipam.free_addresses import Chosen, Freed, cooldown_seconds, free_in_block, settled
from usecases.ipam.locate_block import BlockLocator
from usecases.ipam.work import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Address, Cidr
    from domain.ipam.block import Block, Handle
    from domain.ipam.release import Release
    from ports.datastore import Stored
    from usecases.ipam.work import Delete, Leave, Work

FEW = 2  # addresses; for more of them the handles are read in one go


def release_listed(work: Work, listed: Iterable[Release], *, may_list: bool = True) -> ReleaseOutcome:
    """Release what can be released, block by block. Failures are reported in the outcome, the first one as its error.

    A plugin may not list handles (`may_list` False), and reads each.

    Raises PortError only if nothing could be done at all.
    """
    wanted = tuple(dict.fromkeys(listed))
    config, pools = work.datastore.fetch(AllocationConfigKey(), IPPools(), deadline=work.deadline)
    locator = BlockLocator(work, [pool.record for pool in pools])
    releasing = _Releasing(work, config.record.cooldown_seconds if config else 0)
    by_block: dict[Cidr, list[Release]] = {}
    for release in wanted:
        cidr = locator.block_of(release.address)
        if cidr is None:
            releasing.pass_over([release])
        else:
            by_block.setdefault(cidr, []).append(release)
    if may_list and len(wanted) > FEW:
        releasing.read_handles()
    for cidr, releases in by_block.items():
        releasing.release(cidr, releases)
    return releasing.outcome()


class _Releasing:
    """A release of several blocks in progress."""

    def __init__(self, work: Work, cooldown: int) -> None:
        self._work = work
        self._cooldown = cooldown
        self._handles: dict[str, Stored[Handle] | None] = {}
        self._unallocated: dict[Address, None] = {}
        self._released: dict[Address, Release] = {}
        self._error: Exception | None = None

    def outcome(self) -> ReleaseOutcome:
        return ReleaseOutcome(tuple(self._unallocated), tuple(self._released.values()), self._error)

    def pass_over(self, releases: Iterable[Release]) -> None:
        """These are held by nobody."""
        self._unallocated.update(dict.fromkeys([release.address for release in releases]))

    def read_handles(self) -> None:
        listed = self._work.datastore.list(Handles(), self._work.deadline)
        for stored in listed:
            self._handles[HandleKey.of(stored).handle] = stored

    def release(self, cidr: Cidr, releases: list[Release]) -> None:
        def meant(block: Block) -> tuple[int, ...]:
            return releasable(block, releases)

        try:
            stored = self._work.datastore.get(BlockKey(cidr), self._work.deadline)
            self._read_holders(stored, releases)
            freed = free_in_block(self._work, cidr, Chosen(meant, self._cooldown), stored)
            gone = {cidr.at(ordinal) for ordinal in freed.holders}
            self._released.update({release.address: release for release in releases if release.address in gone})
            self.pass_over([release for release in releases if release.address not in gone])
            for handle in dict.fromkeys([attribute.holder for attribute in freed.holders.values()]):
                self._count_down(handle, cidr, freed)
        except (IpamError, PortError) as error:
            self._work.log.error("Could not release all addresses of a block", block=cidr, error=error)
            self._error = self._error or error

    def _read_holders(self, stored: Stored[Block] | None, releases: list[Release]) -> None:
        """Handles are counted down over what they were before the block was written."""
        for ordinal in releasable(stored.record, releases) if stored else ():
            holder = stored.record.holder(ordinal) if stored else None
            name = holder.holder if holder else None
            if name is not None and name not in self._handles:
                self._handles[name] = self._read(name)

    def _read(self, handle: str) -> Stored[Handle] | None:
        """None also for one that cannot be read: the block says who holds what, the handle only counts it."""
        try:
            return self._work.datastore.get(HandleKey(handle), self._work.deadline)
        except Refused as error:
            self._work.log.warning("Leaving a handle as it is that cannot be read", handle=handle, error=error)
            return None

    def _count_down(self, handle: str | None, cidr: Cidr, freed: Freed) -> None:
        if handle is None:  # an allocation that was made without one
            return
        try:
            left = lower(self._work, self._handles.get(handle), cidr, freed.still_held(handle))
        except (Conflict, Missing):
            left = settle(self._work, handle, cidr)
        self._handles[handle] = left


def free_cooled_down(work: Work) -> tuple[Cidr, ...]:
    """Free what has cooled down in all blocks; returns the blocks that changed.

    Allocation does this in passing for the blocks that it writes; a block that nobody writes waits for this. No command
    calls it yet; it is kept for a service that collects all the time, as Calico's IPAM library can.
    """
    cooldown = cooldown_seconds(work)

    def cooled(found: Block | None) -> Block | Delete | Leave:
        if found is None:
            return LEAVE
        after = found.collect(work.clock.now(), cooldown)
        return LEAVE if after == found else settled(found, after)

    changed: list[Cidr] = []
    for stored in work.datastore.list(Blocks(), work.deadline):
        left = guarded_write(work, stored.key, cooled, stored)
        if left != stored:
            changed.append(stored.record.cidr)
    return tuple(changed)
