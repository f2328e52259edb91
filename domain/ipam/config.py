"""The cluster-wide allocation settings, and what holds when nobody has stored any.

Two records exist and nothing synchronises them (spec: datastore C.2): allocation reads `IPAMConfigKey`; KubeVirt
persistence and calicoctl read the v3 resource `IPAMConfiguration`.
"""

from __future__ import annotations

from domain.resource import Metadata
from domain.value import Value


class AllocationConfig(Value):
    """`max_blocks_per_host` 0 means no configured limit; `cooldown_seconds` is 0..1200."""

    strict_affinity: bool = False
    auto_allocate_blocks: bool = True
    max_blocks_per_host: int = 0
    kubevirt_persistence: str | None = "Enabled"
    cooldown_seconds: int = 0
    unknown: tuple[tuple[str, str], ...] = ()


class IPAMConfiguration(Value):
    """The v3 resource of the same settings. `spec_unknown` as in `AllocationConfig.unknown`."""

    metadata: Metadata
    strict_affinity: bool = False
    auto_allocate_blocks: bool = True
    max_blocks_per_host: int = 0
    kubevirt_persistence: str | None = None
    cooldown_seconds: int = 0
    unknown: tuple[tuple[str, str], ...] = ()
    spec_unknown: tuple[tuple[str, str], ...] = ()
