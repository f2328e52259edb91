"""Annotations: K8S-016 to K8S-030, K8S-044, K8S-045, cases C02 and C08, and the answers that recordings show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Address, Cidr
from domain.workload.annotations import (
    ALLOWED_SOURCE_PREFIXES,
    HW_ADDR,
    IP_ADDRS,
    IP_ADDRS_NO_IPAM,
    IP_FAMILIES,
    IPV4_POOLS,
    IPV6_POOLS,
    BadAnnotation,
    FixedAddresses,
    PoolWishes,
    allowed_source_prefixes,
    fixed_addresses,
    floating_nats,
    hardware_address,
    parse_ip_list,
    pool_wishes,
)
from domain.workload.endpoint import Nat

GOLDEN = Path(__file__).parents[3] / "golden"
NOT_A_LIST = "json: cannot unmarshal {} into Go value of type []string"
LONE = Cidr.parse("10.0.0.1/32")


def refusal(function, *args, **named) -> str:
    with pytest.raises(BadAnnotation) as caught:
        function(*args, **named)
    return str(caught.value)


# --- lists of addresses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", ['["20.0.0.111"]', '["fd00::1", "20.0.0.111"]', '["fd00::1"]'])
def test_a_list_has_one_address_per_version_in_its_order(raw):
    """K8S-026, K8S-029."""
    assert parse_ip_list(IP_ADDRS, raw) == tuple(Address.parse(text) for text in json.loads(raw))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("[", "failed to parse '[' as JSON: unexpected end of JSON input"),
        ("{}", "failed to parse '{}' as JSON: " + NOT_A_LIST.format("object")),
        ('"10.0.0.1"', "failed to parse '\"10.0.0.1\"' as JSON: " + NOT_A_LIST.format("string")),
        ("[1]", "failed to parse '[1]' as JSON: json: cannot unmarshal number into Go value of type string"),
    ],
)
def test_a_list_that_is_none_is_refused_twice_over(raw, text):
    assert refusal(parse_ip_list, "k", raw) == f'failed to parse IPs {raw} for annotation "k": {text}'


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("[]", 'annotation "k" specified but empty'),
        ("null", 'annotation "k" specified but empty'),
        ('["x"]', "invalid IP format: x"),
        ('["10.0.0.1/32"]', "invalid IP format: 10.0.0.1/32"),
        ("[null]", "invalid IP format: "),
        ('["10.0.0.1", "10.0.0.2"]', 'cannot have more than one IPv4 address for "k" annotation'),
        ('["fd00::1", "fd00::1"]', 'cannot have more than one IPv6 address for "k" annotation'),
    ],
)
def test_an_unusable_list_is_refused(raw, text):
    """K8S-028, C08."""
    assert refusal(parse_ip_list, "k", raw) == text


def test_a_refusal_says_which_annotation_and_what_it_held():
    with pytest.raises(BadAnnotation) as caught:
        parse_ip_list(IP_ADDRS, "[")
    assert (caught.value.key, caught.value.raw) == (IP_ADDRS, "[")


@given(st.lists(st.ip_addresses(v=4).map(str), max_size=1), st.lists(st.ip_addresses(v=6).map(str), max_size=1))
def test_every_pair_of_addresses_is_read(v4, v6):
    texts = [*v4, *v6]
    mapped = any(text.startswith("::ffff:") for text in v6)
    if texts and not mapped:
        assert parse_ip_list(IP_ADDRS, json.dumps(texts)) == tuple(Address.parse(text) for text in texts)


# --- which list counts -----------------------------------------------------------------------------------------------


def test_a_pod_without_lists_leaves_its_addresses_to_ipam():
    assert fixed_addresses({IP_ADDRS: "", IP_ADDRS_NO_IPAM: ""}, "host-local", no_ipam_allowed=False) is None


@pytest.mark.parametrize(("key", "from_ipam"), [(IP_ADDRS, True), (IP_ADDRS_NO_IPAM, False)])
def test_the_two_lists_differ_in_who_knows_the_addresses(key, from_ipam):
    """K8S-026, K8S-029."""
    wished = fixed_addresses({key: '["10.0.0.1"]'}, "calico-ipam", no_ipam_allowed=True)
    assert wished == FixedAddresses((Address.parse("10.0.0.1"),), from_ipam)


@pytest.mark.parametrize(
    ("annotations", "ipam_type", "text"),
    [
        (
            {IP_ADDRS: "[", IP_ADDRS_NO_IPAM: "["},
            "host-local",
            "can't have both annotations: 'ipAddrs' and 'ipAddrsNoIpam' in use at the same time",
        ),
        ({IP_ADDRS: "["}, "host-local", "ipAddrs is not compatible with configured IPAM: host-local"),
        ({IP_ADDRS_NO_IPAM: "["}, "x", "ipAddrsNoIpam is not compatible with configured IPAM: x"),
        ({IP_ADDRS_NO_IPAM: "["}, "calico-ipam", "requested feature is not enabled: ip_addrs_no_ipam"),
        ({IP_ADDRS: "[]"}, "calico-ipam", f'annotation "{IP_ADDRS}" specified but empty'),
    ],
)
def test_lists_that_cannot_be_granted_are_refused_in_the_original_s_order(annotations, ipam_type, text):
    """K8S-027, C08."""
    assert refusal(fixed_addresses, annotations, ipam_type, no_ipam_allowed=False) == text


@pytest.mark.parametrize("name", ["kdd-ipaddrs-bad", "kdd-ipaddrs-two-v4", "kdd-ipaddrsnoipam-off"])
def test_refusals_are_those_recorded(name):
    step = json.loads((GOLDEN / f"{name}.json").read_text())["steps"][0]
    annotations = step["datastore"]["pods/web-0"]["metadata"]["annotations"]
    said = refusal(fixed_addresses, annotations, "calico-ipam", no_ipam_allowed=False)
    assert said == json.loads(step["call"]["stdout"])["msg"]


@pytest.mark.parametrize("name", ["kdd-ipaddrs", "kdd-ipaddrsnoipam"])
def test_wishes_are_those_answered_in_the_recordings(name):
    step = json.loads((GOLDEN / f"{name}.json").read_text())["steps"][0]
    annotations = step["datastore"]["pods/web-0"]["metadata"]["annotations"]
    wished = fixed_addresses(annotations, "calico-ipam", no_ipam_allowed=True)
    answered = [ip["address"] for ip in json.loads(step["call"]["stdout"])["ips"]]
    assert [str(address.host_cidr) for address in wished.addresses] == answered


# --- source prefixes and floating addresses --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "prefixes"),
    [
        ('["8.8.8.8/32","1.1.1.0/24"]', ("8.8.8.8/32", "1.1.1.0/24")),
        ('["10.1.2.3/8", "10.9.9.9", "FD00::1"]', ("10.0.0.0/8", "10.9.9.9/32", "fd00::1/128")),
        ("[]", ()),
        ("", ()),
    ],
)
def test_source_prefixes_lose_their_host_bits(raw, prefixes):
    """K8S-023."""
    assert allowed_source_prefixes(raw) == prefixes


def test_a_source_prefix_that_is_none_is_refused():
    said = "failed to parse '10.0.0.0/33' as a CIDR: invalid CIDR address: 10.0.0.0/33"
    assert refusal(allowed_source_prefixes, '["10.0.0.0/33"]') == said
    said = "failed to parse 'x' as a CIDR: invalid CIDR address: x"
    assert refusal(allowed_source_prefixes, '["1.1.1.1", "x"]') == said
    with pytest.raises(BadAnnotation) as caught:
        allowed_source_prefixes("{}")
    assert caught.value.key == ALLOWED_SOURCE_PREFIXES


def test_floating_addresses_are_mapped_by_their_spelling():
    """K8S-024, K8S-030; a version that the pod has not got shows as the original's <nil>."""
    both = (LONE, Cidr.parse("fd00::1/128"))
    raw = '["1.1.1.1", "2001:647f::21", "1.1.1.2"]'
    assert floating_nats(raw, both) == (
        Nat("10.0.0.1", "1.1.1.1"),
        Nat("fd00::1", "2001:647f::21"),
        Nat("10.0.0.1", "1.1.1.2"),
    )
    assert floating_nats('["2001:647f::21"]', (LONE,)) == (Nat("<nil>", "2001:647f::21"),)


