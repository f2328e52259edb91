"""Which pools may serve a request (LIB-153 to LIB-180, LIB-188 to LIB-198; spec: ipam 7)."""

from __future__ import annotations

import pytest

from domain.ipam.address import Address, Cidr
from domain.ipam.errors import IpamError, NoPool
from domain.ipam.pools import (
    LOAD_BALANCER,
    TUNNEL,
    WORKLOAD,
    Pool,
    PoolRequest,
    choose_pools,
    deselects,
    enabled_pools,
    pool_of,
    require_versions,
)
from domain.resource import Metadata

RANGES = {4: ("10.0.0.0/24", "20.0.0.0/24"), 6: ("fe80:11::/120", "fe80:22::/120")}
LABELS = {"foo": "bar"}
MATCHES, DIFFERS = 'foo == "bar"', 'foo != "bar"'


def pool(cidr: str, name: str = "p", **fields: object) -> Pool:
    return Pool(Metadata(name), cidr, **fields)


def chosen(pools: list[Pool], **request: object) -> list[str]:
    fields = {"version": 4, "node": "node1", "node_labels": LABELS, "namespace_labels": None, **request}
    return [one.cidr_text for one in choose_pools(pools, PoolRequest(**fields)).usable]


def refusal(pools: list[Pool], **request: object) -> str:
    with pytest.raises(IpamError) as caught:
        chosen(pools, **request)
    assert caught.value.code == 999
    return str(caught.value)


NONE_FOR_NODE = "no configured Calico pools for node node1"
CASES = [
    # id offset, pool1, pool2, index of the requested pool or None, indexes of the answer
    (0, {}, {}, None, [0, 1]),
    (1, {}, {}, 0, [0]),
    (2, {"node_selector": MATCHES}, {"node_selector": DIFFERS}, None, [0]),
    (3, {"node_selector": MATCHES}, {"node_selector": DIFFERS}, 0, [0]),
    (4, {"node_selector": DIFFERS}, {"node_selector": "all()"}, None, [1]),
    (5, {"node_selector": DIFFERS}, {"node_selector": "all()"}, 0, [0]),
    (6, {"node_selector": MATCHES}, {"node_selector": "all()"}, 1, [1]),
    (7, {"disabled": True}, {}, None, [1]),
    (8, {"disabled": True}, {}, 0, "the given pool ({0}) does not exist, or is not enabled"),
    (9, {"disabled": True}, {}, 1, [1]),
    (10, {"disabled": True}, {"node_selector": MATCHES}, None, [1]),
    (11, {"disabled": True}, {"node_selector": MATCHES}, 1, [1]),
    # The original's function gives an empty list here, and its caller this text.
    (12, {"disabled": True}, {"node_selector": DIFFERS}, None, NONE_FOR_NODE),
    (13, {"disabled": True}, {"node_selector": DIFFERS}, 1, [1]),
]


@pytest.mark.parametrize(
    ("version", "first", "second", "requested", "expected"),
    [
        pytest.param(version, *case[1:], id=f"LIB-{base + case[0]}")
        for version, base in ((4, 153), (6, 167))
        for case in CASES
    ],
)
def test_the_choice_follows_selectors_and_requests(version, first, second, requested, expected):
    ranges = RANGES[version]
    pools = [pool(ranges[0], "pool1", **first), pool(ranges[1], "pool2", **second)]
    wanted = () if requested is None else (Cidr.parse(ranges[requested]),)
    if isinstance(expected, str):
        assert refusal(pools, version=version, wanted=wanted) == expected.format(*ranges)
    else:
        assert chosen(pools, version=version, wanted=wanted) == [ranges[index] for index in expected]


PRODUCTION = "environment == 'production'"


