"""Names, marks, records, gateways and plans of the bridge plugin, as values."""

from __future__ import annotations

import pytest

from domain.bridge.addressing import complete, first_gateway, gateways
from domain.bridge.attachment import BridgeAttachment, attachment_text, read_attachment
from domain.bridge.conf import AttachmentId, read_bridge_conf
from domain.bridge.marks import (
    alias,
    attachment_of,
    chain,
    chain_comment,
    guard_chain,
    guard_comment,
    host_name,
    network_mark,
    owner_mark,
    rule_comment,
)
from domain.bridge.plan import (
    bridge_plan,
    container_plan,
    gateway_plan,
    layer_2_plan,
    port_check_plan,
    port_plan,
)
from domain.cni.result import Result, ResultIp, ResultRoute
from domain.ipam.address import Address, Cidr
from domain.linux.bridge_steps import (
    AppendRoute,
    AssignAddress,
    AwaitPort,
    AwaitSettled,
    Enslave,
    EnsureAddress,
    EnsureBridge,
    EnsureSysctl,
    EnsureVlanDevice,
    JoinVlans,
    PinMac,
    SetAlias,
)
from domain.linux.steps import Device, KeepLearnedRoutes, SetUp, WriteSysctl

V4, V6 = Cidr.parse("10.9.0.5/24"), Cidr.parse("fd09::5/64")
DEFAULT_V4, DEFAULT_V6 = Cidr.parse("0.0.0.0/0"), Cidr.parse("::/0")
GATEWAY = Address.parse("10.9.0.1")
HOST_VETH, POD_ETH = Device("host", "eth0c1"), Device("container", "eth0")
C1 = AttachmentId("c1", "eth0")


def conf(**members):
    return read_bridge_conf({"name": "n1", "ipam": {"type": "host-local"}, **members}, own_name=False)


def actions(plan):
    return [step.action for step in plan]


@pytest.mark.parametrize(
    ("container", "ifname", "name"),
    [
        ("mycontainer123", "eth0", "eth0mycon"),
        ("c1", "eth0", "eth0c1"),
        ("abcdefgh", "net-with-15-byt", "net-with-1abcde"),
        ("abcdefgh", "exactly-ten", "exactly-teabcde"),
        ("ab", "exactly-13-by", "exactly-13-byab"),
        ("abcdefgh", "schlüssel-1", "schlüssel" + "abcde"),
    ],
)
def test_bt_34_the_hosts_device_is_named_after_interface_and_container(container, ifname, name) -> None:
    assert host_name(AttachmentId(container, ifname)) == name
    assert len(name.encode()) <= 15


def test_an_alias_says_whose_a_device_is() -> None:
    assert alias("n1", C1) == "cni:n1:c1:eth0"
    assert attachment_of("n1", "cni:n1:c1:eth0") == C1


@pytest.mark.parametrize(
    "text",
    ["", "eth0", "cni:n2:c1:eth0", "cni:n1:c1", "cni:n1::eth0", "x cni:n1:c1:eth0", "cni:n1:" + "c" * 250 + ":e"],
)
def test_bt_30_an_alias_of_another_network_or_a_cut_one_is_nobodys(text: str) -> None:
    assert attachment_of("n1", text) is None


def test_an_alias_is_never_longer_than_the_kernel_takes() -> None:
    assert len(alias("n" * 100, AttachmentId("c" * 300, "eth0"))) == 255


def test_marks_are_the_reference_plugins() -> None:
    """Recorded from the plugin of the CNI project, v1.9.1."""
    assert rule_comment("n1", C1) == "43d91f8451058a70-f4d01f2ef4b92245, net: n1, if: eth0, id: c1"
    assert rule_comment("n1", C1).startswith(owner_mark("n1", C1))
    assert owner_mark("n1", C1).startswith(network_mark("n1"))
    assert chain("n2", "mycontainer123") == "CNI-c6d1d11b2bfd9b2123a61500"
    assert chain_comment("n2", "c1") == 'name: "n2" id: "c1"'
    assert guard_chain(C1) == "cni-br-iface-c1-eth0"
    assert guard_comment(C1) == "macspoofchk-c1-eth0"


def test_a_rules_comment_is_cut_to_what_nftables_takes() -> None:
    assert len(rule_comment("n" * 200, C1)) == 128


def test_a_record_is_read_back() -> None:
    whole = BridgeAttachment(
        C1, "cni0", "eth0c1", 7, "02:00:00:00:00:01", "/n", (V4, V6), "nftables", True, "host-local", "1.0.0"
    )
    assert read_attachment(attachment_text(whole)) == whole
    assert read_attachment('{"containerID": "c1", "ifname": "eth0"}') == BridgeAttachment(C1, "", "")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"containerID": 7, "ifname": "e"}', '{"containerID":"c","ifname":"e","addresses":["x"]}'],
)
def test_a_record_that_makes_no_sense_is_none(text: str) -> None:
    assert read_attachment(text) is None


