"""What records are called in texts for people."""

from __future__ import annotations

import pytest

from domain.ipam.address import Cidr
from domain.ipam.block import HOST, VIRTUAL, Owner
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    ClusterInformationKey,
    HandleKey,
    IPPoolKey,
    NodeKey,
    WorkloadEndpointKey,
)
from ports.record_title import record_title

V4, V6 = Cidr.parse("10.0.0.64/26"), Cidr.parse("fd00:10:244::40/122")


@pytest.mark.parametrize(
    ("key", "title"),
    [
        (BlockKey(V4), "ipamblock 10-0-0-64-26"),
        (BlockKey(V6), "ipamblock fd00-10-244--40-122"),
        (AffinityKey(Owner(HOST, "n1"), V4), "blockaffinity n1-10-0-0-64-26"),
        (AffinityKey(Owner(VIRTUAL, "n1"), V4), "blockaffinity n1-10-0-0-64-26 (virtual)"),
        (HandleKey("net1.c1"), "ipamhandle net1.c1"),
        (AllocationConfigKey(), "ipamconfig default"),
        (IPPoolKey("p"), "ippool p"),
        (NodeKey("n"), "node n"),
        (ClusterInformationKey("default"), "clusterinformation default"),
        (WorkloadEndpointKey("default", "w"), "workloadendpoint default/w"),
        ("of an unknown kind", "of an unknown kind"),
    ],
)
def test_a_title_has_kind_and_name_as_operators_know_them(key, title):
    assert record_title(key) == title
