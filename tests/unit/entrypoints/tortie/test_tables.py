"""Tables of `tortie get`: every kind has one, short and wide."""

from __future__ import annotations

import pytest

from adapters.records.kinds import KINDS
from domain.cluster import ClusterInformation, Node
from domain.ipam.pools import IPAMConfiguration, IPReservation, Pool
from domain.resource import Metadata
from domain.workload.endpoint import Nat, Profile, WorkloadEndpoint
from entrypoints.tortie.tables import table


def rows(kind, *records, wide=True, namespaces=False):
    return [line.split() for line in table(kind, records, wide=wide, namespaces=namespaces).splitlines()]


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
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