def test_gateways_are_filled_in_and_a_default_route_is_added_once_a_family() -> None:
    answer = Result(ips=(ResultIp(V4), ResultIp(V6), ResultIp(Cidr.parse("10.8.0.2/24"))))
    whole = complete(answer, is_gateway=True, is_default_gateway=True)
    assert [str(ip.gateway) for ip in whole.ips] == ["10.9.0.1", "fd09::1", "10.8.0.1"]
    assert {ip.interface for ip in whole.ips} == {2}
    assert whole.routes == (ResultRoute(DEFAULT_V4, GATEWAY), ResultRoute(DEFAULT_V6, Address.parse("fd09::1")))
    assert [str(cidr) for cidr in gateways(whole)] == ["10.9.0.1/24", "10.8.0.1/24", "fd09::1/64"]
    assert first_gateway(whole, 4) == GATEWAY


def test_without_is_gateway_ipams_word_counts() -> None:
    whole = complete(Result(ips=(ResultIp(V4),)), is_gateway=False, is_default_gateway=False)
    assert whole.ips[0].gateway is None
    assert gateways(whole) == ()
    assert first_gateway(whole, 4) is None
    assert complete(Result(ips=(ResultIp(V4),)), is_gateway=False, is_default_gateway=True).routes == ()


@pytest.mark.parametrize("given", [ResultRoute(DEFAULT_V4), ResultRoute(DEFAULT_V4, Address.parse("10.9.0.9"))])
def test_a_default_route_of_ipam_is_the_only_one(given: ResultRoute) -> None:
    answer = Result(ips=(ResultIp(V4, gateway=GATEWAY),), routes=(given,))
    assert complete(answer, is_gateway=True, is_default_gateway=True).routes == (given,)


def test_a_default_route_of_another_table_is_another_matter() -> None:
    given = ResultRoute(DEFAULT_V4, table=100)
    answer = Result(ips=(ResultIp(V4, gateway=GATEWAY),), routes=(given,))
    assert complete(answer, is_gateway=True, is_default_gateway=True).routes == (
        given,
        ResultRoute(DEFAULT_V4, GATEWAY),
    )


def test_bt_03_the_bridge_is_made_as_configured() -> None:
    plan = bridge_plan(conf(bridge="br0", mtu=5000, vlan=7, promiscMode=True))
    assert actions(plan) == [
        EnsureBridge("br0", 5000, True, True),
        WriteSysctl("host", "net/ipv6/conf/br0/accept_ra", "0"),
        SetUp(Device("host", "br0")),
    ]
    assert plan[0].failure == 'failed to create bridge "br0": '


def test_bt_23_bt_24_the_port_gets_its_flags() -> None:
    plan = port_plan(conf(hairpinMode=True, portIsolation=True), HOST_VETH, "mark")
    assert actions(plan) == [
        SetAlias(HOST_VETH, "mark"),
        WriteSysctl("host", "net/ipv6/conf/eth0c1/accept_ra", "0"),
        SetUp(HOST_VETH),
        Enslave(HOST_VETH, "cni0", hairpin=True, isolated=True),
    ]


@pytest.mark.parametrize(
    ("members", "joined"),
    [
        ({"vlan": 100}, JoinVlans(HOST_VETH, 100, (), only=True)),
        ({"vlan": 100, "preserveDefaultVlan": True}, JoinVlans(HOST_VETH, 100, (), only=False)),
        ({"vlanTrunk": [{"id": 101}]}, JoinVlans(HOST_VETH, 1, (101,), only=True)),
        ({"vlan": 100, "vlanTrunk": [{"minID": 200, "maxID": 201}]}, JoinVlans(HOST_VETH, 100, (200, 201), only=True)),
    ],
)
def test_bt_07_to_bt_10_vlans_of_the_port(members, joined) -> None:
    assert actions(port_plan(conf(**members), HOST_VETH, ""))[-1] == joined


def test_an_empty_trunk_joins_nothing() -> None:
    assert not [one for one in actions(port_plan(conf(vlanTrunk=[]), HOST_VETH, "")) if isinstance(one, JoinVlans)]


