"""Every key of the network configuration: its place, default, type and error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cni.errors import CniError
from domain.cni.netconf import (
    IpamSettings,
    KeepAddresses,
    KeepAs,
    KubernetesSettings,
    NetConf,
    PolicySettings,
    RuntimeDns,
    parse_netconf,
    read_netconf,
)

TEXT = ["type", "mode", "vxlan_mac_prefix", "nodename", "nodename_file", "hostname", "datastore_type", "sqlite_path"]
TEXT += ["etcd_endpoints", "etcd_discovery_srv", "etcd_authority", "etcd_scheme", "etcd_key_file", "etcd_cert_file"]
TEXT += ["etcd_ca_cert_file", "calico_api_group", "device_type", "endpoint_status_dir", "ipam_lock_file", "log_level"]
TEXT += ["log_file_path", "log_format", "metrics_dir", "name", "cniVersion"]
INTEGER = ["qps", "burst", "mtu", "num_queues", "policy_setup_timeout_seconds", "timeout_seconds"]
INTEGER += ["log_file_max_size", "log_file_max_age", "log_file_max_count", "windows_pod_deletion_timestamp_timeout"]
FLAG = ["nodename_file_optional", "require_mtu_file", "include_default_routes", "windows_use_single_network"]
FLAG += ["windows_disable_default_deny_all_policy", "windows_loopback_DSR"]
FLAG += ["windows_disable_host_subnet_nat_exclusion"]
# key, path in an object, wanted Go type, structure that Go names
NESTED = [
    *[("ipam", key, "string", "") for key in ("type", "Name", "subnet", "assign_ipv4", "assign_ipv6")],
    *[("ipam", key, "[]string", "") for key in ("ipv4_pools", "ipv6_pools")],
    ("ipam", "optional_families", "bool", ""),
    ("ipam", "keep_addresses", "types.KeepAddresses", ""),
    ("ipam", "keep_as", "types.KeepAs", ""),
    *[
        ("policy", key, "string", "Policy")
        for key in ("type", "k8s_api_root", "k8s_auth_token", "k8s_client_certificate", "k8s_client_key")
    ],
    ("policy", "k8s_certificate_authority", "string", "Policy"),
    *[("kubernetes", key, "string", "Kubernetes") for key in ("kubeconfig", "k8s_api_root", "node_name")],
    *[("feature_control", key, "bool", "FeatureControl") for key in ("ip_addrs_no_ipam", "floating_ips")],
    ("container_settings", "allow_ip_forwarding", "bool", "ContainerSettings"),
    ("runtimeConfig", "dns", "types.RuntimeDNS", "RuntimeConfig"),
]
OF_GO_TYPE = {"string": (str,), "int": (int,), "uint64": (int,), "bool": (bool,), "[]string": (list,)}
OTHERS = [("x", "string"), (True, "bool"), ([], "array"), ({}, "object"), (1.5, "number"), (7, "number")]


def read(**members: object) -> NetConf:
    return parse_netconf(json.dumps(members))


def refusal(text: str) -> str:
    with pytest.raises(CniError) as refused:
        parse_netconf(text)
    assert refused.value.code == 999
    return refused.value.message.removeprefix("failed to load netconf: ")


def field(key: str) -> str:
    return {"cniVersion": "cni_version", "windows_loopback_DSR": "windows_loopback_dsr"}.get(key, key)


def wrong_for(go_type: str) -> list[tuple[object, str]]:
    """Values of all other types, and what Go calls each of them."""
    found = []
    for value, kind in OTHERS:
        if type(value) in OF_GO_TYPE.get(go_type, (dict,)):
            continue
        found.append((value, f"number {value}" if kind == "number" and go_type in ("int", "uint64") else kind))
    return found


def test_an_empty_configuration_has_the_defaults() -> None:
    """TYPE-001."""
    assert read() == parse_netconf("null") == NetConf()
    assert NetConf().device_type == ""
    assert NetConf().endpoint_status_dir == "/var/run/calico/endpoint-status"


@pytest.mark.parametrize("device_type", ["", "veth", "netkit", "bogus"])
def test_device_types_are_passed_on_unchanged(device_type: str) -> None:
    """TYPE-002, TYPE-003, TYPE-004, TYPE-005."""
    assert read(device_type=device_type).device_type == device_type


@pytest.mark.parametrize("key", TEXT)
def test_texts(key: str) -> None:
    assert getattr(read(**{key: "x y"}), field(key)) == "x y"


@pytest.mark.parametrize("key", INTEGER)
def test_integers(key: str) -> None:
    for number in (0, -1, 1430, 2**63 - 1, -(2**63)):
        assert getattr(read(**{key: number}), field(key)) == number
    for literal in ("1.0", "1e3", "9223372036854775808", "-9223372036854775809"):
        assert refusal(f'{{"{key}": {literal}}}') == (
            f"json: cannot unmarshal number {literal} into Go struct field NetConf.{key} of type int"
        )


def test_an_unsigned_integer() -> None:
    assert read(vxlan_vni=2**64 - 1).vxlan_vni == 2**64 - 1
    for literal in ("-1", "18446744073709551616", "1.5"):
        assert refusal(f'{{"vxlan_vni": {literal}}}') == (
            f"json: cannot unmarshal number {literal} into Go struct field NetConf.vxlan_vni of type uint64"
        )


@pytest.mark.parametrize("key", FLAG)
def test_flags(key: str) -> None:
    assert getattr(read(**{key: True}), field(key)) is True
    assert getattr(read(**{key: False}), field(key)) is False


KEYS = [*[(key, "string") for key in TEXT], *[(key, "int") for key in INTEGER], *[(key, "bool") for key in FLAG]]
KEYS += [("vxlan_vni", "uint64"), ("readiness_gates", "[]string"), ("policy", "types.Policy")]
KEYS += [("dataplane_options", "map[string]interface {}"), ("kubernetes", "types.Kubernetes"), ("args", "types.Args")]
KEYS += [("feature_control", "types.FeatureControl"), ("container_settings", "types.ContainerSettings")]
KEYS += [("runtimeConfig", "types.RuntimeConfig")]


@pytest.mark.parametrize(("key", "go_type"), KEYS)
def test_a_wrong_type_is_refused_by_name(key: str, go_type: str) -> None:
    for value, kind in wrong_for(go_type):
        check_refusal(key, go_type, value, kind)


def check_refusal(key: str, go_type: str, value: object, kind: str) -> None:
    assert refusal(json.dumps({key: value})) == (
        f"json: cannot unmarshal {kind} into Go struct field NetConf.{key} of type {go_type}"
    )


@given(st.sampled_from(NESTED), st.data())
def test_a_wrong_type_inside_is_refused_with_its_path(place: tuple[str, str, str, str], data: st.DataObject) -> None:
    """Go names the innermost structure, then the whole path."""
    outer, key, go_type, struct = place
    value, kind = data.draw(st.sampled_from(wrong_for(go_type)))
    if key in ("assign_ipv4", "assign_ipv6") and value is True:
        return  # G25
    assert refusal(json.dumps({outer: {key: value}})) == (
        f"json: cannot unmarshal {kind} into Go struct field {struct}.{outer}.{key} of type {go_type}"
    )


def test_a_del_does_without_what_it_does_not_need() -> None:
    document = {"MTU": "1500", "ipam": {"type": "x", "assign_ipv4": 5}, "nodename_file_optional": 1, "name": "net1"}
    found = read_netconf(document, "DEL")
    assert (found.mtu, found.ipam, found.name) == (0, IpamSettings(type="x"), "net1")
    assert found.nodename_file_optional
    assert [text.partition('"')[2].partition('"')[0] for text in found.warnings] == [
        "MTU",
        "ipam.assign_ipv4",
        "nodename_file_optional",
    ]
    assert "mend it: json: cannot unmarshal string into Go struct field NetConf.mtu of type int" in found.warnings[0]
    assert document["MTU"] == "1500"


def test_a_del_refuses_what_would_lead_it_elsewhere() -> None:
    for key in ("nodename", "nodename_file", "hostname", "dataplane_options"):
        with pytest.raises(CniError, match=key):
            read_netconf({key: 5}, "DEL")
    assert read_netconf({"policy": 5}, "DEL").lost_for("") == ""
    assert read_netconf({"ipam": 5, "dataplane_options": 5}, "DEL", ipam_only=True).ipam == IpamSettings()


@pytest.mark.parametrize("ipam", [5, {"type": 5}])
def test_a_del_that_cannot_read_which_ipam_plugin_there_is_keeps_why(ipam: object) -> None:
    found = read_netconf({"ipam": ipam}, "DEL")
    assert found.ipam == IpamSettings()
    assert "ipam" in found.lost_ipam


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"datastore_type": 5}, "NetConf.datastore_type"),
        ({"kubernetes": 5}, "NetConf.kubernetes"),
        ({"kubernetes": {"kubeconfig": 5}}, "Kubernetes.kubernetes.kubeconfig"),
    ],
)
def test_a_del_knows_what_it_has_lost_until_that_is_found(document: dict[str, object], field: str) -> None:
    found = read_netconf(document, "DEL")
    assert found.lost_for("").startswith(
        f"failed to load netconf: json: cannot unmarshal number into Go struct field {field}"
    )
    assert found.lost_for("sqlite") == (found.lost_for("") if "datastore_type" in document else "")
    whole = found.replace(datastore_type="etcdv3", kubernetes=KubernetesSettings(kubeconfig="/k"))
    assert whole.lost_for("") == ""


@pytest.mark.parametrize(
    ("key", "text", "counts_as"),
    [("assign_ipv4", "TRUE", "true"), ("assign_ipv4", "no", "true"), ("assign_ipv6", "TRUE", "false")],
)
def test_what_a_family_flag_does_not_say_is_told_on_add(key: str, text: str, counts_as: str) -> None:
    (warning,) = read(ipam={key: text}).warnings
    assert warning.startswith(f'ipam.{key} "{text}" counts as "{counts_as}"')
    assert read_netconf({"ipam": {key: text}}, "DEL").warnings == ()


def test_a_member_of_ours_that_means_nothing_is_told_on_add() -> None:
    """Nobody else reads this section, so it is a mistake; letters' case is none."""
    given = {"keep_addresses": {"Seconds": 60, "max_per_nod": 1, "Owner": ["Job"]}}
    known = "it has owners, seconds, max_per_node, max_pool_percent"
    assert read(ipam=given).warnings == (
        f'ipam.keep_addresses has no member "max_per_nod"; {known}',
        f'ipam.keep_addresses has no member "Owner"; {known}',
    )
    assert read(ipam={"keep_addresses": {"Seconds": 60}}).warnings == ()
    assert read_netconf({"ipam": given}, "DEL").warnings == ()


