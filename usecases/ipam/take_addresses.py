"""Take addresses out of one block: the handle is counted up, then the block is written.

A write whose reply was lost may have happened: the block is read again, and if it holds our very attribute (its
timestamp is this call's own) the addresses are ours and are adopted.

An address may be free in IPAM and yet be routed to an interface of this host, since its holder was released but not
taken off the network. The host could not route it to the new holder, so each call passes it over anew.

Invariant: the handle always counts at least what the block holds for it. A conflict counts down before it counts up
again, so that a DEL of the same handle in between is not undone.
"""

from __future__ import annotations

from domain.ipam.request import Allocation
from domain.value import Value
from ports.errors import Conflict, Damaged, Missing, PortError, Unavailable
from usecases.ipam.count_handle import increment, take_back
from usecases.ipam.work import LostRace, rewrite, until_won

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.block import Block
    from domain.ipam.request import AssignRequest
    from ports.datastore import Key, Stored
    from usecases.ipam.work import Work


class Want(Value):
    """`count` addresses outside the `reserved` ranges. With `affine` only while the block is the requester's own."""

    request: AssignRequest
    count: int
    reserved: tuple[Cidr, ...]
    cooldown: int
    affine: bool


def take_addresses(work: Work, stored: Stored[Block], want: Want) -> tuple[Allocation, ...]:
    """As many of the wanted addresses as the block has; none if it is full, gone, or no longer ours."""
    before = _ours(stored.record, want)
    found: Stored[Block] | None = stored

    def take() -> tuple[Allocation, ...]:
        nonlocal found
        if found is None or (want.affine and found.record.affinity != str(want.request.owner)):
            return ()
        block = found.record.collect(work.clock.now(), want.cooldown)
        ordinals = _usable(work, block, want)
        if not ordinals:
            return ()
        handle = increment(work, want.request.handle, block.cidr, len(ordinals), want.request.max_per_handle)
        failure: PortError | None = None
        try:
            found = rewrite(work, found, block.take(ordinals, want.request.attribute))
        except (Unavailable, Conflict, Missing) as error:
            failure = error
            found = _read_again(work, stored.key, failure)
        ours = (_ours(found.record, want) if found else frozenset()) - before
        if len(ours) < len(ordinals):
            take_back(work, handle, block.cidr, len(ordinals) - len(ours), found)
        if found is not None and ours:
            return tuple(Allocation(block.cidr, ordinal, block.sequence) for ordinal in sorted(ours))
        raise failure if isinstance(failure, Unavailable) else LostRace

    return until_won(stored.key, take)


def _read_again(work: Work, key: Key[Block], failure: PortError) -> Stored[Block] | None:
    """The block after a write that failed. One that is damaged by now has no address to give."""
    try:
        return work.datastore.get(key, work.deadline)
    except Damaged as error:
        if isinstance(failure, Unavailable):  # it may have happened, who knows
            raise
        work.log.error("Leaving out a block that cannot be read", block=key, error=error)
        return None


def _usable(work: Work, block: Block, want: Want) -> tuple[int, ...]:
    """The first free ordinals whose addresses nobody on this host uses."""
    found: list[int] = []
    for ordinal in block.free(want.reserved):
        if len(found) == want.count:
            break
        address = block.cidr.at(ordinal)
        if interface := work.interface_of(address):
            work.log.warning("Passing over an address that IPAM has free", address=address, in_use_by=interface)
            continue
        found.append(ordinal)
    return tuple(found)


def _ours(block: Block, want: Want) -> frozenset[int]:
    """Ordinals that hold exactly this call's attribute."""
    attribute = want.request.attribute
    return frozenset(ordinal for ordinal in block.held_by(want.request.handle) if block.holder(ordinal) == attribute)
