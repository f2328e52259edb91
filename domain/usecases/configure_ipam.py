"""`ipam configure`: change the settings of allocation, in both records that hold them (spec: datastore C.2).

Allocation goes by one record; KubeVirt persistence and calicoctl by a v3 resource, which need not exist. Nothing else
keeps the two equal.

Invariant: settings that are not named keep their value, and the resource is made only for a setting that is read there.
"""

from __future__ import annotations

from domain.ipam.config import IPAMConfiguration
from domain.resource import Metadata
from domain.usecases.steps.allocation_config import get_config, set_config
from domain.usecases.steps.guarded_write import LEAVE, guarded_write
from ports.datastore import IPAMConfigurationKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from domain.ipam.config import AllocationConfig
    from domain.usecases.steps.guarded_write import Delete, Leave
    from domain.usecases.steps.work import Work

_NAME = "default"
_IN_RESOURCE_ONLY = "kubevirt_persistence"


def configure_ipam(work: Work, changes: Mapping[str, bool | int | str]) -> AllocationConfig:
    """The settings afterwards. `changes` maps fields of AllocationConfig to values. IpamError if it cannot work so."""
    config = set_config(work, get_config(work).replace(**changes))

    def change(found: IPAMConfiguration | None) -> IPAMConfiguration | Leave | Delete:
        if found is None:
            return _resource(config) if _IN_RESOURCE_ONLY in changes else LEAVE
        wanted = found.replace(**changes)
        return LEAVE if wanted == found else wanted

    guarded_write(work, IPAMConfigurationKey(_NAME), change)
    return config


def _resource(config: AllocationConfig) -> IPAMConfiguration:
    return IPAMConfiguration(
        Metadata(_NAME),
        strict_affinity=config.strict_affinity,
        auto_allocate_blocks=config.auto_allocate_blocks,
        max_blocks_per_host=config.max_blocks_per_host,
        kubevirt_persistence=config.kubevirt_persistence,
        cooldown_seconds=config.cooldown_seconds,
    )
