"""A signal may end an ADD right after any write, before anybody knows that it happened: undoing leaves nothing."""

from __future__ import annotations

import pytest

from domain.cni.netconf import IpamSettings
from domain.cni.request import CniArgs
from domain.ipam.address import Address
from domain.ipam.block import Handle
from ports.datastore import HandleKey
from worlds.one_node import NEVER, OneNode

BOTH = IpamSettings(type="calico-ipam", assign_ipv4="true", assign_ipv6="true")
WRITES = {"create", "update", "delete", "write"}


class Signal(BaseException):
    """As `entrypoints.termination.Interrupted`: no ordinary handler stops it."""


def interrupt(node: OneNode, nth: int) -> None:
    """Raise once, when the `nth` write has happened; undoing is not interrupted."""
    left = [nth]

    def hook(verb: str, _key: object) -> None:
        if verb in WRITES:
            left[0] -= 1
            if left[0] == 0:
                raise Signal

    node.datastore.after = hook


CALLS = {
    "both families": lambda node: node.assign(ipam=BOTH),
    "a specific address": lambda node: node.assign(args=CniArgs(Address.parse("10.244.0.7"))),
    "a whole ADD": lambda node: node.add(ipam=BOTH),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("claimed", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_an_add_that_is_interrupted_after_any_write_leaves_nothing(call, claimed, together):
    interrupted = 0
    for nth in range(1, 20):
        node = OneNode()
        node.datastore.writes_together = node.datastore.brings_along = together
        if claimed:
            node.assign("c2", ipam=BOTH)
            node.release("c2")
        interrupt(node, nth)
        try:
            CALLS[call](node)
        except Signal:
            interrupted += 1
            assert node.leftovers() == {}, nth
    assert interrupted >= 2


def test_what_another_call_of_the_container_holds_stays():
    node = OneNode()
    node.assign()
    held, counts = node.holders(), node.counts()
    interrupt(node, 2)
    with pytest.raises(Signal):
        node.assign()
    assert (node.holders(), node.counts()) == (held, counts)


def test_a_count_that_an_earlier_death_has_left_is_corrected_in_passing():
    node = OneNode()
    node.assign()
    (block,) = node.datastore.get(HandleKey("net1.c1"), NEVER).record.blocks
    node.put(HandleKey("net1.c1"), Handle({block: 5}))
    interrupt(node, 1)
    with pytest.raises(Signal):
        node.assign()
    assert node.counts() == {"net1.c1": {str(block): 1}}
