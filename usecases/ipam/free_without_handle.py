"""Free a container whose handle record is gone, or damaged, although blocks still hold addresses for it.

A container that has kept addresses holds none under its own handle; as the blocks are at hand, they show these, too.

The blocks are the truth and the handle only an index to them, so all blocks are read, in one listing. Where a listing
goes page by page only the node's own blocks are: runtimes repeat DEL, and each must stay cheap in a large cluster.

Invariant: as in free_addresses: only addresses whose holder is the named handle are freed.
"""

from __future__ import annotations

from domain.ipam.block import KEPT_BY
from ports.datastore import Affinities, AffinityKey, BlockKey, Blocks
from ports.errors import Damaged
from usecases.ipam.free_addresses import Chosen, free_in_block
from usecases.ipam.sound_records import fetch_sound, if_sound, tell_damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.block import Block, Owner
    from ports.datastore import Stored
    from usecases.ipam.work import Work


def free_without_handle(
    work: Work, owner: Owner | None, handle: str, cooldown: int, container: str = ""
) -> tuple[int, int]:
    """How many addresses were freed, and in how many blocks the `container` left some to a name that they are kept for.

    `owner` is the node that asks; None: an operator does, who can wait.
    """
    mine = Chosen(lambda block: block.held_by(handle), cooldown)
    if owner is None or work.datastore.lists_in_one_go:
        blocks = work.datastore.list(Blocks(), work.deadline)
    else:
        blocks = _own(work, owner)
    freed = left = 0
    for stored in blocks:
        if stored.record.held_by(handle):
            try:
                freed += len(free_in_block(work, stored.record.cidr, mine, stored).holders)
            except Damaged as error:  # by somebody who was faster
                tell_damaged(work.log, error)
        if container and any(one.secondary.get(KEPT_BY) == container for one in stored.record.attributes):
            from usecases.ipam.unused_kept import leave_in  # few networks keep addresses

            left += leave_in(work, stored.record.cidr, container)
    return freed, left


def _own(work: Work, owner: Owner) -> tuple[Stored[Block], ...]:
    """The blocks that the node's affinities lead to, without those that cannot be read."""
    found: list[Stored[Block] | None] = []
    (affinities,) = fetch_sound(work.datastore, work.log, Affinities(owner), deadline=work.deadline)
    for affinity in if_sound(affinities) or ():
        key = BlockKey(AffinityKey.of(affinity).cidr)
        block = fetch_sound(work.datastore, work.log, key, deadline=work.deadline)[0]
        found.append(if_sound(block))
    return tuple([block for block in found if block is not None])
