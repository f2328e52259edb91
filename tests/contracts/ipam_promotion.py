"""What Felix does when a live migration is over, on every datastore (conformance 6.7: LIB-297 to LIB-304).

Derive a class named `Test…` and give it the fixtures `clock` and `store`, as for contracts.ipam_library.
"""

from __future__ import annotations

import pytest

from contracts.ipam_library import LibraryContract
from domain.ipam.block import Handle
from domain.ipam.errors import IpamError, StaleRequest
from domain.ipam.owner_update import OwnerPod, OwnerUpdate
from domain.workload.kubevirt import machine_handle
from ports.datastore import BlockKey, HandleKey
from usecases.ipam.owners import (
    AlternateOwnerEmpty,
    AlternateOwnerMismatch,
    holder_of_address,
    promote_owner,
    set_owner_attributes,
)
from worlds.ipam_library import address, cidr

IPS = ("10.0.0.1", "fd80::1")
SOURCE = {"pod": "virt-launcher-source", "namespace": "test-ns"}
TARGET = {"pod": "virt-launcher-target", "namespace": "test-ns"}
OTHER = {"pod": "virt-launcher-other", "namespace": "test-ns"}
POD = OwnerPod("test-ns", "virt-launcher-target")


class Migrated:
    """A machine with an address of each version, whose migration from `source` to `target` is over."""

    def __init__(self, library, network: str = "") -> None:
        self.library = library
        self.handle = machine_handle(network, "test-ns", "test-vm")
        library.pool("10.0.0.0/24")
        library.pool("fd80::/120")
        for ip in IPS:
            library.assign_ip(ip, handle=self.handle, attributes=SOURCE)
            self.set(OwnerUpdate(alternate=TARGET), ip)

    def set(self, update: OwnerUpdate, *ips: str) -> None:
        for ip in ips or IPS:
            set_owner_attributes(self.library.work, address(ip), self.handle, update)

    def promote(self) -> None:
        promote_owner(self.library.work, self.handle, POD)

    @property
    def owners(self) -> list[tuple[object, object]]:
        holders = [holder_of_address(self.library.work, address(ip)) for ip in IPS]
        assert {holder.handle for holder in holders} == {self.handle}
        return [(dict(holder.secondary), holder.alternate) for holder in holders]


class PromotionContract(LibraryContract):
    @pytest.fixture
    def migrated(self, library) -> Migrated:
        return Migrated(library)

    def test_the_target_becomes_the_active_owner(self, migrated):
        """LIB-297."""
        migrated.promote()
        assert migrated.owners == [(TARGET, SOURCE)] * 2

    def test_doing_it_again_changes_nothing(self, migrated):
        """LIB-298."""
        migrated.promote()
        migrated.library.meddled.writes.clear()
        migrated.promote()
        assert migrated.library.meddled.writes == []

    def test_nobody_is_promoted_if_nobody_is_coming(self, migrated):
        """LIB-299."""
        migrated.set(OwnerUpdate(clear_alternate=True))
        with pytest.raises(AlternateOwnerEmpty):
            migrated.promote()
        assert migrated.owners == [(SOURCE, None)] * 2

    def test_nobody_is_promoted_if_another_is_coming(self, migrated):
        """LIB-300."""
        migrated.set(OwnerUpdate(alternate=OTHER))
        with pytest.raises(AlternateOwnerMismatch, match="test-ns/virt-launcher-other, expected test-ns/virt-laun"):
            migrated.promote()
        assert migrated.owners == [(SOURCE, OTHER)] * 2

    def test_a_machine_without_addresses_has_nothing_to_take_over(self, migrated):
        """LIB-301."""
        migrated.handle = machine_handle("", "test-ns", "no-vm")
        with pytest.raises(IpamError, match=r"failed to get IPs for handle k8s-pod-network.vmi.test-ns.no-vm"):
            migrated.promote()
        migrated.library.put(HandleKey(migrated.handle), Handle({cidr("10.0.0.0/26"): 1}))
        with pytest.raises(IpamError, match="failed to get IPs for handle"):
            migrated.promote()

    def test_a_source_that_has_gone_is_not_put_into_the_other_slot(self, migrated):
        """LIB-302."""
        migrated.set(OwnerUpdate(clear_active=True))
        migrated.promote()
        assert migrated.owners == [(TARGET, None)] * 2

    def test_the_network_is_part_of_the_handle(self, library):
        """LIB-303."""
        migrated = Migrated(library, "multus-net1")
        assert migrated.handle == "multus-net1.vmi.test-ns.test-vm"
        migrated.promote()
        assert migrated.owners == [(TARGET, SOURCE)] * 2

    def test_an_address_that_is_the_targets_already_is_passed_over(self, migrated):
        """LIB-304."""
        migrated.set(OwnerUpdate(active=TARGET, alternate=SOURCE), IPS[0])
        migrated.promote()
        assert migrated.owners == [(TARGET, SOURCE)] * 2

    def test_owners_that_change_meanwhile_are_looked_at_again(self, migrated):
        def leave(_key) -> None:
            migrated.set(OwnerUpdate(clear_active=True), IPS[0])

        with migrated.library.before("update", BlockKey, leave):
            migrated.promote()
        assert migrated.owners == [(TARGET, None), (TARGET, SOURCE)]

    def test_owners_that_always_change_are_left(self, migrated):
        """Five tries; each finds the source as it was not a moment ago."""
        turns = []

        def change(_key) -> None:
            turns.append(1)
            update = OwnerUpdate(clear_active=True) if len(turns) % 2 else OwnerUpdate(active=SOURCE)
            migrated.set(update, IPS[0])

        with migrated.library.before("update", BlockKey, change, times=5), pytest.raises(StaleRequest):
            migrated.promote()