def test_a_wrong_type_in_a_list_is_refused() -> None:
    why = "json: cannot unmarshal number into Go struct field"
    assert refusal('{"readiness_gates": ["a", 1]}') == f"{why} NetConf.readiness_gates of type string"
    assert refusal('{"ipam": {"ipv4_pools": [1]}}') == f"{why} .ipam.ipv4_pools of type string"


def test_the_ipam_section_of_a_wrong_type_names_the_whole_go_type() -> None:
    """As recorded."""
    message = refusal('{"ipam": "x"}')
    assert message.startswith("json: cannot unmarshal string into Go struct field NetConf.ipam of type struct { Name")
    assert message.endswith('IPv6Pools []string "json:\\"ipv6_pools,omitempty\\"" }')


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "unexpected end of JSON input"),
        ("[]", "json: cannot unmarshal array into Go value of type types.NetConf"),
        ('"x"', "json: cannot unmarshal string into Go value of type types.NetConf"),
    ],
)
def test_what_is_no_object_is_refused(text: str, why: str) -> None:
    assert refusal(text) == why


def test_the_first_wrong_member_in_the_text_is_reported() -> None:
    assert "NetConf.mtu" in refusal('{"mtu": "x", "name": 5}')
    assert "NetConf.name" in refusal('{"name": 5, "mtu": "x"}')


