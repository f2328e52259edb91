"""How many round trips an ADD and a DEL take on a real etcd, connecting included.

Invariant: the budgets are at most eight for an ADD on a node that claims a block, and four for one on a node that has a
block to take from, and for a DEL, whether a block gets empty by it or not. The first ADD of a network makes its profile
as well.
"""

from __future__ import annotations

import pytest

from integration.faults.rig import Rig

NEWLY_NETWORKED = 9  # three reads; affinity, block, affinity, handle with block, endpoint, profile
CLAIMING = 8
ADD = 4  # two reads; handle with block, endpoint
DEL = 4  # two reads; block with handle, endpoint
NOTHING_LEFT = 4  # cluster, endpoints, settings and handle; the handle of old; all blocks; the endpoint


@pytest.mark.parametrize("profile_before", [False, True])
def test_calls_keep_within_their_budgets(rig: Rig, profile_before: bool) -> None:
    rig.reset()
    host = rig.host
    first, second = host.container("a"), host.container("b")
    if profile_before:
        host.add(first).result()
        host.delete(first).silent()
        drop_blocks(rig)
    assert counted(rig, lambda: host.add(first).result()) == (CLAIMING if profile_before else NEWLY_NETWORKED)
    assert counted(rig, lambda: host.add(second).result()) == ADD
    assert counted(rig, lambda: host.delete(first).silent()) == DEL
    assert counted(rig, lambda: host.delete(second).silent()) == DEL  # the block gets empty
    assert counted(rig, lambda: host.delete(second).silent()) == NOTHING_LEFT


def counted(rig: Rig, call) -> int:
    rig.proxy.listen()
    call()
    return len(rig.proxy.requests)


def drop_blocks(rig: Rig) -> None:
    for key in rig.etcd.texts():
        if key.startswith(("/calico/ipam/v2/assignment/", "/calico/ipam/v2/host/")):
            rig.etcd.drop(key)
