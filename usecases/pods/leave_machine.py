"""Take a pod's name off its virtual machine's addresses, and free them when the machine is over.

A machine that only restarts, stops or moves keeps them. Once it is over, or addresses are no longer to be kept, they
go with the last pod that owns them. A pod that is gone from the API server counts as no owner, whatever a slot
says: its own DEL may have come too late to clear it.

Who owns an address is looked at, and the address freed, in one write of its block: a pod that becomes an owner in the
meantime is seen, or sees that the address is gone. The handle is counted down after it, so a death in between leaves
one that counts too much, which the next DEL, the machine's next pod or garbage collection corrects.

Invariant: an address that some pod may be using is not freed.
"""

from __future__ import annotations

from domain.ipam.owner_update import ANYTHING, OwnerPod, OwnerUpdate, update_owners
from ports.datastore import BlockKey, HandleKey
from ports.errors import Conflict, Damaged, Missing
from usecases.ipam.count_handle import lower, settle
from usecases.ipam.free_addresses import give_up_if_deselected, settled
from usecases.ipam.sound_records import fetch_sound, if_sound, tell_damaged
from usecases.ipam.work import DELETE, LEAVE, guarded_write
from usecases.pods.find_machine import if_there, keeps_addresses, machine_is_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.address import Cidr
    from domain.ipam.block import Block, Handle
    from ports.cluster import Cluster
    from ports.datastore import Stored
    from usecases.ipam.work import Delete, Leave, Work
    from usecases.pods.find_machine import Leaving


def leave_machine(work: Work, cluster: Cluster, leaving: Leaving, cooldown: int) -> bool:
    """Whether there is such a machine that has, or had, addresses; `cooldown` in seconds.

    The DEL of a pod that is gone writes only when the machine is over: which machine it ran is a guess then, and the
    slots that name it are ignored anyway.
    """
    (stored,) = fetch_sound(work.datastore, work.log, HandleKey(leaving.handle), deadline=work.deadline)
    if stored is None or isinstance(stored, Damaged):
        return stored is not None
    departure = _Departure(work, cluster, leaving, cooldown)
    over = machine_is_over(cluster, leaving.namespace, leaving.machine, work.deadline) or not keeps_addresses(work)
    if over and departure.is_last(stored.record.blocks):
        departure.free(stored)
    elif not leaving.pod_is_gone:
        departure.leave(stored.record.blocks)
        if over and departure.is_last(stored.record.blocks):  # another's DEL has left at the same time as ours
            departure.free(stored)
    return True


class _Departure:
    """One pod's DEL."""

    def __init__(self, work: Work, cluster: Cluster, leaving: Leaving, cooldown: int) -> None:
        self._work = work
        self._cluster = cluster
        self._handle = leaving.handle
        self._pod = OwnerPod(leaving.namespace, leaving.pod)
        self._cooldown = cooldown
        self._gone = frozenset([self._pod])

    def is_last(self, blocks: Mapping[Cidr, int]) -> bool:
        """Whether no pod but ours is left, of all that own, or are about to own, one of the machine's addresses.

        A block that cannot be read is left out, and its addresses stay as they are.
        """
        others = self._other_owners(blocks)
        if any(self._exists(owner) for owner in others):
            return False
        self._gone = frozenset([self._pod, *others])
        return True

    def _other_owners(self, blocks: Mapping[Cidr, int]) -> tuple[OwnerPod, ...]:
        owners: dict[OwnerPod, None] = {}
        for cidr in blocks:
            wanted = BlockKey(cidr)
            (read,) = fetch_sound(self._work.datastore, self._work.log, wanted, deadline=self._work.deadline)
            stored: Stored[Block] | None = if_sound(read)
            if stored is not None:
                held = stored.record.held_by(self._handle)
                owners |= {owner: None for ordinal in held for owner, _ in _owners(stored.record, ordinal)}
        return tuple([owner for owner in owners if owner != self._pod])

    def _exists(self, owner: OwnerPod) -> bool:
        """Whether the API server has the pod. An owner that names none may be anything."""
        look = self._cluster.pod
        return not owner.name or if_there(lambda: look(owner.namespace, owner.name, self._work.deadline)) is not None

    def leave(self, blocks: Mapping[Cidr, int]) -> None:
        """The addresses stay the machine's; the pod is none of their owners any more."""
        for cidr in blocks:
            try:
                guarded_write(self._work, BlockKey(cidr), self._left)
            except Damaged as error:
                tell_damaged(self._work.log, error)

    def _left(self, present: Block | None) -> Block | Leave:
        if present is None:
            return LEAVE
        block = self._without(present, frozenset([self._pod]))
        return LEAVE if block == present else block

    def free(self, stored: Stored[Handle]) -> None:
        """Free everything, unless somebody else becomes an owner meanwhile."""
        latest: Stored[Handle] | None = stored
        for cidr in stored.record.blocks:
            try:
                left = guarded_write(self._work, BlockKey(cidr), self._freed)
            except Damaged as error:
                tell_damaged(self._work.log, error)
                continue
            if left is not None and left.record.held_by(self._handle):
                self._work.log.info("Keeping a virtual machine's address for another pod", handle=self._handle)
                settle(self._work, self._handle, cidr)
                return
            try:
                latest = lower(self._work, latest, cidr, 0)
            except (Conflict, Missing):
                latest = settle(self._work, self._handle, cidr)
            if left is not None and left.record.is_empty():
                give_up_if_deselected(self._work, left.record)
        if not stored.record.blocks:
            guarded_write(self._work, HandleKey(self._handle), _delete_if_bare, stored)

    def _freed(self, present: Block | None) -> Block | Delete | Leave:
        """A write even if the handle holds no address: a call that has counted, but not written, then counts again."""
        if present is None:
            return LEAVE
        now = self._work.clock.now()
        collected = present.collect(now, self._cooldown)
        block = self._without(collected, self._gone)
        held = block.held_by(self._handle)
        unowned = [ordinal for ordinal in held if not _owners(block, ordinal)]
        if held and not unowned:
            return LEAVE if block == collected else block
        return settled(block, block.release(unowned, now, self._cooldown))

    def _without(self, found: Block, gone: frozenset[OwnerPod]) -> Block:
        """The block once those pods own none of the machine's addresses. It counts as a write, as in the original."""
        block = found
        for ordinal in found.held_by(self._handle):
            slots = {slot for owner, slot in _owners(block, ordinal) if owner in gone}
            update = OwnerUpdate(clear_active=_ACTIVE in slots, clear_alternate=_ALTERNATE in slots)
            block = update_owners(block, ordinal, update, ANYTHING)
        return block if block == found else block.replace(sequence=found.sequence + 1)


_ACTIVE, _ALTERNATE = "active", "alternate"


def _owners(block: Block, ordinal: int) -> list[tuple[OwnerPod, str]]:
    """Who owns an allocated address, and in which slot."""
    holder = block.holder(ordinal)
    slots = {_ACTIVE: holder.secondary, _ALTERNATE: holder.alternate} if holder else {}
    return [
        (OwnerPod(owner.get("namespace", ""), owner.get("pod", "")), slot) for slot, owner in slots.items() if owner
    ]


def _delete_if_bare(handle: Handle | None) -> Delete | Leave:
    return DELETE if handle is not None and not handle.blocks else LEAVE