@pytest.mark.parametrize("raw", ["", "[]", "null"])
def test_no_floating_addresses_need_nothing_of_the_pod(raw):
    assert floating_nats(raw, (Cidr.parse("10.0.0.0/24"),)) == ()


@pytest.mark.parametrize(
    ("raw", "network", "text"),
    [
        ("[", "10.0.0.1/32", "failed to parse '[' as JSON: unexpected end of JSON input"),
        ('["1.1.1.1"]', "10.0.0.1/26", "PodIP 10.0.0.1/26 is not a valid IPv4: Mask size is 26, not 32"),
        ('["1.1.1.1"]', "fd00::1/64", "PodIP fd00::1/64 is not a valid IPv6: Mask size is 64, not 128"),
    ],
)
def test_floating_addresses_that_cannot_be_mapped_are_refused(raw, network, text):
    assert refusal(floating_nats, raw, (Cidr.parse(network),)) == text


# --- pools and families ----------------------------------------------------------------------------------------------


def test_the_pod_s_wish_beats_its_namespace_s_key_by_key():
    """K8S-016, K8S-020."""
    namespace = {IPV4_POOLS: '["50.55.0.0/16"]', IPV6_POOLS: '["fd80::/96"]', IP_FAMILIES: '["IPv6", "IPv4"]'}
    pod = {IPV4_POOLS: '["50.70.0.0/16"]', IPV6_POOLS: ""}
    assert pool_wishes(pod, namespace) == PoolWishes(("50.70.0.0/16",), ("fd80::/96",), (4, 6))


