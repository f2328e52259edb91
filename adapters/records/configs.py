"""The two records of allocation settings ↔ JSON text. They have different spellings and nothing keeps them equal.

Invariant: in the allocation config every member that is false, 0 or unset is left out, so a stored `{}` switches
automatic blocks off; in the v3 resource the two booleans are always there.
"""

from __future__ import annotations

from adapters.records.members import Members, object_text
from adapters.records.resources import encode_resource, open_resource
from domain.ipam.config import AllocationConfig, IPAMConfiguration
from domain.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.resource import Metadata


def encode_allocation_config(config: AllocationConfig) -> str:
    known: list[tuple[str, str]] = []
    if config.strict_affinity:
        known.append(("strict_affinity", "true"))
    if config.auto_allocate_blocks:
        known.append(("auto_allocate_blocks", "true"))
    return object_text([*known, *_limits(config)], config.unknown)


def _limits(config: AllocationConfig | IPAMConfiguration) -> list[tuple[str, str]]:
    known: list[tuple[str, str]] = []
    if config.max_blocks_per_host:
        known.append(("maxBlocksPerHost", str(config.max_blocks_per_host)))
    if config.kubevirt_persistence is not None:
        known.append(("kubeVirtVMAddressPersistence", dumps(config.kubevirt_persistence)))
    if config.cooldown_seconds:
        known.append(("ipCooldownSeconds", str(config.cooldown_seconds)))
    return known


def decode_allocation_config(text: str) -> AllocationConfig:
    members = Members.of_text(text)
    return AllocationConfig(
        strict_affinity=members.flag("strict_affinity"),
        auto_allocate_blocks=members.flag("auto_allocate_blocks"),
        max_blocks_per_host=members.number("maxBlocksPerHost"),
        kubevirt_persistence=members.optional_text("kubeVirtVMAddressPersistence"),
        cooldown_seconds=members.number("ipCooldownSeconds"),
        unknown=members.rest(),
    )


def encode_ipam_configuration(config: IPAMConfiguration) -> str:
    spec = object_text(settings_members(config), config.spec_unknown)
    return encode_resource("IPAMConfiguration", config.metadata, spec, unknown=config.unknown)


def settings_members(config: AllocationConfig | IPAMConfiguration) -> list[tuple[str, str]]:
    """The settings as a resource spells them."""
    return [
        ("strictAffinity", "true" if config.strict_affinity else "false"),
        ("autoAllocateBlocks", "true" if config.auto_allocate_blocks else "false"),
        *_limits(config),
    ]


def decode_ipam_configuration(text: str) -> IPAMConfiguration:
    return read_ipam_configuration(*open_resource(text))


def read_ipam_configuration(members: Members, metadata: Metadata) -> IPAMConfiguration:
    """The resource that the members besides the metadata describe."""
    spec = members.inner("spec")
    return IPAMConfiguration(
        metadata=metadata,
        strict_affinity=spec.flag("strictAffinity"),
        auto_allocate_blocks=spec.flag("autoAllocateBlocks"),
        max_blocks_per_host=spec.number("maxBlocksPerHost"),
        kubevirt_persistence=spec.optional_text("kubeVirtVMAddressPersistence"),
        cooldown_seconds=spec.number("ipCooldownSeconds"),
        unknown=members.rest(),
        spec_unknown=spec.rest(),
    )
