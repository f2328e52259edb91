"""What becomes of an address that is kept for a name when its pod goes, and when its time is over.

It is left with the name. Nobody waits for its time: whoever finds it over, and is short of addresses or about to keep
another one, gives it up.

Invariant: what another sandbox has stays. One that a pod has taken again meanwhile is another allocation, and stays.
"""

from __future__ import annotations

from domain.ipam.kept import kept_name_of, left_by, over_in
from ports.datastore import BlockKey
from ports.errors import Damaged, PortError
from usecases.ipam.release_listed import release_listed
from usecases.ipam.sound_records import tell_damaged
from usecases.ipam.work import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.ipam.address import Cidr
    from domain.ipam.block import Block
    from usecases.ipam.work import Leave, Work


MOST = 16  # addresses that one call gives up


def leave_in(work: Work, cidr: Cidr, container: str) -> bool:
    """Whether the sandbox had a kept address in that block."""
    had = ""

    def left(present: Block | None) -> Block | Leave:
        nonlocal had
        after = left_by(present, container, work.clock.now()) if present else None
        if present is None or after is None or after == present:
            return LEAVE
        had = kept_name_of(present, container)
        return after.replace(sequence=present.sequence + 1)

    try:
        guarded_write(work, BlockKey(cidr), left)
    except Damaged as error:
        tell_damaged(work.log, error)
    if had:
        work.log.info("Keeping an address for its name", name=had, block=cidr, container=container)
    return bool(had)


def give_up_kept(work: Work, blocks: Iterable[Block]) -> bool:
    """Whether there was one, of those that the blocks, as just read, show. They cool down like any other.

    Of many some: a call that is about something else has only so much time. A failure is not the call's.
    """
    over = over_in(blocks, work.clock.now())
    if not over:
        return False
    try:
        released = release_listed(work, over[:MOST], may_list=False).released
    except PortError as error:
        work.log.warning("Could not give up kept addresses whose time is over", error=error)
        return False
    shown = ", ".join([str(release.address) for release in released])
    work.log.info("Gave up kept addresses whose time is over", addresses=shown)
    return bool(released)
