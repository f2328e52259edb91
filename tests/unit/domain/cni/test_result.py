"""Results in every CNI version's shape, out and in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cni.errors import CniError
from domain.cni.netconf import parse_netconf
from domain.cni.result import Dns, Result, ResultInterface, ResultIp, ResultRoute, parse_result, result_text
from domain.ipam.address import Address, Cidr

GOLDEN = Path(__file__).parents[3] / "golden"
LISTS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0")
SINGLE = ("0.1.0", "0.2.0")

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
CIDRS = st.builds(Cidr, st.just(4), st.integers(0, 2**32 - 1), st.integers(0, 32)) | st.builds(
    # below ::ffff:0:0/96, whose addresses are IPv4 in Go
    Cidr,
    st.just(6),
    st.integers(1 << 100, 2**128 - 1),
    st.integers(0, 128),
)
ADDRESSES = st.none() | st.builds(lambda cidr: cidr.address, CIDRS)
WORD_LISTS = st.lists(WORDS, max_size=2).map(tuple)
DNS = st.builds(Dns, WORD_LISTS, WORDS | st.just(""), WORD_LISTS, WORD_LISTS)
INTERFACES = st.builds(ResultInterface, WORDS, WORDS | st.just(""), st.integers(0, 9000), WORDS | st.just(""))
IPS = st.builds(ResultIp, CIDRS, st.none() | st.integers(0, 3), ADDRESSES)
ROUTES = st.builds(ResultRoute, CIDRS, ADDRESSES)
RESULTS = st.builds(
    Result,
    st.lists(INTERFACES, max_size=3).map(tuple),
    st.lists(IPS, max_size=3).map(tuple),
    st.lists(ROUTES, max_size=3).map(tuple),
    DNS,
)


def said_by_lists(result: Result, version: str) -> Result:
    if version == "1.0.0":
        return result
    return result.replace(interfaces=tuple(one.replace(mtu=0) for one in result.interfaces))


def said_by_single(result: Result) -> Result:
    ips: list[ResultIp] = []
    routes: list[ResultRoute] = []
    for family in (4, 6):
        found = [ip for ip in result.ips if ip.address.version == family]
        if found:
            ips.append(found[0].replace(interface=None))
            routes += [route for route in result.routes if route.dst.version == family]
    return Result(ips=tuple(ips), routes=tuple(routes), dns=result.dns)


def recorded_answers() -> list[tuple[str, str]]:
    found = []
    for path in sorted(GOLDEN.glob("*.json")):
        for step in json.loads(path.read_text()).get("steps", ()):
            call = step["call"]
            if call["env"].get("CNI_COMMAND") == "ADD" and call["exit"] == 0:
                undeclared = "0.2.0" if call["program"] == "calico" else "0.1.0"
                found.append((call["stdout"], parse_netconf(call["stdin"]).cni_version or undeclared))
    return found


@given(RESULTS, st.sampled_from(LISTS))
def test_what_is_written_reads_back_but_for_what_the_version_cannot_say(result: Result, version: str) -> None:
    assert parse_result(result_text(result, version), "") == said_by_lists(result, version)


@given(RESULTS.filter(lambda result: bool(result.ips)), st.sampled_from(SINGLE))
def test_old_versions_keep_the_first_address_of_each_family_and_its_routes(result: Result, version: str) -> None:
    assert parse_result(result_text(result, version), "") == said_by_single(result)


def test_recorded_answers_are_written_letter_by_letter() -> None:
    answers = recorded_answers()
    assert len(answers) >= 20
    for answer, version in answers:
        assert result_text(parse_result(answer, ""), version) == answer


@pytest.mark.parametrize("version", SINGLE)
def test_old_versions_need_an_address(version: str) -> None:
    with pytest.raises(CniError, match="cannot convert: no valid IP addresses") as refused:
        result_text(Result(), version)
    assert refused.value.code == 999


def test_an_empty_result_in_each_shape() -> None:
    assert result_text(Result(), "1.0.0") == '{\n    "cniVersion": "1.0.0"\n}'
    assert result_text(Result(), "0.4.0") == '{\n    "cniVersion": "0.4.0",\n    "dns": {}\n}'


FULL = Result(
    interfaces=(ResultInterface("cali0"), ResultInterface("eth0", "aa:bb:cc:dd:ee:ff", 1440, "/ns")),
    ips=(ResultIp(Cidr.parse("10.0.0.7/26"), 0, Address.parse("10.0.0.1")), ResultIp(Cidr.parse("fd00::7/122"), 1)),
    routes=(ResultRoute(Cidr.parse("0.0.0.0/0"), Address.parse("10.0.0.1")), ResultRoute(Cidr.parse("fd00::7/122"))),
    dns=Dns(("1.1.1.1",), "d", ("s",), ("o",)),
)


def keys(text: str) -> list[str]:
    return [line.split('"')[1] for line in text.splitlines() if '":' in line]


def test_keys_of_1_0_are_sorted_and_show_the_mtu() -> None:
    assert keys(result_text(FULL, "1.0.0")) == [
        "cniVersion",
        *("dns", "domain", "nameservers", "options", "search"),
        *("interfaces", "name", "mac", "mtu", "name", "sandbox"),
        *("ips", "address", "gateway", "interface", "address", "interface"),
        *("routes", "dst", "gw", "dst"),
    ]


def test_keys_of_0_3_and_0_4_are_in_the_order_of_the_library() -> None:
    assert keys(result_text(FULL, "0.3.1")) == [
        "cniVersion",
        *("interfaces", "name", "name", "mac", "sandbox"),
        *("ips", "version", "interface", "address", "gateway", "version", "interface", "address"),
        *("routes", "dst", "gw", "dst"),
        *("dns", "nameservers", "domain", "search", "options"),
    ]


def test_keys_of_0_2_are_in_the_order_of_the_library() -> None:
    assert keys(result_text(FULL, "0.2.0")) == [
        "cniVersion",
        *("ip4", "ip", "gateway", "routes", "dst", "gw"),
        *("ip6", "ip", "routes", "dst"),
        *("dns", "nameservers", "domain", "search", "options"),
    ]


@pytest.mark.parametrize(
    ("default", "answer", "ips"),
    [
        ("1.0.0", '{"ips": [{"address": "10.0.0.1/24"}]}', 1),
        ("0.2.0", '{"ip4": {"ip": "10.0.0.1/24"}}', 1),
        ("", '{"ip4": {"ip": "10.0.0.1/24"}}', 1),
        ("0.2.0", '{"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.0.0.1/24"}]}', 1),
        ("1.0.0", '{"ip4": {"ip": "10.0.0.1/24"}}', 0),
    ],
)
def test_an_answer_without_a_version_is_in_that_of_the_configuration(default: str, answer: str, ips: int) -> None:
    assert len(parse_result(answer, default).ips) == ips


def test_bt_37_members_of_1_1_are_kept_and_unknown_ones_read_over() -> None:
    answer = {
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "eth0", "mtu": 1500, "socketPath": "/s", "pciID": "0"}, None],
        "ips": [{"address": "10.0.0.1/24", "gateway": "", "interface": None, "valid": True}],
        "routes": [{"dst": "0.0.0.0/0", "mtu": 1400, "advmss": 1300, "priority": 5, "table": 0, "scope": 253}],
        "dns": {},
        "x": 1,
    }
    result = parse_result(json.dumps(answer), "")
    assert result == Result(
        (ResultInterface("eth0", mtu=1500, socket_path="/s", pci_id="0"), ResultInterface("")),
        (ResultIp(Cidr.parse("10.0.0.1/24")),),
        (ResultRoute(Cidr.parse("0.0.0.0/0"), None, 1400, 1300, 5, 0, 253),),
    )
    written = json.loads(result_text(result, "1.1.0"))
    assert written["routes"] == answer["routes"]
    assert written["interfaces"][0] == answer["interfaces"][0]
    assert json.loads(result_text(result, "0.4.0"))["routes"] == answer["routes"]
    assert json.loads(result_text(result, "0.2.0"))["ip4"]["routes"] == [{"dst": "0.0.0.0/0"}]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "unexpected end of JSON input"),
        ("[]", "json: cannot unmarshal array into Go value of type types.Result"),
        ('{"cniVersion": "9.9.9"}', 'unsupported CNI result version "9.9.9"'),
        ('{"cniVersion": 1}', "cannot unmarshal number into Go struct field Result.cniVersion of type string"),
        ('{"cniVersion": "1.0.0", "ips": {}}', "cannot unmarshal object into Go struct field Result.ips"),
        ('{"cniVersion": "1.0.0", "ips": ["x"]}', "cannot unmarshal string into Go struct field"),
        ('{"cniVersion": "1.0.0", "ips": [{}]}', "invalid CIDR address: "),
        ('{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1"}]}', "invalid CIDR address: 10.0.0.1"),
        ('{"cniVersion": "1.0.0", "ips": [{"address": 5}]}', "cannot unmarshal number"),
        ('{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1/8", "interface": true}]}', "cannot unmarshal bool"),
        ('{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1/8", "interface": "1"}]}', "cannot unmarshal string"),
        ('{"cniVersion": "1.0.0", "routes": [{"gw": "10.0.0.1"}]}', "invalid CIDR address: "),
        ('{"cniVersion": "1.0.0", "routes": [{"dst": "10.0.0.1/8", "gw": "x"}]}', "invalid IP address: x"),
        ('{"cniVersion": "0.2.0", "ip4": {}}', "invalid CIDR address: "),
    ],
)
def test_answers_that_cannot_be_read(answer: str, why: str) -> None:
    with pytest.raises(CniError) as refused:
        parse_result(answer, "0.2.0")
    assert refused.value.code == 999
    assert why in refused.value.message
