"""Take addresses out of one block: the handle is counted up, then the block is written, or both in one.

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
from ports.errors import AlreadyExists, Conflict, Damaged, Missing, PortError, Unavailable
from usecases.ipam.count_handle import Counting, count_and_write, increment, take_back
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
    return until_won(stored.key, _Taking(work, stored, want).attempt)


class _Taking:
    """Addresses of one block, for one request."""

    def __init__(self, work: Work, stored: Stored[Block], want: Want) -> None:
        self._work = work
        self._want = want
        self._key = stored.key
        self._found: Stored[Block] | None = stored
        self._before = _ours(stored.record, want)
        self._together = work.datastore.writes_together

    def attempt(self) -> tuple[Allocation, ...]:
        found, want = self._found, self._want
        if found is None or (want.affine and found.record.affinity != str(want.request.owner)):
            return ()
        block = found.record.collect(self._work.clock.now(), want.cooldown)
        ordinals = _usable(self._work, block, want)
        if not ordinals:
            return ()
        write = self._write_with_handle if self._together else self._write_after_handle
        failure = write(found, block.take(ordinals, want.request.attribute), len(ordinals))
        ours = self._taken()
        if self._found is not None and ours:
            return tuple(Allocation(block.cidr, ordinal, block.sequence) for ordinal in sorted(ours))
        raise failure if isinstance(failure, Unavailable) else LostRace

    def _taken(self) -> frozenset[int]:
        """What the block, as it was last seen, has for this call and had not before."""
        return (_ours(self._found.record, self._want) if self._found else frozenset()) - self._before

    def _write_after_handle(self, found: Stored[Block], taken: Block, count: int) -> PortError | None:
        """What kept it from happening, or its answer from coming."""
        work, request = self._work, self._want.request
        handle = increment(work, request.handle, taken.cidr, count, request.max_per_handle)
        failure: PortError | None = None
        try:
            self._found = rewrite(work, found, taken)
        except (Unavailable, Conflict, Missing) as error:
            failure = error
            self._found = _read_again(work, self._key, failure)
        if missing := count - len(self._taken()):
            take_back(work, handle, taken.cidr, missing, self._found)
        return failure

    def _write_with_handle(self, found: Stored[Block], taken: Block, count: int) -> PortError | None:
        """The same in one write, for a handle that this call has made. Later attempts take one step after the other."""
        work, request = self._work, self._want.request
        try:
            counting = Counting(request.handle, count, request.max_per_handle)
            self._found = count_and_write(work, found, taken, counting)
        except (Unavailable, AlreadyExists, Conflict, Missing) as error:
            self._together = False
            self._found = _read_again(work, self._key, error)
            if self._found is not None and isinstance(error, Unavailable) and not self._taken():
                _outdo(work, self._found)
            return error
        return None


def _outdo(work: Work, found: Stored[Block]) -> None:
    """Rewrite a block unchanged, so that a write over what was there before, which may still be under way, fails."""
    try:
        rewrite(work, found, found.record)
    except (Conflict, Missing):  # somebody else has changed it
        return


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
