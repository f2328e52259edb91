"""Tables of `tortie get`: every kind has one, short and wide."""

from __future__ import annotations

import pytest

from adapters.records.kinds import INNER_KINDS, KINDS, kind_named
from domain.cluster import ClusterInformation, Node
from domain.ipam.address import Cidr
from domain.ipam.block import HOST, Affinity, Attribute, Handle, Owner, new_block
from domain.ipam.pools import IPAMConfiguration, IPReservation, Pool
from domain.resource import Metadata
from domain.workload.endpoint import Nat, Profile, WorkloadEndpoint
from entrypoints.tortie.tables import cells, headings
from ports.datastore import AffinityKey, BlockKey, HandleKey, Stored


def rows(kind, *records, wide=True, namespaces=False):
    """Headings, then what stands in the cells of each record, empty ones left out."""
    known = kind_named(kind)
    names = headings(known, wide=wide, namespaces=namespaces)
    found = [cells(known, Stored(None, record, "1")) for record in records]
    return [list(names), *[[one[name] for name in names if one[name]] for one in found]]


@pytest.mark.parametrize("kind", [kind.name for kind in (*KINDS, *INNER_KINDS)])
@pytest.mark.parametrize("wide", [False, True])
def test_every_kind_has_headings(kind, wide):
    (headings,) = rows(kind, wide=wide)
    assert headings[0] in ("NAME", "WORKLOAD")


def test_a_node_without_a_number_speaks_for_the_default_autonomous_system():
    bgp = '{"bgp":{"ipv4Address":"10.0.0.11/24"}}'
    own = '{"bgp":{"asNumber":64999,"ipv6Address":"fd00::b/64"}}'
    found = rows("Node", Node(Metadata("a"), spec=bgp), Node(Metadata("b"), spec=own), Node(Metadata("c")))
    assert found[1:] == [["a", "(64512)", "10.0.0.11/24"], ["b", "64999", "fd00::b/64"], ["c"]]


def test_a_workload_is_its_pod_its_workload_or_its_container():
    endpoints = [
        WorkloadEndpoint(Metadata("x", "ns"), node="n", **one)
        for one in ({"pod": "p", "container_id": "c"}, {"workload": "w"}, {"container_id": "c"})
    ]
    assert [row[0] for row in rows("WorkloadEndpoint", *endpoints, wide=False)] == ["WORKLOAD", "p", "w", "c"]
    assert rows("WorkloadEndpoint", *endpoints, wide=False, namespaces=True)[1][:2] == ["ns", "p"]


def test_lists_stand_in_one_cell():
    nats = (Nat("10.0.0.1", "1.2.3.4"), Nat("10.0.0.1", "1.2.3.5"))
    endpoint = WorkloadEndpoint(Metadata("x"), profiles=("a", "b"), ip_nats=nats)
    assert rows("WorkloadEndpoint", endpoint)[1] == ["x", "a,b", "1.2.3.4->10.0.0.1,1.2.3.5->10.0.0.1"]
    assert rows("Profile", Profile(Metadata("p"), labels_to_apply={"k": "v"}))[1] == ["p", "k=v"]
    assert rows("IPReservation", IPReservation(Metadata("r"), ("10.0.0.1", "10.0.0.2")))[1] == [
        "r",
        "10.0.0.1,10.0.0.2",
    ]


def test_flags_and_limits():
    config = IPAMConfiguration(Metadata("default"), strict_affinity=True, max_blocks_per_host=3)
    assert rows("IPAMConfiguration", config)[1] == ["default", "true", "true", "3"]
    assert rows("ClusterInformation", ClusterInformation(Metadata("default")))[1] == ["default"]
    assert rows("IPPool", Pool(Metadata("p"), "10.0.0.0/16"))[1] == (
        ["p", "10.0.0.0/16", "false", "Never", "Never", "false", "false", "all()"]
    )


def test_ipams_own_records_are_counted():
    """A11."""
    cidr = Cidr.parse("10.0.0.0/30")
    block = new_block(cidr, "host:n", None, 1).take((0, 2), Attribute("h", {}))
    stored = [
        Stored(BlockKey(cidr), block, "1"),
        Stored(HandleKey("h"), Handle({cidr: 2}), "1"),
        Stored(AffinityKey(Owner(HOST, "n"), cidr), Affinity("pending"), "1"),
    ]
    shown = [list(cells(kind, one).values()) for kind, one in zip(INNER_KINDS, stored)]
    assert shown == [
        ["10-0-0-0-30", "10.0.0.0/30", "host:n", "2", "2"],
        ["h", "2", "10.0.0.0/30"],
        ["n-10-0-0-0-30", "n", "host", "10.0.0.0/30", "pending", "false"],
    ]
