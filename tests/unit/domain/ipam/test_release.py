"""What a block makes of a list of addresses to release (spec: ipam 12.2)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Address, Cidr
from domain.ipam.block import WINDOWS_HANDLE, Attribute, new_block
from domain.ipam.errors import StaleRequest
from domain.ipam.release import Release, releasable

NOW = 1_795_957_572_000_000_000
CIDR = Cidr.parse("100.64.0.0/24")


def at(ordinal: int, handle: str | None = None, sequence: int | None = None) -> Release:
    return Release(CIDR.at(ordinal), handle, sequence)


@pytest.fixture
def block():
    """Ordinals 3 and 4 are held, 5 is cooling down, 6 has a handle of an old version; all since sequence 10."""
    block = new_block(CIDR, "host:a", None, 10).take((3, 4), Attribute("lucky", {}))
    return block.take((5,), Attribute("gone", {})).release((5,), NOW, 30).take((6,), Attribute("old\r\n", {}))


def test_held_addresses_can_be_released_once_each(block):
    """LIB-228; LIB-229."""
    assert releasable(block, [at(4), at(3), at(4), at(4, "lucky"), at(4, "lucky", 10)]) == (4, 3)


def test_free_and_cooling_addresses_cannot(block):
    """LIB-231. Nobody holds them, so no handle is the wrong one."""
    assert releasable(block, [at(13), at(13, "whoever"), at(5), at(5, "gone")]) == ()


def test_k04_what_a_windows_host_keeps_for_itself_cannot(block):
    """K04."""
    block = block.take((0, 1, 255), Attribute(WINDOWS_HANDLE, {"note": ""}))
    assert releasable(block, [at(0), at(1, WINDOWS_HANDLE), at(255), at(3)]) == (3,)


@pytest.mark.parametrize("listed", [at(3, "newstuff"), at(3, ""), at(3, "Lucky")])
def test_another_handle_fails_all(block, listed):
    """LIB-232."""
    with pytest.raises(StaleRequest, match=r"the given handle \(.*\) does not match \(lucky\)") as failure:
        releasable(block, [at(4), listed])
    assert failure.value.why.endswith("when attempting to release IP")


def test_an_allocation_without_a_handle_is_nobodys(block):
    anonymous = block.take((7,), Attribute(None, {"type": "tunnel"}))
    assert releasable(anonymous, [at(7)]) == (7,)
    with pytest.raises(StaleRequest, match=r"the given handle \(h\) does not match \(\)"):
        releasable(anonymous, [at(7, "h")])


@pytest.mark.parametrize(("listed", "found"), [(at(3, sequence=999), 10), (at(13, sequence=10), 0)])
def test_another_sequence_number_fails_all(block, listed, found):
    """LIB-233. A free address has none, so a release that names one is stale."""
    with pytest.raises(StaleRequest, match=rf"\({listed.sequence}\) does not match \({found}\)"):
        releasable(block, [at(4), listed])


def test_handles_of_old_versions_are_known_without_their_tail(block):
    assert releasable(block, [at(6, "old")]) == (6,)


def test_an_address_of_another_block_is_a_mistake(block):
    with pytest.raises(ValueError, match="not in block"):
        releasable(block, [Release(Address.parse("100.64.1.0"))])
