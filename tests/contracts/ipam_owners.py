"""SetOwnerAttributes on every datastore (conformance 6.1: LIB-042 to LIB-070).

Derive a class named `Test…` and give it the fixtures `clock` and `store`, as for contracts.ipam_library.
"""

from __future__ import annotations

import pytest

from contracts.ipam_library import LibraryContract
from domain.ipam.errors import IpamError, StaleRequest
from domain.ipam.owner_update import ANYTHING, Expectation, OwnerPod, OwnerUpdate
from ports.errors import Missing
from usecases.ipam.owners import holder_of_address, set_owner_attributes
from worlds.ipam_library import Library, address

HANDLE = "vmi-handle-owner-attrs"
IP = "10.0.0.1"


def pod(name: str) -> dict[str, str]:
    return {"pod": f"pod-{name}", "namespace": f"ns-{name}"}


def named(name: str) -> OwnerPod:
    return OwnerPod(f"ns-{name}", f"pod-{name}")


SOURCE, TARGET = pod("source"), pod("target")
BOTH = OwnerUpdate(active=SOURCE, alternate=TARGET)
CLEAR_ACTIVE, CLEAR_ALTERNATE = OwnerUpdate(clear_active=True), OwnerUpdate(clear_alternate=True)
CLEAR_BOTH = OwnerUpdate(clear_active=True, clear_alternate=True)


class Allocated:
    """One address that the handle has, with no owner in either slot."""

    def __init__(self, library: Library) -> None:
        self.library = library
        library.pool("10.0.0.0/24")
        library.assign_ip(IP, handle=HANDLE, attributes={})

    def set(
        self, update: OwnerUpdate | None, expected: Expectation = ANYTHING, handle: str = HANDLE, ip: str = IP
    ) -> None:
        set_owner_attributes(self.library.work, address(ip), handle, update, expected)

    @property
    def owners(self) -> tuple[dict[str, str] | None, dict[str, str] | None]:
        """The active and the alternate one."""
        holder = holder_of_address(self.library.work, address(IP))
        assert holder.holder == HANDLE
        return dict(holder.secondary) or None, holder.alternate


