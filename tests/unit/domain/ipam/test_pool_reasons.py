"""Why a pool does not serve: every setting that can decide is named, and nothing that does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Address, Cidr
from domain.ipam.errors import IpamError
from domain.ipam.pool_reasons import outside, passed_over, reserved_in, unknown_pool, why_not
from domain.ipam.pools import IPReservation, Pool, PoolRequest, choose_pools
from domain.resource import Metadata

REQUEST = PoolRequest(4, "node1", {"zone": "a"}, {"team": "red"})


def pool(name: str = "p", cidr: str = "10.66.0.0/24", **fields: object) -> Pool:
    return Pool(Metadata(name), cidr, **fields)


OFF = [
    ({"disabled": True}, "is disabled"),
    ({"deleting": True}, "is being deleted"),
    ({"conditions": (("Allocatable", "False"),)}, "is not Allocatable, by its status"),
]
OTHERS = [
    ({"assignment_mode": "Manual"}, "has assignmentMode Manual, so it serves only those who name it"),
    ({"node_selector": "zone == 'b'"}, "does not select node node1 (nodeSelector: zone == 'b')"),
    ({"namespace_selector": "team == 'blue'"}, "does not select the namespace (namespaceSelector: team == 'blue')"),
    ({"allowed_uses": ("Tunnel",)}, "is not for Workload (allowedUses: [Tunnel])"),
]


@pytest.mark.parametrize(("fields", "why"), [*OFF, *OTHERS])
def test_each_setting_that_decides_is_named(fields, why):
    with pytest.raises(IpamError) as refused:
        choose_pools([pool(**fields)], REQUEST)
    assert refused.value.details == f"IPPool p (10.66.0.0/24) {why}"


@pytest.mark.parametrize(("fields", "why"), OFF)
def test_of_a_pool_that_is_asked_for_only_what_holds_for_all_counts(fields, why):
    cidr = Cidr.parse("10.66.0.0/24")
    with pytest.raises(IpamError, match=r"does not exist, or is not enabled$") as refused:
        choose_pools([pool(**fields), pool("q", "10.67.0.0/24")], REQUEST.replace(wanted=(cidr,)))
    assert refused.value.details == f"IPPool p (10.66.0.0/24) {why}"
    for settings, _ in OTHERS[:3]:
        assert why_not(pool(**settings), REQUEST.replace(wanted=(cidr,))) == ""


@pytest.mark.parametrize(("fields", "why"), OFF)
def test_an_address_of_a_pool_that_is_off(fields, why):
    said = outside([pool(**fields), pool("q", "10.67.0.0/24")], Address.parse("10.66.0.9"))
    assert said == f"IPPool p (10.66.0.0/24) has it, but {why}"


def test_an_address_of_no_pool_is_told_the_pools_that_there_are():
    known = [pool("q", "10.67.0.0/24"), pool("off", "10.68.0.0/24", disabled=True), pool("six", "fd00::/120")]
    assert outside(known, Address.parse("10.66.0.9")) == "IPv4 pools: IPPool q (10.67.0.0/24)"
    assert outside([], Address.parse("fd00::1")) == "there is no IPv6 pool"


def test_a_range_that_is_none_of_a_pool():
    known = [pool(), pool("q", "10.67.0.0/24")]
    part = "IPPool p (10.66.0.0/24) overlaps it: ask for the pool's name or its whole range"
    assert unknown_pool(known, Cidr.parse("10.66.0.0/26")) == part
    there = "IPv4 pools: IPPool p (10.66.0.0/24), IPPool q (10.67.0.0/24)"
    assert unknown_pool(known, Cidr.parse("10.9.0.0/16")) == there


def test_what_is_no_range_and_a_block_that_has_no_room_are_told():
    assert why_not(pool(cidr="10.66"), REQUEST) == "has no range but '10.66'"
    small = why_not(pool(block_size=32), REQUEST.replace(longest_block=29))
    assert small.startswith("has blocks of /32, too small")
    nowhere = REQUEST.replace(namespace_labels=None)
    assert "does not select a container without a namespace" in why_not(pool(namespace_selector="has(x)"), nowhere)


def test_without_a_pool_of_the_version_there_is_none_to_name():
    assert passed_over([pool("six", "fd00::/120")], REQUEST) == "there is no IPv4 pool"


def test_of_many_pools_some_are_named():
    said = passed_over([pool(f"p{n}", f"10.{n}.0.0/24", disabled=True) for n in range(12)], REQUEST)
    assert said.count("is disabled") == 10
    assert said.endswith("; and 2 more")


def test_reservations_are_named_with_what_they_keep_of_a_pool():
    kept = IPReservation(Metadata("routers"), ("10.66.0.0/28", "10.99.0.0/24", "nonsense"))
    assert reserved_in([pool()], [kept, IPReservation(Metadata("none"))]) == "IPReservation routers keeps 10.66.0.0/28"


DECIDING = st.builds(
    pool,
    cidr=st.sampled_from(["10.66.0.0/24", "10.67.0.0/16", "fd00::/112", "fd01::/100"]),
    disabled=st.booleans(),
    node_selector=st.sampled_from(["", "all()", "has(zone)", "zone == 'a' && !has(x)"]),
    namespace_selector=st.sampled_from(["", "all()", "has(team)"]),
    allowed_uses=st.sampled_from([(), ("Workload",), ("Workload", "Tunnel"), ("LoadBalancer",)]),
    assignment_mode=st.sampled_from(["", "Automatic", "Manual"]),
    conditions=st.sampled_from([(), (("Allocatable", "True"),), (("Allocatable", "False"),)]),
    deleting=st.booleans(),
)


@given(st.lists(DECIDING, max_size=4), st.sampled_from([4, 6]), st.sampled_from([{}, {"zone": "a"}]))
def test_a_pool_has_a_reason_exactly_if_it_is_passed_over(pools, version, labels):
    request = PoolRequest(version, "node1", labels, None)
    try:
        usable = choose_pools(pools, request).usable
    except IpamError:
        usable = ()
    assert usable or passed_over(pools, request)
    for one in pools:
        if one.cidr.version == version:
            assert (why_not(one, request) == "") == (one in usable)