def test_keys_match_in_any_case_and_the_last_one_wins() -> None:
    assert parse_netconf('{"MTU": 1, "Ipam": {"NAME": "n", "Type": "t"}}') == NetConf(
        mtu=1, ipam=IpamSettings(name="n", type="t")
    )
    assert parse_netconf('{"mtu": 1, "MTU": 2}').mtu == 2
    assert parse_netconf('{"MTU": 2, "mtu": 1}').mtu == 1
    assert parse_netconf('{"mtu": 1, "mtu": 2}').mtu == 2
    assert parse_netconf('{"ho\u017ftname": "h", "\u212aubernetes": {"node_name": "n"}}') == NetConf(
        hostname="h", kubernetes=KubernetesSettings(node_name="n")
    )


@given(st.sampled_from([key for key, _ in KEYS] + ["ipam", "prevResult"]))
def test_null_leaves_the_default(key: str) -> None:
    assert read(**{key: None}) == NetConf()


def test_unknown_keys_are_ignored() -> None:
    assert read(capabilities={"x": True}, plugins=[1]) == NetConf()


def test_what_only_windows_reads_is_kept_as_it_is() -> None:
    assert read(DNS={"nameservers": 5}, policies=[7, None]) == NetConf(dns='{"nameservers":5}', policies="[7,null]")