def test_p06_duplicate_detection_is_off_before_there_is_an_address() -> None:
    answer = Result(ips=(ResultIp(V4, 2, GATEWAY), ResultIp(V6, 2, Address.parse("fd09::1"))))
    assert actions(container_plan(conf(), POD_ETH, answer)) == [
        WriteSysctl("container", "net/ipv6/conf/eth0/accept_dad", "0"),
        WriteSysctl("container", "net/ipv4/conf/eth0/arp_notify", "1"),
        EnsureSysctl("container", "net/ipv6/conf/lo/disable_ipv6", "0"),
        EnsureSysctl("container", "net/ipv6/conf/eth0/disable_ipv6", "0"),
        EnsureSysctl("container", "net/ipv6/conf/eth0/keep_addr_on_down", "1"),
        AssignAddress(POD_ETH, V4, settled=True),
        AssignAddress(POD_ETH, V6, settled=True),
        SetUp(POD_ETH),
        AwaitSettled(POD_ETH, limit=5.0, pause=0.01),
    ]


def test_p06_enabledad_is_honoured() -> None:
    answer = Result(ips=(ResultIp(V6, 2),))
    plan = actions(container_plan(conf(enabledad=True), POD_ETH, answer))
    assert plan[:2] == [
        WriteSysctl("container", "net/ipv6/conf/eth0/enhanced_dad", "1"),
        WriteSysctl("container", "net/ipv6/conf/eth0/accept_dad", "1"),
    ]
    assert AssignAddress(POD_ETH, V6, settled=False) in plan
    assert not [one for one in plan if isinstance(one, AwaitSettled)]


def test_bt_38_routes_keep_what_ipam_says_of_them() -> None:
    other = Address.parse("10.9.0.9")
    routes = (
        ResultRoute(Cidr.parse("10.77.1.0/16"), None, 1300, 1200, 55, 100, 253),
        ResultRoute(DEFAULT_V4, other),
        ResultRoute(DEFAULT_V6),
    )
    answer = Result(ips=(ResultIp(V4, 2, GATEWAY),), routes=routes)
    made = [one for one in actions(container_plan(conf(), POD_ETH, answer)) if isinstance(one, AppendRoute)]
    assert made == [
        AppendRoute(POD_ETH, Cidr.parse("10.77.0.0/16"), GATEWAY, 55, 100, 253, 1300, 1200),
        AppendRoute(POD_ETH, DEFAULT_V4, other),
        AppendRoute(POD_ETH, DEFAULT_V6, None),
    ]


def test_the_host_becomes_the_gateway() -> None:
    answer = Result(ips=(ResultIp(V4, 2, GATEWAY), ResultIp(V6, 2, Address.parse("fd09::1"))))
    bridge = Device("host", "cni0")
    assert actions(gateway_plan(conf(isGateway=True), answer)) == [
        EnsureAddress(bridge, Cidr.parse("10.9.0.1/24"), force=False),
        EnsureAddress(bridge, Cidr.parse("fd09::1/64"), force=False),
        PinMac(bridge),
        KeepLearnedRoutes("net/ipv6/conf/all/forwarding"),
        EnsureSysctl("host", "net/ipv4/ip_forward", "1"),
        EnsureSysctl("host", "net/ipv6/conf/all/forwarding", "1"),
    ]


def test_bt_11_with_a_vlan_a_device_of_its_own_is_the_gateway() -> None:
    answer = Result(ips=(ResultIp(V4, 2, GATEWAY),))
    device = Device("host", "cni0.100")
    assert actions(gateway_plan(conf(isGateway=True, vlan=100, forceAddress=True), answer)) == [
        EnsureVlanDevice("cni0.100", "cni0", 100, only=True),
        EnsureAddress(device, Cidr.parse("10.9.0.1/24"), force=True),
        PinMac(device),
        EnsureSysctl("host", "net/ipv4/ip_forward", "1"),
    ]


def test_no_gateway_no_plan() -> None:
    assert gateway_plan(conf(), Result(ips=(ResultIp(V4, 2, GATEWAY),))) == ()
    assert gateway_plan(conf(isGateway=True), Result(ips=(ResultIp(V4, 2),))) == ()


def test_bt_22_layer_2_brings_the_interface_up_unless_that_is_not_wanted() -> None:
    own = read_bridge_conf({"name": "n1"}, own_name=True)
    assert actions(layer_2_plan(own, POD_ETH)) == [SetUp(Device("container", "lo")), SetUp(POD_ETH)]
    assert actions(layer_2_plan(conf(), POD_ETH)) == [SetUp(POD_ETH)]
    down = read_bridge_conf({"name": "n1", "disableContainerInterface": True}, own_name=False)
    assert layer_2_plan(down, POD_ETH) == port_check_plan(down, HOST_VETH) == ()
    assert isinstance(port_check_plan(conf(), HOST_VETH)[0].action, AwaitPort)
