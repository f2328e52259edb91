"""The settings that allocation reads, and the cooldown they ask for (spec: ipam 6, 12.3).

Invariant: reading never stores anything, and settings under which nothing could be allocated are refused.
"""

from __future__ import annotations

from domain.ipam.config import AllocationConfig
from domain.ipam.errors import IpamError
from ports.datastore import AllocationConfigKey, Blocks
from usecases.ipam.free_addresses import cooldown_seconds, settled
from usecases.ipam.guarded_write import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.ipam.address import Cidr
    from domain.ipam.block import Block
    from usecases.ipam.guarded_write import Delete, Leave
    from usecases.ipam.work import Work

MAX_COOLDOWN = 1200  # seconds


def get_config(work: Work) -> AllocationConfig:
    """The settings, or what holds while nobody has stored any."""
    stored = work.datastore.get(AllocationConfigKey(), work.deadline)
    return stored.record if stored else AllocationConfig()


def set_config(work: Work, config: AllocationConfig) -> AllocationConfig:
    """Store settings; members of the record that we do not know stay. IpamError for settings that cannot work."""
    _require_sense(config)

    def change(found: AllocationConfig | None) -> AllocationConfig | Leave:
        wanted = config if found is None else config.replace(unknown=found.unknown)
        return LEAVE if found == wanted else wanted

    stored = guarded_write(work, AllocationConfigKey(), change)
    return stored.record if stored else config


def _require_sense(config: AllocationConfig) -> None:
    if not config.strict_affinity and not config.auto_allocate_blocks:
        raise IpamError("Cannot disable 'StrictAffinity' and 'AutoAllocateBlocks' at the same time")
    if config.max_blocks_per_host and not config.strict_affinity:
        raise IpamError("MaxBlocksPerHost requires StrictAffinity to be enabled")
    if config.max_blocks_per_host < 0:
        raise IpamError(f"MaxBlocksPerHost must not be negative, but is {config.max_blocks_per_host}")
    if not 0 <= config.cooldown_seconds <= MAX_COOLDOWN:
        raise IpamError(f"IPCooldownSeconds must be 0 to {MAX_COOLDOWN}, but is {config.cooldown_seconds}")


def free_cooled_down(work: Work) -> tuple[Cidr, ...]:
    """Free what has cooled down in all blocks; returns the blocks that changed.

    Allocation does this in passing for the blocks that it writes; a block that nobody writes waits for this.
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
