"""An upgrade from host-local that dies, or loses an answer, at any of its steps ends as if it had not.

Invariant, whatever has happened so far: an address that a pod has is in its file or recorded for its container, and
recorded for nobody else; a file goes only when that is so; handles count at least what blocks hold for them.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.ipam.errors import IpamError
from domain.ipam.upgrade import NETWORK
from ports.errors import PortError
from worlds.scheduler import DIE_AFTER, DIE_BEFORE, LOSE_REPLY, Died
from worlds.troubled_ports import Outside
from worlds.upgrading_node import TUNNEL, UpgradingNode

FATES = (DIE_BEFORE, DIE_AFTER, LOSE_REPLY)
ADDRESSES = ("10.244.0.2", "10.244.0.3", "10.244.0.70", "fd00:10:244::5")
STALE = {"10.244.0.9": "gone\r\neth0", "last_reserved_ip.0": "10.244.0.9"}


class Upgrading(UpgradingNode):
    def __init__(self, addresses=ADDRESSES) -> None:
        super().__init__()
        self.containers = {address: self.reserve(address) for address in addresses}
        self.files.texts |= STALE

    def outside(self, fate: int, at: int) -> Outside:
        self.store = self.datastore  # as Outside has it
        return Outside(self, fate, at, None, 0)

    def disturbed(self, fate: int, at: int) -> bool:
        """Upgrade once, with a fault at that step; whether it came so far."""
        outside, undo = self.outside(fate, at), self.undo()
        try:
            self.upgrade(outside, undo)
        except Died:
            pass
        except (PortError, IpamError):
            undo.run()  # as when it is given up
        self.nothing_is_lost()
        return outside.faulted

    def nothing_is_lost(self) -> None:
        recorded, files = self.moved(), self.files.texts or {}
        for address, container in self.containers.items():
            assert address in files or recorded.get(address) == container
            assert recorded.get(address, container) == container
        assert set(recorded) <= set(self.containers)
        held = [(handle, address) for address, handle in self.holders().items()]
        for handle in {handle for handle, _ in held}:
            counted = sum(self.counts().get(handle, {}).values())
            assert counted >= sum(1 for one, _ in held if one == handle)

    def ends(self) -> None:
        self.upgrade_until_done()
        self.is_upgraded(self.containers)
        assert self.holders()["10.244.0.1"] == TUNNEL
        assert set(self.counts()) == {TUNNEL, *(f"{NETWORK}.{one}" for one in self.containers.values())}


@pytest.mark.parametrize("fate", FATES)
def test_it_may_die_at_every_step(fate):
    for at in range(1, 200):
        node = Upgrading()
        came = node.disturbed(fate, at)
        node.ends()
        if not came:
            break
    assert 40 < at < 199


@given(st.lists(st.tuples(st.sampled_from(FATES), st.integers(1, 60)), max_size=5))
@settings(deadline=None, max_examples=60)
def test_it_may_die_as_often_as_it_likes(faults):
    node = Upgrading()
    for fate, at in faults:
        node.disturbed(fate, at)
    node.ends()


def test_a_failure_that_is_given_up_leaves_the_cluster_ready():
    """As `tortie ipam upgrade` gives up. Who is killed cannot: the next upgrade makes it ready."""
    for at in range(1, 60):
        node = Upgrading()
        node.disturbed(LOSE_REPLY, at)
        assert node.is_ready() is True, at