def test_without_annotations_nothing_is_wished():
    assert pool_wishes({}, {IPV4_POOLS: ""}) == PoolWishes()


@pytest.mark.parametrize(("raw", "pools"), [('["p1", "10.0.0.0/8"]', ("p1", "10.0.0.0/8")), ("[]", ()), ("null", ())])
def test_pools_are_names_or_cidrs(raw, pools):
    """K8S-019, K8S-021, K8S-022, C02."""
    assert pool_wishes({IPV6_POOLS: raw}, {}) == PoolWishes(ipv6_pools=pools)


@pytest.mark.parametrize(
    ("key", "raw", "text"),
    [
        (IPV4_POOLS, '"p1"', NOT_A_LIST.format("string")),
        (IPV6_POOLS, "{}", NOT_A_LIST.format("object")),
        (IPV4_POOLS, '["p1"', "unexpected end of JSON input"),
        (IP_FAMILIES, "4", NOT_A_LIST.format("number")),
        (IP_FAMILIES, '["IPv4", "ipv6"]', 'error parsing ipFamilies: ["IPv4", "ipv6"]'),
    ],
)
def test_malformed_wishes_are_refused(key, raw, text):
    """C02: the refusal knows its annotation, so that the answer can name it."""
    with pytest.raises(BadAnnotation) as caught:
        pool_wishes({key: raw}, {})
    assert (str(caught.value), caught.value.key, caught.value.raw) == (text, key, raw)


def test_a_hardware_address_is_passed_on_as_written():
    """K8S-044, K8S-045: the dataplane reads it."""
    assert hardware_address({HW_ADDR: "invalid MAC address"}) == "invalid MAC address"
    assert hardware_address({}) is None
