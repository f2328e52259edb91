"""The bridge plugin's configuration: types, defaults of both names, and refusals in the reference plugin's words."""

from __future__ import annotations

import pytest

from domain.bridge.conf import AttachmentId, BridgeConf, read_bridge_conf, refuse_contradictions
from domain.bridge.trunk import TrunkItem, trunk_vlans
from domain.cni.errors import CniError
from domain.cni.result import Dns


def read(*, own_name: bool = False, **members) -> BridgeConf:
    return read_bridge_conf({"name": "net1", **members}, own_name=own_name)


def refusal(**members) -> tuple[int, str]:
    with pytest.raises(CniError) as refused:
        read(**members)
    return refused.value.code, refused.value.message


def trunk_refusal(**item) -> str:
    with pytest.raises(ValueError, match=r"trunk|ID") as refused:
        trunk_vlans((TrunkItem(**item),))
    return str(refused.value)


@pytest.mark.parametrize(
    ("items", "vlans"),
    [
        ((), ()),
        ((TrunkItem(100, 105),), (100, 101, 102, 103, 104, 105)),
        ((TrunkItem(id=10),), (10,)),
        ((TrunkItem(100, 102), TrunkItem(id=10), TrunkItem(101, 101)), (10, 100, 101, 102)),
        ((TrunkItem(),), ()),
        ((TrunkItem(1, 2, 4094),), (1, 2, 4094)),
    ],
)
def test_bt_01_a_trunk_is_one_sorted_list(items, vlans) -> None:
    assert trunk_vlans(items) == vlans


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"min_id": 0, "max_id": 5}, "incorrect trunk minID parameter"),
        ({"min_id": 4095, "max_id": 5}, "incorrect trunk minID parameter"),
        ({"min_id": 5, "max_id": 0}, "incorrect trunk maxID parameter"),
        ({"min_id": 5, "max_id": 4095}, "incorrect trunk maxID parameter"),
        ({"min_id": 6, "max_id": 5}, "minID is greater than maxID in trunk parameter"),
        ({"max_id": 5}, "minID and maxID should be configured simultaneously, minID is missing"),
        ({"min_id": 5}, "minID and maxID should be configured simultaneously, maxID is missing"),
        ({"id": 0}, "incorrect trunk id parameter"),
        ({"id": 4095}, "incorrect trunk id parameter"),
    ],
)
def test_bt_02_nine_trunk_errors(item, said) -> None:
    assert trunk_refusal(**item) == said


def test_br_010_as_bridge_the_defaults_are_the_reference_plugins() -> None:
    conf = read()
    assert (conf.bridge, conf.is_gateway, conf.is_default_gateway, conf.mtu) == ("cni0", False, False, 0)
    assert (conf.host_naming, conf.loopback_up, conf.requires_prev_result) == ("random", False, True)
    assert (conf.preserve_default_vlan, conf.layer_3, conf.filters_vlans) == (False, False, False)


def test_br_010_under_its_own_name_it_is_gateway_and_default_gateway() -> None:
    conf = read(own_name=True)
    assert (conf.is_gateway, conf.is_default_gateway, conf.mtu) == (True, True, 1500)
    assert (conf.host_naming, conf.loopback_up, conf.requires_prev_result) == ("tutorial", True, False)


@pytest.mark.parametrize(
    ("said", "gateway", "default"),
    [
        ({"isGateway": False}, False, False),
        ({"isGateway": True}, True, False),
        ({"isDefaultGateway": False}, True, False),
        ({"isGateway": False, "isDefaultGateway": True}, True, True),
    ],
)
def test_br_010_what_the_configuration_says_goes_before_that(said, gateway, default) -> None:
    conf = read(own_name=True, **said)
    assert (conf.is_gateway, conf.is_default_gateway) == (gateway, default)


