"""`ipam configure`: change the settings of allocation, in both records that hold them.

Allocation goes by one record; KubeVirt persistence and calicoctl by a v3 resource, which need not exist. Nothing else
keeps the two equal.

Invariant: settings that are not named keep their value, and the resource is made only for a setting that is read there.
"""

from __future__ import annotations

from domain.ipam.errors import IpamError
from domain.ipam.pools import AllocationConfig, IPAMConfiguration
from domain.resource import Metadata
from ports.datastore import AllocationConfigKey, IPAMConfigurationKey, Stored
from ports.errors import Damaged
from usecases.ipam.work import LEAVE, guarded_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ports.datastore import Key
    from usecases.ipam.set_aside import Keep
    from usecases.ipam.work import Delete, Leave, Work

MAX_COOLDOWN = 1200  # seconds
_NAME = "default"
_IN_RESOURCE_ONLY = "kubevirt_persistence"


def configure_ipam(work: Work, changes: Mapping[str, bool | int | str], keep: Keep | None = None) -> AllocationConfig:
    """The settings afterwards. `changes` maps fields of AllocationConfig to values. IpamError if it cannot work so.

    `keep` makes copies of records that cannot be read; they are written anew by the other one, or by the defaults.
    """
    if keep is not None:
        _repair(work, keep)
    config = set_config(work, get_config(work).replace(**changes))

    def change(found: IPAMConfiguration | None) -> IPAMConfiguration | Leave | Delete:
        if found is None:
            return _resource(config) if _IN_RESOURCE_ONLY in changes else LEAVE
        wanted = found.replace(**changes)
        return LEAVE if wanted == found else wanted

    guarded_write(work, IPAMConfigurationKey(_NAME), change)
    return config


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


def _repair(work: Work, keep: Keep) -> None:
    read = [_if_sound(work, key) for key in (AllocationConfigKey(), IPAMConfigurationKey(_NAME))]
    if not any(isinstance(stored, Damaged) for stored in read):
        return
    sound: Any = next((stored.record for stored in read if isinstance(stored, Stored)), AllocationConfig())
    for bad in work.datastore.unreadable(work.deadline):
        if bad.key == AllocationConfigKey():
            keep(bad)
            work.datastore.update(bad.key, AllocationConfig(**_settings(sound)), bad.revision, work.deadline)
        elif bad.key == IPAMConfigurationKey(_NAME):
            keep(bad)
            work.datastore.update(bad.key, _resource(sound), bad.revision, work.deadline)


def _if_sound(work: Work, key: Key[Any]) -> Stored[Any] | Damaged | None:
    try:
        return work.datastore.get(key, work.deadline)
    except Damaged as error:
        return error


def _resource(config: AllocationConfig) -> IPAMConfiguration:
    return IPAMConfiguration(Metadata(_NAME), **_settings(config))


def _settings(config: AllocationConfig | IPAMConfiguration) -> dict[str, Any]:
    names = "strict_affinity", "auto_allocate_blocks", "max_blocks_per_host", "kubevirt_persistence", "cooldown_seconds"
    return {name: getattr(config, name) for name in names}