@pytest.mark.parametrize(
    ("selectors", "node", "namespace", "match"),
    [
        pytest.param({}, {}, {"any": "thing"}, True, id="LIB-188"),
        pytest.param({"namespace_selector": PRODUCTION}, {}, {"environment": "production"}, True, id="LIB-189"),
        pytest.param({"namespace_selector": PRODUCTION}, {}, {"environment": "development"}, False, id="LIB-190"),
        pytest.param(
            {"namespace_selector": PRODUCTION, "node_selector": "zone == 'us-west'"},
            {"zone": "us-west"},
            {"environment": "production"},
            True,
            id="LIB-191",
        ),
        pytest.param(
            {"namespace_selector": PRODUCTION, "node_selector": "zone == 'us-west'"},
            {"zone": "us-west"},
            {"environment": "development"},
            False,
            id="LIB-192",
        ),
        pytest.param(
            {"namespace_selector": PRODUCTION, "node_selector": "zone == 'us-west'"},
            {"zone": "us-east"},
            {"environment": "production"},
            False,
            id="LIB-193",
        ),
        pytest.param(
            {"namespace_selector": PRODUCTION + " && tier == 'frontend'"},
            {},
            {"environment": "production", "tier": "frontend"},
            True,
            id="LIB-194",
        ),
        pytest.param(
            {"namespace_selector": PRODUCTION + " && tier == 'frontend'"},
            {},
            {"environment": "production", "tier": "backend"},
            False,
            id="LIB-195",
        ),
        pytest.param({"namespace_selector": PRODUCTION}, {}, None, False, id="no namespace known"),
        pytest.param(
            {"namespace_selector": PRODUCTION}, {"environment": "production"}, None, False, id="the node's are not its"
        ),
        pytest.param({"namespace_selector": "!has(environment)"}, {}, None, True, id="none known counts as no labels"),
    ],
)
def test_a_pool_must_select_both_the_node_and_the_namespace(selectors, node, namespace, match):
    pools = [pool("10.0.0.0/24", **selectors), pool("10.1.0.0/24", "rest")]
    expected = ["10.0.0.0/24", "10.1.0.0/24"] if match else ["10.1.0.0/24"]
    assert chosen(pools, node_labels=node, namespace_labels=namespace) == expected


def test_several_pools_for_several_namespaces():
    """LIB-196."""
    pools = [
        pool("10.0.0.0/24", namespace_selector=PRODUCTION),
        pool("10.1.0.0/24", namespace_selector="environment == 'development'"),
        pool("10.2.0.0/24"),
    ]
    request = PoolRequest(4, "node1", {}, {"environment": "production"})
    choice = choose_pools(pools, request)
    assert len(choice.enabled) == 3
    assert {one.cidr_text for one in choice.usable} == {"10.0.0.0/24", "10.2.0.0/24"}


@pytest.mark.parametrize("field", ["node_selector", "namespace_selector"])
def test_a_selector_that_cannot_be_read_is_an_error_that_names_the_pool(field):
    """LIB-197."""
    pools = [pool("10.0.0.0/24", "broken", **{field: "invalid selector syntax ["})]
    text = refusal(pools, namespace_labels={})
    assert text.startswith("IPPool broken: Failed to parse selector 'invalid selector syntax ['")


def test_a_pool_turns_a_node_away_only_by_a_selector_that_can_be_read():
    assert deselects(pool("10.0.0.0/24", node_selector=DIFFERS), LABELS)
    assert not deselects(pool("10.0.0.0/24", node_selector=MATCHES), LABELS)
    assert not deselects(pool("10.0.0.0/24", node_selector="["), LABELS)


def test_a_pool_that_is_asked_for_is_used_whatever_it_selects():
    """LIB-198; spec: ipam 7, step 2."""
    pools = [pool("10.0.0.0/24", namespace_selector=PRODUCTION, node_selector="!all()", assignment_mode="Manual")]
    assert chosen(pools, namespace_labels={"environment": "x"}, wanted=(Cidr.parse("10.0.0.0/24"),)) == ["10.0.0.0/24"]


def test_pools_are_used_in_the_order_asked_for():
    pools = [pool("10.0.0.0/24"), pool("10.1.0.0/24")]
    wanted = (Cidr.parse("10.1.0.0/24"), Cidr.parse("10.0.0.0/24"))
    assert chosen(pools, wanted=wanted) == ["10.1.0.0/24", "10.0.0.0/24"]


def test_c06_a_pool_is_found_however_record_and_request_spell_it():
    """C06."""
    assert chosen([pool("10.20.0.1/24")], wanted=(Cidr.parse("10.20.0.77/24"),)) == ["10.20.0.1/24"]
    wanted = (Cidr.parse("c001:c0af::/122"),)
    assert chosen([pool("C001:C0AF::12/122")], version=6, wanted=wanted) == ["C001:C0AF::12/122"]


@pytest.mark.parametrize(
    "unusable",
    [
        {"disabled": True},
        {"deleting": True},
        {"conditions": (("Allocatable", "False"),)},
        {"cidr_text": "fd00::/64"},
        {"cidr_text": "nonsense"},
    ],
)
def test_pools_that_may_not_serve_count_as_absent(unusable):
    one = pool("10.0.0.0/24").replace(**unusable)
    assert enabled_pools([one], 4) == ()
    assert refusal([one]) == "cannot find a qualified ippool"


def test_a_pool_with_other_conditions_serves():
    one = pool("10.0.0.0/24", conditions=(("Allocatable", "True"), ("Other", "False")))
    assert enabled_pools([one], 4) == (one,)


