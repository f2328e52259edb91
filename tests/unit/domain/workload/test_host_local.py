"""host-local's ranges and routes: K8S-007 to K8S-015, case L10, and what recordings show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.cni.netconf import IpamSettings, NetConf
from domain.ipam.address import Cidr
from domain.workload.attachment import DEFAULT_ROUTES
from domain.workload.host_local import (
    needs_pod_cidrs,
    pod_routes,
    text_for_assignment,
    text_for_release,
)

HOST_LOCAL = NetConf(ipam=IpamSettings(type="host-local"))
GOLDEN = Path(__file__).parents[3] / "golden"
NOT_A_LIST = "failed to parse host-local IPAM routes section; expecting list, not: "
DUAL = ("10.10.0.0/24", "dead:beef::/96")


def conf(**ipam: object) -> str:
    return json.dumps({"name": "net6", "ipam": {"type": "host-local", "dataDir": "/d"} | ipam, "x": [1.50]})


def assigned(text: str, *pod_cidrs: str) -> dict[str, object]:
    return json.loads(text_for_assignment(text, "node-a", pod_cidrs))


def refusal(function, *args) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared by the caller
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize(
    ("ipam", "needs"),
    [
        ({"subnet": "usePodCidr"}, True),
        ({"subnet": "USEPODCIDRIPV6"}, True),
        ({"ranges": [[{"subnet": "10.0.0.0/8"}], [{"subnet": "usePodCidr"}]]}, True),
        ({"subnet": "10.0.0.0/8", "ranges": None}, False),
        ({"subnet": 7, "comment": "usePodCidr"}, False),
    ],
)
def test_the_node_is_asked_for_only_if_a_placeholder_says_so(ipam, needs):
    assert needs_pod_cidrs(conf(**ipam)) is needs


@pytest.mark.parametrize("pod_cidrs", [("10.10.0.0/24",), ("10.10.0.7/24",), DUAL, DUAL[::-1]])
def test_a_subnet_is_the_node_s_range(pod_cidrs):
    """K8S-007, K8S-011."""
    expected = json.loads(conf(subnet="10.10.0.0/24"))
    assert assigned(conf(subnet="usePodCIDR"), *pod_cidrs) == expected


def test_ranges_are_filled_by_their_version_and_keep_their_other_members():
    """K8S-008, K8S-012 to K8S-014."""
    ranges = [[{"subnet": "usePodCidr", "gateway": "10.10.0.1"}], [{"subnet": "usePodCidrIPv6"}, {"subnet": "fd::/96"}]]
    assert assigned(conf(ranges=ranges), *DUAL)["ipam"]["ranges"] == [
        [{"subnet": "10.10.0.0/24", "gateway": "10.10.0.1"}],
        [{"subnet": "dead:beef::/96"}, {"subnet": "fd::/96"}],
    ]


def test_a_configuration_without_placeholder_stays_to_the_letter():
    text = '{ "ipam": {"subnet": "10.0.0.0/8",  "ranges": []} }'
    assert text_for_assignment(text) is text
    assert text_for_release(HOST_LOCAL, text) is text


@pytest.mark.parametrize(
    ("ipam", "pod_cidrs", "text"),
    [
        ({"subnet": "usePodCidr"}, (), "no podCidr for node node-a"),
        ({"subnet": "usePodCidr"}, ("fd::/96",), "usePodCidr found but there is no IPv4 CIDR configured"),
        ({"subnet": "usePodCidrIPv6"}, DUAL[:1], "usePodCidrIPv6 found but there is no IPv6 CIDR configured"),
        (
            {"subnet": "usePodCidr"},
            ("10.0.0.0/24", "10.0.1.0/24"),
            "ClusterCIDR contains two ranges of the same type",
        ),
        ({"subnet": "usePodCidr"}, ("10.0.0.0",), "invalid CIDR address: 10.0.0.0"),
    ],
)
def test_a_node_that_cannot_fill_a_placeholder_is_named(ipam, pod_cidrs, text):
    assert refusal(text_for_assignment, conf(**ipam), "node-a", pod_cidrs) == text


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ([], "failed to parse host-local IPAM data; was expecting a dict, not: <nil>"),
        ({"ipam": "x"}, "failed to parse host-local IPAM data; was expecting a dict, not: x"),
        ({"ipam": {"ranges": [[True]]}}, "failed to parse host-local IPAM data; was expecting a dict, not: true"),
        (
            {"ipam": {"ranges": {"b": [1, None], "a": {}}}},
            "failed to parse host-local IPAM ranges section; was expecting a list, not: map[a:map[] b:[1 <nil>]]",
        ),
        (
            {"ipam": {"ranges": [{"subnet": "s"}]}},
            "failed to parse host-local IPAM range set; was expecting a list, not: map[subnet:s]",
        ),
    ],
)
def test_a_wrong_shape_is_refused_on_add_and_left_to_the_plugin_on_del(document, text):
    assert refusal(text_for_assignment, json.dumps(document)) == text
    assert refusal(needs_pod_cidrs, json.dumps(document)) == text
    assert text_for_release(HOST_LOCAL, json.dumps(document)) == json.dumps(document)


def test_a_release_needs_nobody_to_fill_the_placeholders():
    """L10."""
    ranges = [[{"subnet": "usePodCidr", "x": 1}], [{"subnet": "USEPODCIDRIPV6"}], [7]]
    text = conf(subnet="usePodCidr", ranges=ranges)
    filled = [[{"subnet": "0.0.0.0/0", "x": 1}], [{"subnet": "::/0"}], [7]]
    assert json.loads(text_for_release(HOST_LOCAL, text)) == json.loads(conf(subnet="0.0.0.0/0", ranges=filled))


ROUTES = [
    {"dst": "10.123.0.0/16", "gw": "10.123.0.1"},
    {"dst": "10.124.0.9/16"},
    {"gw": "x"},
    {"dst": "dead:beef::/96"},
]
CUSTOM = tuple(Cidr.parse(text) for text in ("10.123.0.0/16", "10.124.0.0/16", "dead:beef::/96"))


def test_configured_routes_replace_the_default_ones_unless_both_are_asked_for():
    """K8S-009, K8S-010, K8S-014, K8S-015."""
    assert pod_routes(conf(routes=ROUTES)) == CUSTOM
    assert pod_routes(conf(routes=ROUTES), include_default_routes=True) == DEFAULT_ROUTES + CUSTOM


@pytest.mark.parametrize("text", [conf(), conf(routes=None), conf(routes=[]), conf(routes=[{"gw": "x"}]), "{}", "[]"])
def test_without_configured_routes_the_pod_reaches_everything(text):
    assert pod_routes(text) == DEFAULT_ROUTES


@pytest.mark.parametrize(
    ("routes", "text"),
    [
        (
            "x",
            NOT_A_LIST + "map[dataDir:/d routes:x type:host-local]",
        ),
        ([{"dst": 7}], "invalid IPAM routes section; expecting 'dst' to be a string, not: 7"),
        ([{"dst": None}], "invalid IPAM routes section; expecting 'dst' to be a string, not: <nil>"),
        ([{"dst": "default"}], "invalid CIDR address: default"),
        (["0.0.0.0/0"], "invalid IPAM routes section; was expecting a dict, not: 0.0.0.0/0"),
    ],
)
def test_malformed_routes_are_refused(routes, text):
    assert refusal(pod_routes, conf(routes=routes)) == text


@pytest.mark.parametrize(
    ("name", "ranges"),
    [("kdd-host-local-podcidr", ("10.50.1.0/24",)), ("kdd-host-local-ranges", ("10.50.1.0/24", "fd50:1::/64"))],
)
def test_recorded_configurations_lead_to_the_recorded_addresses_and_routes(name, ranges):
    step = json.loads((GOLDEN / f"{name}.json").read_text())["steps"][0]
    text = step["call"]["stdin"]
    assert needs_pod_cidrs(text)
    ipam = assigned(text, *ranges)["ipam"]
    filled = [ipam["subnet"]] if "subnet" in ipam else [one["subnet"] for [one] in ipam["ranges"]]
    for subnet, ip in zip(filled, json.loads(step["call"]["stdout"])["ips"], strict=True):
        assert Cidr.parse(ip["address"]) in Cidr.parse(subnet)
    default = json.loads(text).get("include_default_routes", False)
    wanted = {str(cidr) for cidr in pod_routes(text, include_default_routes=default)}
    routes = [route for route in step["kernel"]["pod"]["route4"] if route.get("gateway")]
    seen = {"0.0.0.0/0" if route["dst"] == "default" else route["dst"] for route in routes}
    assert seen == {text for text in wanted if ":" not in text}
