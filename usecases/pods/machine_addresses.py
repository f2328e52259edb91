"""Give a virtual machine the addresses that it has: its next pod, or the target of its live migration, owns them too.

A starting pod becomes the active owner, a migration's target the alternate one, whoever was it before. The slot is
all that changes: whether the machine is given a further address is the caller's affair.

Undoing gives a slot back to whom it was taken from, and only while it is still exactly this call's (its time is in
it). It never frees an address: the machine had it before.

Invariant: an address is answered only if its block, as written, names the pod and the machine's handle.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from domain.ipam.owner_update import ANYTHING, OwnerUpdate, update_owners
from domain.ipam.request import Allocation
from ports.datastore import BlockKey, HandleKey
from ports.errors import Conflict
from usecases.ipam.work import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Cidr
    from domain.ipam.block import Attribute, Block
    from domain.ipam.request import AssignRequest
    from ports.clock import Deadline
    from usecases.calls.safeguards import Undo
    from usecases.ipam.work import Leave, Work

    Place = tuple[Cidr, int]


class MachineAddresses:
    """`before` has every address that the machine had before this call, with its holder as it was then."""

    def __init__(self, work: Work, request: AssignRequest, undo: Undo, *, is_target: bool) -> None:
        self._work = work
        self._request = request
        self._undo = undo
        self._is_target = is_target
        self.before: dict[Place, Attribute] = {}

    def own(self, version: int | None = None) -> tuple[Allocation, ...]:
        """All that the machine has (of one IP version): now the pod's too. IpamError for a target without any."""
        handle = self._work.datastore.get(HandleKey(self._request.handle), self._work.deadline)
        allocations: list[Allocation] = []
        for cidr in handle.record.blocks if handle else ():
            if version in (None, cidr.version):
                allocations += self._own_in(cidr)
        if self._is_target and not allocations:
            raise IpamError(f"migration target pod but no IP allocated to VM handle {self._request.handle}")
        return tuple(sorted(allocations, key=lambda allocation: (allocation.block.version, allocation.address.number)))

    def own_adopted(self, allocation: Allocation) -> None:
        """The same for one that another pod of the machine was given meanwhile; `Conflict` if it is gone again."""
        if all(own.ordinal != allocation.ordinal for own in self._own_in(allocation.block)):
            raise Conflict(BlockKey(allocation.block))

    def _own_in(self, cidr: Cidr) -> tuple[Allocation, ...]:
        def owned(present: Block | None) -> Block | Leave:
            block = present
            for ordinal, holder in _held(present, self._request.handle).items():
                assert block is not None  # noqa: S101 - it holds something
                if not self._is_ours(holder):
                    self.before[cidr, ordinal] = holder
                block = update_owners(block, ordinal, self._update(self._request.secondary), ANYTHING)
            return LEAVE if block is None or block == present else block.replace(sequence=block.sequence + 1)

        self._undo.register(f"ownership of the machine's address in {cidr}", lambda until: self._hand_back(cidr, until))
        left = guarded_write(self._work, BlockKey(cidr), owned)
        if left is None:
            return ()
        sequences = left.record.sequences
        held = _held(left.record, self._request.handle)
        return tuple([Allocation(cidr, ordinal, sequences.get(ordinal, 0), held_before=True) for ordinal in held])

    def _hand_back(self, cidr: Cidr, deadline: Deadline) -> None:
        def handed_back(present: Block | None) -> Block | Leave:
            block = present
            for ordinal, holder in _held(present, self._request.handle).items():
                earlier = self.before.get((cidr, ordinal))
                if block is not None and earlier is not None and self._is_ours(holder):
                    block = update_owners(block, ordinal, self._update(self._slot(earlier)), ANYTHING)
            return LEAVE if block is None or block == present else block.replace(sequence=block.sequence + 1)

        guarded_write(self._work.until(deadline), BlockKey(cidr), handed_back)

    def _slot(self, holder: Attribute) -> Mapping[str, str]:
        return (holder.alternate or {}) if self._is_target else holder.secondary

    def _is_ours(self, holder: Attribute) -> bool:
        return self._slot(holder) == self._request.secondary

    def _update(self, attributes: Mapping[str, str]) -> OwnerUpdate:
        """Empty attributes clear the slot."""
        return OwnerUpdate(alternate=attributes) if self._is_target else OwnerUpdate(active=attributes)


def _held(block: Block | None, handle: str) -> dict[int, Attribute]:
    """What a handle has in a block."""
    ordinals = block.held_by(handle) if block else ()
    return {ordinal: block.attributes[block.allocations[ordinal] or 0] for ordinal in ordinals} if block else {}
