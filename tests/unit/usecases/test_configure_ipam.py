"""Settings of allocation, and the second record that must not contradict them."""

from __future__ import annotations

import pytest

from domain.ipam.errors import IpamError
from domain.ipam.pools import AllocationConfig, IPAMConfiguration
from domain.resource import Metadata
from ports.datastore import AllocationConfigKey, IPAMConfigurationKey
from usecases.check_ipam import check_ipam
from usecases.configure_ipam import configure_ipam

RESOURCE = IPAMConfigurationKey("default")


def configure(node, **changes):
    return configure_ipam(node.work(), changes)


def test_what_is_not_named_keeps_its_value(node):
    node.put(AllocationConfigKey(), AllocationConfig(auto_allocate_blocks=False, strict_affinity=True))
    assert configure(node, max_blocks_per_host=3).max_blocks_per_host == 3
    stored = node.get(AllocationConfigKey())
    assert (stored.strict_affinity, stored.auto_allocate_blocks, stored.max_blocks_per_host) == (True, False, 3)
    assert node.get(RESOURCE) is None


def test_the_resource_follows_where_it_exists(node):
    node.put(RESOURCE, IPAMConfiguration(Metadata("default", labels={"a": "b"}), cooldown_seconds=7))
    configure(node, strict_affinity=True, cooldown_seconds=30)
    resource = node.get(RESOURCE)
    assert (resource.strict_affinity, resource.cooldown_seconds, resource.metadata.labels) == (True, 30, {"a": "b"})
    assert check_ipam(node.work()).findings == ()
    before = node.datastore.revision_of(RESOURCE)
    configure(node, strict_affinity=True)
    assert node.datastore.revision_of(RESOURCE) == before


def test_persistence_is_written_where_it_is_read(node):
    configure(node, strict_affinity=True, kubevirt_persistence="Disabled")
    resource = node.get(RESOURCE)
    assert (resource.kubevirt_persistence, resource.strict_affinity, resource.auto_allocate_blocks) == (
        "Disabled",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"auto_allocate_blocks": False},
            "Cannot disable 'StrictAffinity' and 'AutoAllocateBlocks' at the same time",
        ),
        ({"max_blocks_per_host": 2}, "MaxBlocksPerHost requires StrictAffinity to be enabled"),
        ({"cooldown_seconds": 1201}, "IPCooldownSeconds must be 0 to 1200"),
    ],
)
def test_settings_that_cannot_work_are_refused_and_nothing_is_written(node, changes, why):
    node.put(RESOURCE, IPAMConfiguration(Metadata("default")))
    before = node.datastore.records_text()
    with pytest.raises(IpamError, match=why):
        configure(node, **changes)
    assert node.datastore.records_text() == before