def test_every_key_reaches_its_field() -> None:
    conf = read(
        bridge="br0",
        forceAddress=True,
        ipMasq=True,
        ipMasqBackend="nftables",
        mtu=9000,
        hairpinMode=True,
        promiscMode=True,
        vlan=100,
        vlanTrunk=[{"minID": 101, "maxID": 102}, {"id": 7}],
        preserveDefaultVlan=True,
        macspoofchk=True,
        enabledad=True,
        disableContainerInterface=True,
        portIsolation=True,
        ipam={"type": "host-local", "ranges": [[{"subnet": "10.0.0.0/8"}]]},
        dns={"nameservers": ["1.1.1.1"], "domain": "d", "search": ["s"], "options": ["o"]},
        hostVethNaming="tutorial",
        stateDir="/run/x",
        gcHostLocal=True,
        logLevel="debug",
        logFile="/var/log/x",
        logFormat="json",
        metrics_dir="/var/lib/m",
    )
    assert conf.bridge == "br0"
    assert (conf.force_address, conf.masquerade, conf.masquerade_backend, conf.mtu) == (True, True, "nftables", 9000)
    assert (conf.hairpin, conf.promiscuous, conf.vlan, conf.vlans) == (True, True, 100, (7, 101, 102))
    assert (conf.preserve_default_vlan, conf.mac_spoof_check, conf.dad) == (True, True, True)
    assert (conf.disable_container_interface, conf.port_isolation) == (True, True)
    assert (conf.layer_3, conf.ipam.type, conf.filters_vlans) == (True, "host-local", True)
    assert conf.dns == Dns(("1.1.1.1",), "d", ("s",), ("o",))
    assert (conf.host_naming, conf.state_dir, conf.collect_host_local) == ("tutorial", "/run/x", True)
    assert (conf.log_level, conf.log_file_path, conf.log_format) == ("debug", "/var/log/x", "json")
    assert conf.metrics_dir == "/var/lib/m"


def test_a_trunk_that_is_there_makes_the_bridge_filter_even_if_it_is_empty() -> None:
    assert read(vlanTrunk=[]).filters_vlans
    assert read(vlanTrunk=[]).vlans == ()


def test_bt_16_the_runtimes_mac_goes_before_the_configurations() -> None:
    assert read(args={"cni": {"mac": "a"}}).mac == "a"
    assert read(args={"cni": {"mac": "a"}}, runtimeConfig={"mac": "b"}).mac == "b"
    assert read(args={"other": {}}, runtimeConfig={"portMappings": []}).mac == ""


@pytest.mark.parametrize("vlan", [0, 1, 4094])
def test_bt_25_vlans_from_0_to_4094(vlan: int) -> None:
    assert read(vlan=vlan).vlan == vlan


@pytest.mark.parametrize("vlan", [-100, 4095, 5000])
def test_bt_25_no_other_vlans(vlan: int) -> None:
    assert refusal(vlan=vlan) == (999, f"invalid VLAN ID {vlan} (must be between 0 and 4094)")


def test_a_bad_trunk_is_refused_when_the_configuration_is_read() -> None:
    assert refusal(vlanTrunk=[{"id": 9999}]) == (999, "incorrect trunk id parameter")


def test_a_negative_mtu_means_the_kernels() -> None:
    assert read(mtu=-5).mtu == 0


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"mtu": "big"}, "json: cannot unmarshal string into Go struct field NetConf.mtu of type int"),
        ({"bridge": 7}, "json: cannot unmarshal number into Go struct field NetConf.bridge of type string"),
        ({"vlanTrunk": [{"id": "x"}]}, "json: cannot unmarshal string into Go struct field VlanTrunk.vlanTrunk.id of"),
    ],
)
def test_wrong_types_are_told_as_go_tells_them(members, why) -> None:
    code, message = refusal(**members)
    assert code == 999
    assert message.startswith("failed to load netconf: " + why)


def test_what_is_no_object_is_refused_and_null_says_nothing() -> None:
    with pytest.raises(CniError, match="failed to load netconf: json: cannot unmarshal array into Go value"):
        read_bridge_conf([], own_name=True)
    assert read_bridge_conf(None, own_name=False) == BridgeConf()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"bridge": "a-name-of-16-by" + "te"}, 'invalid bridge name "a-name-of-16-byte": interface name is too long'),
        ({"bridge": ""}, 'invalid bridge name "": interface name is empty'),
        ({"bridge": "a/b"}, 'invalid bridge name "a/b": interface name contains / or : or whitespace characters'),
        ({"hostVethNaming": "x"}, 'invalid hostVethNaming "x" (must be "tutorial" or "random")'),
        ({"stateDir": "state"}, 'invalid stateDir "state": not an absolute path'),
        ({"bridge": "br%d"}, 'invalid bridge name "br%d": interface name contains %'),
        ({"stateDir": "/a\0b"}, "invalid stateDir: it has a zero byte in it"),
        *[
            ({"mtu": mtu}, f"invalid mtu {mtu} (must be between 68 and 65535, or 0 for the default)")
            for mtu in (67, 65536, 2**32)
        ],
        ({"ipam": {"type": "bridge"}}, 'ipam.type "bridge" is this plugin itself; "host-local" is an IPAM plugin'),
    ],
)
def test_values_that_cannot_be_are_code_7(members, message) -> None:
    assert refusal(**members) == (7, message)