def test_pools_with_blocks_too_small_for_what_the_host_keeps_are_not_seen():
    """spec: ipam 7, step 1; LIB-101."""
    small, large = pool("10.0.0.0/24", block_size=30), pool("10.1.0.0/24", block_size=29)
    assert refusal([small], longest_block=29) == "cannot find a qualified ippool"
    assert refusal([small, large], longest_block=29, wanted=(small.cidr,)).startswith("the given pool (10.0.0.0/24)")
    assert chosen([small, large], longest_block=29) == ["10.1.0.0/24"]
    only_small = [small, large.replace(node_selector="!all()")]
    assert refusal(only_small, longest_block=29).startswith("cannot find a qualified ippool, no pools match")


@pytest.mark.parametrize(
    ("pools", "request_fields", "by_the_pools_own_settings"),
    [
        pytest.param([], {}, True, id="none at all"),
        pytest.param([{"node_selector": "!all()"}], {}, True, id="none selects the node"),
        pytest.param([{"assignment_mode": "Manual"}], {}, True, id="none is automatic"),
        pytest.param([{"allowed_uses": ("Tunnel",)}], {}, True, id="none is for workloads"),
        pytest.param([{"allowed_uses": ("Tunnel",)}], {"wanted": (Cidr.parse("10.0.0.0/24"),)}, False, id="named"),
        pytest.param([{}], {"wanted": (Cidr.parse("10.9.0.0/24"),)}, False, id="the one that is named is missing"),
        pytest.param([{}], {"use": ""}, False, id="no use"),
        pytest.param([{"node_selector": "["}], {}, False, id="a selector that cannot be read"),
    ],
)
def test_c01_whether_it_may_be_meant_that_no_pool_serves_a_version(pools, request_fields, by_the_pools_own_settings):
    """C01: only then can the version be left out."""
    request = PoolRequest(4, "node1", {}, None, **request_fields)
    with pytest.raises(IpamError) as caught:
        choose_pools([pool("10.0.0.0/24", **fields) for fields in pools], request)
    assert isinstance(caught.value, NoPool) == by_the_pools_own_settings


@pytest.mark.parametrize(
    ("pools", "text"),
    [
        ({4: ("10.0.0.0/24", "fd00::/64")}, "provided IPv4 IPPools list contains one or more IPv6 IPPools"),
        ({4: (), 6: ("10.0.0.0/24",)}, "provided IPv6 IPPools list contains one or more IPv4 IPPools"),
    ],
)
def test_pools_are_named_under_their_own_ip_version(pools, text):
    """LIB-094, LIB-100."""
    with pytest.raises(IpamError) as caught:
        require_versions({version: tuple(map(Cidr.parse, texts)) for version, texts in pools.items()})
    assert str(caught.value) == text
    require_versions({4: (Cidr.parse("10.0.0.0/24"),), 6: (Cidr.parse("fd00::/64"),)})


def test_pools_that_are_assigned_by_hand_are_not_chosen():
    """C01."""
    assert refusal([pool("10.0.0.0/24", assignment_mode="Manual")]) == NONE_FOR_NODE
    assert chosen([pool("10.0.0.0/24", assignment_mode="Automatic")]) == ["10.0.0.0/24"]


def test_the_use_must_be_allowed():
    tunnel_only, any_use = pool("10.0.0.0/24", allowed_uses=(TUNNEL,)), pool("10.1.0.0/24")
    choice = choose_pools([tunnel_only, any_use], PoolRequest(4, "node1", {}, None))
    assert (choice.usable, choice.selected) == ((any_use,), (tunnel_only, any_use))
    assert any_use.uses == (WORKLOAD, TUNNEL)
    text = "cannot find a qualified ippool, no pools match the required use (Workload)"
    assert refusal([tunnel_only]) == text
    assert refusal([any_use], use=LOAD_BALANCER) == text.replace("Workload", "LoadBalancer")
    assert refusal([any_use], use="") == "must specify the intended use when assigning an IP"


def test_a_pools_blocks_have_their_default_size():
    assert pool("10.0.0.0/16").block_length == 26
    assert pool("fd00::/48").block_length == 122
    assert pool("10.0.0.0/16", block_size=28).block_length == 28
    assert pool("nonsense").block_length == 26


def test_the_first_pool_that_contains_it_is_an_addresss_pool():
    pools = [pool("nonsense"), pool("10.0.0.0/24"), pool("10.0.0.0/16")]
    assert pool_of(pools, Address.parse("10.0.0.9")) is pools[1]
    assert pool_of(pools, Cidr.parse("10.0.1.0/26")) is pools[2]
    assert pool_of(pools, Cidr.parse("11.0.0.0/26")) is None
