"""Free a container whose handle record is gone although blocks still hold addresses for it.

The blocks are the truth and the handle only an index to them, so all blocks are read, in one listing.

Invariant: as in free_addresses: only addresses whose holder is the named handle are freed.
"""

from __future__ import annotations

from domain.usecases.steps.free_addresses import Chosen, free_in_block
from ports.datastore import AllocationConfigKey, Blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.usecases.steps.work import Work


def free_without_handle(work: Work, handle: str) -> int:
    """How many addresses were freed."""
    config, blocks = work.datastore.fetch(AllocationConfigKey(), Blocks(), deadline=work.deadline)
    cooldown = config.record.cooldown_seconds if config else 0
    mine = Chosen(lambda block: block.held_by(handle), cooldown)
    return sum(
        len(free_in_block(work, stored.record.cidr, mine).holders) for stored in blocks if stored.record.held_by(handle)
    )
