"""The CNI environment variables, the first checks of the configuration, and CNI_ARGS."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cni.errors import CniError, error_text
from domain.cni.request import (
    CniArgs,
    Request,
    check_address_args,
    check_command,
    check_config,
    check_container_id,
    check_ifname,
    config_version,
    parse_args,
    parse_args_of,
    parse_mac_args,
    read_request,
)
from domain.ipam.address import Address

FULL = {
    "CNI_COMMAND": "ADD",
    "CNI_CONTAINERID": "e0",
    "CNI_NETNS": "/var/run/netns/g1",
    "CNI_IFNAME": "eth0",
    "CNI_PATH": "/opt/cni/bin:/usr/lib/cni",
    "CNI_ARGS": "IP=10.0.0.1",
}


def refusal(action: Callable[[], object]) -> tuple[int, str, str]:
    with pytest.raises(CniError) as refused:
        action()
    return refused.value.code, refused.value.message, refused.value.details


def test_a_complete_call_is_read() -> None:
    assert read_request(FULL) == Request(
        command="ADD",
        container_id="e0",
        netns="/var/run/netns/g1",
        ifname="eth0",
        args="IP=10.0.0.1",
        path=("/opt/cni/bin", "/usr/lib/cni"),
    )


def test_the_network_plugin_and_its_ipam_plugin_ignore_unknown_args() -> None:
    assert read_request(FULL, ignore_unknown_args=True).args == "IgnoreUnknown=1;IP=10.0.0.1"
    assert read_request({**FULL, "CNI_ARGS": ""}, ignore_unknown_args=True).args == "IgnoreUnknown=1"


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("", "CNI_COMMAND"),
        ("ADD", "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"),
        ("CHECK", "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"),
        ("DEL", "CNI_CONTAINERID,CNI_IFNAME,CNI_PATH"),
        ("GC", "CNI_PATH"),
        ("STATUS", "CNI_PATH"),
    ],
)
def test_each_verb_needs_its_variables(command: str, missing: str) -> None:
    expected = (4, f"required env variables [{missing}] missing", "")
    assert refusal(lambda: read_request({"CNI_COMMAND": command})) == expected
    assert (
        refusal(lambda: read_request({"CNI_COMMAND": command, **dict.fromkeys(FULL, "") | {"CNI_COMMAND": command}}))
        == expected
    )


@pytest.mark.parametrize("command", ["VERSION", "NOPE"])
def test_other_verbs_need_nothing_and_their_names_are_not_looked_at(command: str) -> None:
    assert read_request({"CNI_COMMAND": command, "CNI_CONTAINERID": "-bad"}).command == command


def test_a_bad_name_is_reported_before_a_missing_variable() -> None:
    environ = {"CNI_COMMAND": "ADD", "CNI_CONTAINERID": "-bad"}
    assert refusal(lambda: read_request(environ)) == (4, "invalid characters in containerID", "-bad")


@pytest.mark.parametrize("name", ["a", "9", "Ab_c.d-e", "0" * 300])
def test_good_container_ids(name: str) -> None:
    check_container_id(name)


@pytest.mark.parametrize("name", ["", "-a", ".a", "_a", "a b", "a/b", "a\n", "é", "a\udcff"])
def test_bad_container_ids(name: str) -> None:
    assert refusal(lambda: check_container_id(name)) == (4, "invalid characters in containerID", name)


@pytest.mark.parametrize(
    ("name", "why", "details"),
    [
        ("", "interface name is empty", ""),
        ("a" * 16, "interface name is too long", "interface name should be less than 16 characters"),
        ("é" * 8, "interface name is too long", "interface name should be less than 16 characters"),
        (".", "interface name is . or ..", ""),
        ("..", "interface name is . or ..", ""),
        ("a/b", "interface name contains / or : or whitespace characters", ""),
        ("a:b", "interface name contains / or : or whitespace characters", ""),
        ("a\u00a0b", "interface name contains / or : or whitespace characters", ""),
        ("eth\udcff", "interface name is not UTF-8", ""),
    ],
)
def test_bad_interface_names(name: str, why: str, details: str) -> None:
    assert refusal(lambda: check_ifname(name)) == (4, why, details)


def test_a_name_that_the_kernel_would_fill_in_is_refused_before_it_is_made() -> None:
    environ = {**FULL, "CNI_IFNAME": "eth%d"}
    refused = (4, "interface name contains %", "choose a name without %: eth%d")
    assert refusal(lambda: read_request({**environ, "CNI_COMMAND": "ADD"})) == refused
    for command in ("DEL", "CHECK"):
        assert read_request({**environ, "CNI_COMMAND": command}).ifname == "eth%d"


@pytest.mark.parametrize("command", ["ADD", "CHECK", "DEL"])
def test_every_verb_refuses_an_interface_name_that_is_not_utf_8(command: str) -> None:
    environ = {**FULL, "CNI_COMMAND": command, "CNI_IFNAME": "eth\udcff"}
    assert refusal(lambda: read_request(environ)) == (4, "interface name is not UTF-8", "")


@given(st.text(st.sampled_from("abcXYZ019_-."), min_size=1, max_size=15).filter(lambda name: name not in (".", "..")))
def test_good_interface_names(name: str) -> None:
    check_ifname(name)


def test_an_unknown_verb_is_refused_by_name() -> None:
    request = read_request({"CNI_COMMAND": "NOPE"})
    assert refusal(lambda: check_command(request)) == (4, "unknown CNI_COMMAND: NOPE", "")
    check_command(read_request(FULL))


@pytest.mark.parametrize(
    ("text", "code", "why", "details"),
    [
        ("", 6, "error unmarshall network config: unexpected end of JSON input", ""),
        (
            "[]",
            6,
            (
                "error unmarshall network config: json: cannot unmarshal array into Go value of type "
                'struct { Name string "json:\\"name\\"" }'
            ),
            "",
        ),
        (
            '{"name": 5}',
            6,
            "error unmarshall network config: json: cannot unmarshal number into Go struct field .name of type string",
            "",
        ),
        ("null", 7, "missing network name", ""),
        ("{}", 7, "missing network name", ""),
        ('{"name": null}', 7, "missing network name", ""),
        ('{"name": "a b"}', 7, "invalid characters found in network name", "a b"),
    ],
)
def test_configurations_that_fail_the_first_checks(text: str, code: int, why: str, details: str) -> None:
    assert refusal(lambda: check_config(text)) == (code, why, details)


def test_a_version_is_found_or_counts_as_the_oldest() -> None:
    assert config_version(check_config('{"NAME": "net1", "cniversion": "1.0.0"}')) == "1.0.0"
    assert config_version({"name": "net1"}) == "0.1.0"
    assert config_version({"cniVersion": ""}) == "0.1.0"
    why = "decoding version from network config: json: cannot unmarshal number into Go struct field .cniVersion"
    assert refusal(lambda: config_version({"cniVersion": 5})) == (6, f"{why} of type string", "")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("", CniArgs()),
        ("IgnoreUnknown=1", CniArgs()),
        ("IgnoreUnknown=TRUE;X=1;IP=fd00::1", CniArgs(ip=Address.parse("fd00::1"))),
        ("IP=", CniArgs()),
        (
            "K8S_POD_NAME=p;K8S_POD_NAMESPACE=n;K8S_POD_INFRA_CONTAINER_ID=c;CNI_TEST_NAMESPACE=t",
            CniArgs(pod_name="p", pod_namespace="n", infra_container_id="c", test_namespace="t"),
        ),
        ("IgnoreUnknown=0;x=1;IgnoreUnknown=1", CniArgs()),
        ("IgnoreUnknown=1;K8S_POD_UID=u1", CniArgs(pod_uid="u1")),
    ],
)
def test_args_are_read(args: str, expected: CniArgs) -> None:
    assert parse_args(args) == expected


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ("A=b=c", 'ARGS: invalid pair "A=b=c"'),
        ("K8S_POD_NAME=p;", 'ARGS: invalid pair ""'),
        ("IP=zz", 'ARGS: error parsing value of pair "IP=zz": invalid IP address: zz'),
        (
            "IgnoreUnknown=maybe",
            'ARGS: error parsing value of pair "IgnoreUnknown=maybe": boolean unmarshal error: invalid input maybe',
        ),
        ("FOO=bar;ip=1", 'ARGS: unknown args ["FOO=bar" "ip=1"]'),
        ("K8S_POD_UID=u1", 'ARGS: unknown args ["K8S_POD_UID=u1"]'),
        ("IgnoreUnknown=1;FOO=bar;IgnoreUnknown=false", 'ARGS: unknown args ["FOO=bar"]'),
    ],
)
def test_bad_args_are_refused(args: str, why: str) -> None:
    assert refusal(lambda: parse_args(args)) == (999, why, "")


def test_calico_ipam_knows_only_ip_when_it_reads_them_again() -> None:
    """spec: ipam 2.2."""
    check_address_args("IP=10.0.0.1")
    check_address_args("IgnoreUnknown=1;K8S_POD_NAME=web-0")
    why = 'ARGS: unknown args ["K8S_POD_NAME=web-0"]'
    assert refusal(lambda: check_address_args("K8S_POD_NAME=web-0;IP=10.0.0.1")) == (999, why, "")


def test_an_error_is_answered_with_details_only_if_there_are_any() -> None:
    assert error_text(CniError(4, "a <b>")) == '{\n    "code": 4,\n    "msg": "a \\u003cb\\u003e"\n}'
    assert error_text(CniError(4, "a", "b")) == '{\n    "code": 4,\n    "msg": "a",\n    "details": "b"\n}'


def test_bt_16_a_mac_in_cni_args() -> None:
    assert parse_mac_args("MAC=02:00:00:00:00:01").mac == "02:00:00:00:00:01"
    assert parse_mac_args("IgnoreUnknown=1;K8S_POD_NAME=p").mac == ""
    with pytest.raises(CniError, match="ARGS: unknown args"):
        parse_mac_args("IP=10.0.0.1")


def test_a_del_says_which_arguments_it_does_without() -> None:
    args = "K8S_POD_NAME=p;K8S_POD_NAMESPACE=shop;IP=zz;A=b=c;FOO=bar;IgnoreUnknown=maybe"
    read = parse_args_of(Request("DEL", "c1", "", "eth0", args, ()))
    assert (read.pod_name, read.pod_namespace, read.ip) == ("p", "shop", None)
    assert [text.partition("mend it: ")[2] for text in read.warnings] == [
        'ARGS: error parsing value of pair "IP=zz": invalid IP address: zz',
        'ARGS: invalid pair "A=b=c"',
        'ARGS: error parsing value of pair "IgnoreUnknown=maybe": boolean unmarshal error: invalid input maybe',
    ]
    with pytest.raises(CniError, match="ARGS: error parsing value"):
        parse_args_of(Request("ADD", "c1", "", "eth0", args, ()))


def test_an_error_can_name_the_version_first() -> None:
    error = CniError(7, "no", "because")
    assert error_text(error, "1.1.0").startswith('{\n    "cniVersion": "1.1.0",\n    "code": 7,')
    assert error_text(error).startswith('{\n    "code": 7,')