def test_the_sections_are_read() -> None:
    assert read(
        ipam={
            "type": "calico-ipam",
            "name": "n",
            "subnet": "usePodCidr",
            "assign_ipv4": "false",
            "assign_ipv6": "true",
            "ipv4_pools": ["a", None],
            "ipv6_pools": [],
        },
        policy={"type": "k8s", "k8s_api_root": "r", "k8s_auth_token": "t"},
        kubernetes={"kubeconfig": "k", "k8s_api_root": "r", "node_name": "n"},
        feature_control={"ip_addrs_no_ipam": True, "floating_ips": True},
        container_settings={"allow_ip_forwarding": True},
        readiness_gates=["http://localhost:9099/readiness"],
        runtimeConfig={"dns": {"servers": ["1.1.1.1"], "domain": "d", "searches": ["s"], "options": ["o"]}},
    ) == NetConf(
        ipam=IpamSettings("calico-ipam", "n", "usePodCidr", "false", "true", ("a", ""), ()),
        policy=PolicySettings("k8s", "r", "t"),
        kubernetes=KubernetesSettings("k", "r", "n"),
        ip_addrs_no_ipam=True,
        floating_ips=True,
        allow_ip_forwarding=True,
        readiness_gates=("http://localhost:9099/readiness",),
        runtime_dns=RuntimeDns(("1.1.1.1",), "d", ("s",), ("o",)),
    )


def test_c01_whether_an_ip_version_may_be_left_out() -> None:
    """C01: ours; a JSON boolean."""
    assert [read(ipam=ipam).ipam.optional_families for ipam in ({}, {"optional_families": True})] == [False, True]


def test_f01_whether_addresses_stay_with_a_name() -> None:
    """F01: ours. An empty object allows it, and has defaults; the second is what one of our plugins tells the other."""
    assert read(ipam={}).ipam.keep_addresses is None
    assert read(ipam={"keep_addresses": {}}).ipam.keep_addresses == KeepAddresses(("StatefulSet",), 86400, 256, 50)
    given = {"owners": [], "seconds": 60, "max_per_node": 0, "max_pool_percent": 10}
    assert read(ipam={"keep_addresses": given}).ipam.keep_addresses == KeepAddresses((), 60, 0, 10)
    told = {"name": "web-0", "pod_uid": "u1", "owner": "StatefulSet/web s1"}
    assert read(ipam={"keep_as": told}).ipam.keep_as == KeepAs("web-0", "u1", "StatefulSet/web s1")


def test_a_json_boolean_says_as_much_as_its_text() -> None:
    """G25: the original refuses it."""
    assert read(ipam={"assign_ipv4": False, "assign_ipv6": True}).ipam == IpamSettings(
        assign_ipv4="false", assign_ipv6="true"
    )


@pytest.mark.parametrize(
    ("options", "type", "kept"),
    [
        ({}, None, {}),
        ({"type": "grpc", "socket": "unix:///s", "n": 5}, "grpc", {"type": "grpc", "socket": "unix:///s"}),
        ({"type": None}, "<nil>", {}),
        ({"type": 5}, "5", {}),
        ({"type": {"a": True}}, '{"a":true}', {}),
        ({"Type": "grpc"}, None, {"Type": "grpc"}),
    ],
)
def test_dataplane_options(options: dict[str, object], type: str | None, kept: dict[str, str]) -> None:
    netconf = read(dataplane_options=options)
    assert netconf.dataplane_type == type
    assert dict(netconf.dataplane_options) == kept


def test_mesos_labels_keep_their_order() -> None:
    labels = {"labels": [{"key": "b", "value": "1"}, {"key": "a"}, None]}
    netconf = read(args={"org.apache.mesos": {"network_info": {"name": "n", "labels": labels}}})
    assert netconf.mesos_network_name == "n"
    assert netconf.mesos_labels == (("b", "1"), ("a", ""), ("", ""))
    assert read(args={}) == NetConf()


def test_a_wrong_mesos_label_is_refused() -> None:
    wrong = '{"args": {"org.apache.mesos": {"network_info": {"labels": {"labels": %s}}}}}'
    path = "args.org.apache.mesos.network_info.labels.labels"
    why = "json: cannot unmarshal"
    assert refusal(wrong % "5") == f"{why} number into Go struct field Labels.{path} of type []types.Label"
    assert refusal(wrong % "[5]") == f"{why} number into Go struct field Labels.{path} of type types.Label"
    assert refusal(wrong % '[{"key": 5}]') == f"{why} number into Go struct field Label.{path}.key of type string"


def test_the_previous_result_is_kept_as_text() -> None:
    previous = '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1/32"}]}'
    assert parse_netconf(f'{{"prevResult": {previous}}}').prev_result == previous.replace(" ", "")