class OwnerAttributesContract(LibraryContract):
    @pytest.fixture
    def ip(self, library):
        return Allocated(library)

    @pytest.fixture
    def owned(self, ip):
        """The same with both owners set."""
        ip.set(BOTH)
        return ip

    @pytest.mark.parametrize(
        ("update", "owners"),
        [
            pytest.param(OwnerUpdate(active=SOURCE), (SOURCE, None), id="LIB-042"),
            pytest.param(OwnerUpdate(alternate=TARGET), (None, TARGET), id="LIB-043"),
            pytest.param(BOTH, (SOURCE, TARGET), id="LIB-044"),
        ],
    )
    def test_owners_are_set(self, ip, update, owners):
        ip.set(update)
        assert ip.owners == owners

    @pytest.mark.parametrize(
        ("update", "owners"),
        [
            pytest.param(CLEAR_ACTIVE, (None, TARGET), id="LIB-045"),
            pytest.param(CLEAR_ALTERNATE, (SOURCE, None), id="LIB-046"),
            pytest.param(CLEAR_BOTH, (None, None), id="LIB-047"),
            pytest.param(OwnerUpdate(active={"pod": "other"}), ({"pod": "other"}, TARGET), id="LIB-048"),
            pytest.param(OwnerUpdate(active=pod("new")), (pod("new"), TARGET), id="LIB-049"),
            pytest.param(OwnerUpdate(alternate=pod("new")), (SOURCE, pod("new")), id="LIB-050"),
            pytest.param(OwnerUpdate(), (SOURCE, TARGET), id="LIB-070"),
        ],
    )
    def test_owners_are_cleared_and_replaced(self, owned, update, owners):
        owned.set(update)
        assert owned.owners == owners

    def test_an_update_that_changes_nothing_writes_nothing(self, owned):
        """LIB-070."""
        owned.library.meddled.writes.clear()
        owned.set(OwnerUpdate())
        owned.set(BOTH)
        assert owned.library.meddled.writes == []

    @pytest.mark.parametrize(
        ("update", "expected", "owners"),
        [
            pytest.param(CLEAR_ACTIVE, Expectation(active=named("source")), (None, TARGET), id="LIB-051"),
            pytest.param(CLEAR_ALTERNATE, Expectation(alternate=named("target")), (SOURCE, None), id="LIB-053"),
            pytest.param(
                CLEAR_BOTH, Expectation(active=named("source"), alternate=named("target")), (None, None), id="LIB-068"
            ),
        ],
    )
    def test_owners_change_if_they_are_the_expected_ones(self, owned, update, expected, owners):
        owned.set(update, expected)
        assert owned.owners == owners

    @pytest.mark.parametrize(
        ("update", "expected"),
        [
            pytest.param(OwnerUpdate(alternate=TARGET), Expectation(active_empty=True), id="LIB-055"),
            pytest.param(OwnerUpdate(alternate=TARGET), Expectation(alternate_empty=True), id="LIB-057"),
        ],
    )
    def test_owners_change_if_a_slot_is_empty_as_expected(self, ip, update, expected):
        ip.set(update, expected)
        assert ip.owners == (None, TARGET)

    @pytest.mark.parametrize(
        ("update", "expected", "why"),
        [
            pytest.param(
                CLEAR_ACTIVE,
                Expectation(active=named("other")),
                "expected ns-other/pod-other as active owner, found ns-source/pod-source",
                id="LIB-052",
            ),
            pytest.param(
                CLEAR_ALTERNATE,
                Expectation(alternate=named("other")),
                "expected ns-other/pod-other as alternate owner, found ns-target/pod-target",
                id="LIB-054",
            ),
            pytest.param(
                OwnerUpdate(active=pod("new")),
                Expectation(active_empty=True),
                "expected no active owner, found ns-source/pod-source",
                id="LIB-056",
            ),
            pytest.param(
                OwnerUpdate(alternate=pod("new")),
                Expectation(alternate_empty=True),
                "expected no alternate owner, found ns-target/pod-target",
                id="LIB-058",
            ),
            pytest.param(
                CLEAR_BOTH,
                Expectation(active=named("source"), alternate=named("other")),
                "expected ns-other/pod-other as alternate owner, found ns-target/pod-target",
                id="LIB-069",
            ),
            pytest.param(
                CLEAR_ACTIVE,
                Expectation(active=OwnerPod("ns-other", "pod-source")),
                "expected ns-other/pod-source as active owner, found ns-source/pod-source",
                id="the namespace alone differs",
            ),
        ],
    )
    def test_nothing_changes_if_an_owner_is_not_the_expected_one(self, owned, update, expected, why):
        with pytest.raises(StaleRequest, match=f"^update conflict: {IP} with error: {why}$"):
            owned.set(update, expected)
        assert owned.owners == (SOURCE, TARGET)

    def test_an_empty_slot_is_no_expected_owner(self, ip):
        with pytest.raises(StaleRequest, match="expected ns-source/pod-source as active owner, found none"):
            ip.set(CLEAR_ACTIVE, Expectation(active=named("source")))

    @pytest.mark.parametrize(
        ("update", "expected", "text"),
        [
            pytest.param(None, ANYTHING, "updates cannot be nil", id="LIB-059"),
            pytest.param(OwnerUpdate(SOURCE, clear_active=True), ANYTHING, "mutually exclusive", id="LIB-060"),
            pytest.param(
                OwnerUpdate(alternate=TARGET, clear_alternate=True), ANYTHING, "mutually exclusive", id="LIB-061"
            ),
            pytest.param(
                OwnerUpdate(), Expectation(named("source"), active_empty=True), "mutually exclusive", id="LIB-062"
            ),
            pytest.param(
                OwnerUpdate(),
                Expectation(alternate=named("target"), alternate_empty=True),
                "mutually exclusive",
                id="LIB-063",
            ),
        ],
    )
    def test_a_request_that_contradicts_itself_is_refused(self, owned, update, expected, text):
        with pytest.raises(IpamError, match=text):
            owned.set(update, expected)
        assert owned.owners == (SOURCE, TARGET)

    def test_another_handle_may_not_change_owners(self, owned):
        """LIB-064."""
        with pytest.raises(IpamError, match=rf"^IP {IP} is not assigned to handle wrong-handle$"):
            owned.set(CLEAR_BOTH, handle="wrong-handle")
        assert owned.owners == (SOURCE, TARGET)

    @pytest.mark.parametrize(
        ("where", "text"),
        [
            pytest.param("10.0.0.20", "IP is unassigned", id="free"),
            pytest.param("10.0.0.200", r"BlockKey\(cidr=10\.0\.0\.192/26\)", id="LIB-065"),
            pytest.param("192.168.1.1", "in no configured pool", id="LIB-066"),
        ],
    )
    def test_an_address_that_nobody_has_has_no_owners(self, ip, where, text):
        with pytest.raises(Missing, match=text):
            ip.set(BOTH, ip=where)

    def test_a_cooling_address_has_no_handle(self, ip):
        ip.library.configure(cooldown_seconds=30)
        ip.library.release(IP)
        with pytest.raises(IpamError, match="not assigned to handle"):
            ip.set(BOTH)

    def test_a_live_migration(self, ip):
        """LIB-067."""
        ip.set(OwnerUpdate(active=pod("virt-launcher-source")))
        assert ip.owners == (pod("virt-launcher-source"), None)
        ip.set(OwnerUpdate(alternate=pod("virt-launcher-target")), Expectation(alternate_empty=True))
        assert ip.owners == (pod("virt-launcher-source"), pod("virt-launcher-target"))
        ip.set(CLEAR_ACTIVE, Expectation(active=named("virt-launcher-source")))
        assert ip.owners == (None, pod("virt-launcher-target"))
        promote = OwnerUpdate(active=pod("virt-launcher-target"), clear_alternate=True)
        ip.set(promote, Expectation(alternate=named("virt-launcher-target"), active_empty=True))
        assert ip.owners == (pod("virt-launcher-target"), None)

    def test_a_disabled_pool_does_not_keep_owners_from_changing(self, ip):
        """Spec ipam 17.6: not copied."""
        ip.library.pool("10.0.0.0/24", disabled=True)
        ip.set(BOTH)
        assert ip.owners == (SOURCE, TARGET)

    def test_every_address_that_shares_the_attribute_changes_with_it(self, library):
        library.pool("10.0.0.0/24")
        library.node("host-a")
        [first, second] = library.assign("host-a", 2, handle=HANDLE, attributes={})
        [other] = library.assign("host-a", handle="other", attributes={})
        set_owner_attributes(library.work, address(first), HANDLE, BOTH)
        assert holder_of_address(library.work, address(second)).secondary == SOURCE
        assert holder_of_address(library.work, address(other)).secondary == {}
        assert len(library.blocks()) == 1