@pytest.mark.parametrize("verb", ["DEL", "GC"])
@pytest.mark.parametrize(
    ("members", "warning"),
    [
        ({"bridge": "x" * 16}, "interface name is too long"),
        ({"bridge": ""}, "interface name is empty"),
        ({"vlanTrunk": [{"minID": 6, "maxID": 5}]}, "minID is greater than maxID"),
        ({"vlan": 9999}, "invalid VLAN ID 9999"),
        ({"mtu": "big"}, "NetConf.mtu of type int"),
        ({"mtu": 67}, "invalid mtu 67"),
        ({"isGateway": "yes"}, "NetConf.isGateway of type bool"),
        ({"dns": {"search": 5}}, "DNS.dns.search of type []string"),
        ({"IsGateway": 5}, "NetConf.isGateway of type bool"),
        ({"ipam": {"type": "bridge"}}, 'ipam.type "bridge" is this plugin itself'),
        ({"ipam": {"type": "../x"}}, "invalid plugin name: ../x"),
        ({"hostVethNaming": "x"}, 'invalid hostVethNaming "x"'),
        ({"stateDir": "state"}, 'invalid stateDir "state"'),
    ],
)
def test_what_only_an_add_needs_is_a_warning_to_a_verb_that_ends_something(verb, members, warning) -> None:
    conf = read_bridge_conf({"name": "net1", "logLevel": "debug", **members}, own_name=False, verb=verb)
    (told,) = conf.warnings
    assert warning in told
    assert conf.replace(warnings=()) == read(logLevel="debug")


def test_every_member_that_cannot_be_read_is_told_of() -> None:
    conf = read_bridge_conf({"name": "n", "mtu": "x", "vlan": 5000, "dns": 1}, own_name=True, verb="DEL")
    assert len(conf.warnings) == 3


def test_rules_are_looked_for_where_nobody_knows_whether_they_were_asked_for() -> None:
    conf = read_bridge_conf({"name": "n", "ipMasq": "x", "macspoofchk": 1}, own_name=True, verb="DEL")
    assert (conf.masquerade, conf.mac_spoof_check) == (True, True)


@pytest.mark.parametrize("key", ["cni.dev/valid-attachments", "cni.dev/attachments"])
def test_a_gc_that_cannot_read_what_is_valid_is_refused(key: str) -> None:
    with pytest.raises(CniError, match="failed to load netconf: json: cannot unmarshal number"):
        read_bridge_conf({"name": "n", key: 5}, own_name=True, verb="GC")


def test_a_verb_that_needs_it_all_refuses_it_all() -> None:
    for verb in ("ADD", "CHECK", "STATUS"):
        with pytest.raises(CniError, match="invalid VLAN ID"):
            read_bridge_conf({"name": "n", "vlan": 9999}, own_name=True, verb=verb)


def test_a_gateways_device_in_a_vlan_must_fit_into_a_name() -> None:
    ipam = {"type": "host-local"}
    refuse_contradictions(read(bridge="a" * 11, vlan=100, isGateway=True, ipam=ipam))
    refuse_contradictions(read(bridge="a" * 12, vlan=100, ipam=ipam))
    refuse_contradictions(read(bridge="a" * 12, vlan=100, isGateway=True))
    with pytest.raises(CniError, match=r'invalid name "a{12}\.100" of the gateway in VLAN: .* shorten bridge'):
        refuse_contradictions(read(bridge="a" * 12, vlan=100, isGateway=True, ipam=ipam))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"ipam": {"type": "host-local"}, "disableContainerInterface": True},
            "cannot use IPAM when DisableContainerInterface flag is set",
        ),
        (
            {"hairpinMode": True, "promiscMode": True},
            "cannot set hairpin mode and promiscuous mode at the same time",
        ),
        ({"ipMasq": True, "ipMasqBackend": "ebtables"}, 'unknown ipmasq backend "ebtables"'),
    ],
)
def test_bt_21_contradictions_are_refused_on_add(members, message) -> None:
    conf = read(**members)
    with pytest.raises(CniError) as refused:
        refuse_contradictions(conf)
    assert (refused.value.code, refused.value.message) == (999, message)


def test_no_contradiction() -> None:
    refuse_contradictions(read(ipMasq=True, ipMasqBackend="iptables", hairpinMode=True))
    refuse_contradictions(read(ipMasq=False, ipMasqBackend="ebtables", disableContainerInterface=True))


def test_valid_attachments_under_either_key() -> None:
    listed = [{"containerID": "c1", "ifname": "eth0"}]
    one = (AttachmentId("c1", "eth0"),)
    assert read().valid_attachments is None
    assert read(**{"cni.dev/valid-attachments": []}).valid_attachments == ()
    assert read(**{"cni.dev/valid-attachments": listed}).valid_attachments == one
    assert read(**{"cni.dev/attachments": listed}).valid_attachments == one
    assert read(**{"cni.dev/attachments": listed, "cni.dev/valid-attachments": []}).valid_attachments == ()
