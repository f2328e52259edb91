"""CHECK of the network plugin (case C10; G20)."""

from __future__ import annotations

import pytest

from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings
from domain.cni.result import ResultInterface, ResultIp, result_text
from domain.ipam.address import Address, Cidr
from domain.ipam.block import Attribute, Handle
from ports.datastore import BlockKey, HandleKey, WorkloadEndpointKey, WorkloadEndpoints
from ports.errors import Refused, Unavailable
from worlds.one_node import OneNode, netns

DUAL = IpamSettings(type="calico-ipam", assign_ipv6="true")
KEY = WorkloadEndpointKey("default", "node1-cni-c1-eth0")
FOUR, SIX = "10.244.0.128", "fd00:10:244::80"


@pytest.fixture
def node():
    node = OneNode()
    node.previous = node.add(ipam=DUAL)
    return node


def check(node, **fields) -> None:
    node.check(prev_result=result_text(fields.pop("previous", node.previous), "1.0.0"), ipam=DUAL, **fields)


def faults(node, **fields) -> list[str]:
    before = node.leftovers()
    with pytest.raises(CniError) as caught:
        check(node, **fields)
    assert node.leftovers() == before  # CHECK changes nothing
    assert caught.value.code == 999
    head, _, rest = caught.value.message.partition(" failed: ")
    assert head == "CHECK of eth0"
    return rest.split("; ")


def inside(node):
    return node.dataplane.network.link(netns("c1"), "eth0")


def outside(node):
    return node.dataplane.network.link("", "calic1")


def test_c10_a_healthy_container_passes_silently(node):
    """C10."""
    before = node.datastore.records_text()
    check(node)
    assert node.datastore.records_text() == before
    assert node.log.shown("error") == node.log.shown("warning") == []


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0", "1.0.0"])
def test_a_previous_result_of_any_version_is_compared(node, version):
    previous = result_text(node.previous, version)
    node.check(prev_result=previous, cni_version=version)


def test_without_a_previous_result_there_is_nothing_to_compare():
    """As recorded: the original compares nothing."""
    node = OneNode()
    calls = dict(node.datastore.calls)
    node.check()
    assert node.datastore.calls == calls


def test_one_family_is_compared_by_itself():
    node = OneNode()
    node.previous = node.add(ipam=IpamSettings(type="calico-ipam"))
    check(node)
    node.delete()
    node.previous = node.add(ipam=IpamSettings(type="calico-ipam", assign_ipv4="false", assign_ipv6="true"))
    check(node)


# --- inside ----------------------------------------------------------------------------------------------------------


def remove_route(link, text: str) -> None:
    link.routes = [(to, via) for to, via in link.routes if str(to) != text]


def redirect(link, text: str, way: Address | None) -> None:
    link.routes = [(to, way if str(to) == text else via) for to, via in link.routes]


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        pytest.param(
            lambda node: setattr(inside(node), "up", False), "container interface eth0 is down", id="link down"
        ),
        pytest.param(
            lambda node: setattr(inside(node), "mac", "02:00:00:00:00:ff"),
            "container interface eth0 has MAC 02:00:00:00:00:ff instead of 02:00:00:00:00:05",
            id="another MAC",
        ),
        pytest.param(
            lambda node: inside(node).addresses.remove(Cidr.parse(f"{FOUR}/32")),
            f"address {FOUR} is missing on container interface eth0",
            id="address",
        ),
        pytest.param(
            lambda node: remove_route(inside(node), "0.0.0.0/0"),
            "route to 0.0.0.0/0 is missing on container interface eth0",
            id="default route",
        ),
        pytest.param(
            lambda node: redirect(inside(node), "0.0.0.0/0", Address.parse("10.99.9.9")),
            "route to 0.0.0.0/0 on container interface eth0 goes by 10.99.9.9 instead of 169.254.1.1",
            id="another gateway",
        ),
        pytest.param(
            lambda node: redirect(inside(node), "0.0.0.0/0", None),
            "route to 0.0.0.0/0 on container interface eth0 goes by no gateway instead of 169.254.1.1",
            id="no gateway",
        ),
        pytest.param(
            lambda node: redirect(inside(node), "::/0", Address.parse("fe80::9")),
            "route to ::/0 on container interface eth0 goes by fe80::9 instead of fe80::ecee:eeff:feee:eeee",
            id="another IPv6 gateway",
        ),
        pytest.param(
            lambda node: remove_route(inside(node), "169.254.1.1/32"),
            "route to 169.254.1.1/32 is missing on container interface eth0",
            id="route to the gateway",
        ),
        pytest.param(
            lambda node: remove_route(inside(node), "::/0"),
            "route to ::/0 is missing on container interface eth0",
            id="IPv6 default route",
        ),
        pytest.param(
            lambda node: setattr(outside(node), "up", False), "host interface calic1 is down", id="host link down"
        ),
        pytest.param(
            lambda node: remove_route(outside(node), f"{FOUR}/32"),
            f"host route to {FOUR}/32 on calic1 is missing",
            id="host route",
        ),
        pytest.param(
            lambda node: remove_route(outside(node), f"{SIX}/128"),
            f"host route to {SIX}/128 on calic1 is missing",
            id="IPv6 host route",
        ),
        pytest.param(
            lambda node: node.remove(KEY), "no WorkloadEndpoint is stored for container c1", id="endpoint gone"
        ),
        pytest.param(
            lambda node: node.put(KEY, node.get(KEY).replace(container_id="c9")),
            "WorkloadEndpoint node1-cni-c1-eth0 belongs to container c9",
            id="another container",
        ),
        pytest.param(
            lambda node: node.put(KEY, node.get(KEY).replace(ip_networks=(Cidr.parse("10.244.0.9/32"),))),
            "WorkloadEndpoint node1-cni-c1-eth0 has other addresses: 10.244.0.9/32",
            id="other addresses",
        ),
        pytest.param(
            lambda node: node.put(KEY, node.get(KEY).replace(ip_networks=())),
            "WorkloadEndpoint node1-cni-c1-eth0 has other addresses: none",
            id="no addresses",
        ),
    ],
)
def test_c10_each_fault_is_named(node, harm, expected):
    """C10."""
    harm(node)
    assert faults(node) == [expected]


def test_c10_a_device_that_is_gone_is_gone_at_both_ends(node):
    """C10."""
    node.dataplane.network.delete(inside(node))
    assert faults(node) == [
        f"container interface eth0 is missing in {netns('c1')}",
        "host interface calic1 is missing",
    ]


def test_c10_all_faults_are_told_at_once(node):
    """C10."""
    inside(node).up = False
    outside(node).routes.clear()
    node.remove(KEY)
    assert len(faults(node)) == 4


def test_addresses_may_be_stored_in_another_order(node):
    node.put(KEY, node.get(KEY).replace(ip_networks=node.get(KEY).ip_networks[::-1]))
    check(node)


# --- the previous result ---------------------------------------------------------------------------------------------


def test_a_previous_result_without_a_host_interface_is_a_fault_by_itself(node):
    only = node.previous.replace(interfaces=(ResultInterface("eth0", "", 0, netns("c1")),))
    assert faults(node, previous=only) == ["prevResult names no host interface"]


def test_a_previous_result_that_names_no_mac_is_compared_without_it(node):
    named = node.previous.replace(interfaces=(ResultInterface("calic1"), ResultInterface("eth0", "", 0, netns("c1"))))
    check(node, previous=named)


def test_an_address_that_was_not_answered_by_us_is_missed(node):
    more = node.previous.replace(ips=(*node.previous.ips, ResultIp(Cidr.parse("10.244.0.200/32"))))
    assert faults(node, previous=more) == [
        "address 10.244.0.200 is missing on container interface eth0",
        "host route to 10.244.0.200/32 on calic1 is missing",
        f"WorkloadEndpoint node1-cni-c1-eth0 has other addresses: {FOUR}/32, {SIX}/128",
        "calico-ipam: CHECK of the addresses of c1 failed: address 10.244.0.200 is not allocated",
    ]


# --- allocation ------------------------------------------------------------------------------------------------------


def test_c10_an_address_that_ipam_has_given_back_is_missed(node):
    node.release()
    assert faults(node) == [
        f"calico-ipam: CHECK of the addresses of c1 failed: address {FOUR} is not allocated",
        f"address {SIX} is not allocated",
    ]


def test_c10_a_missing_handle_and_one_that_counts_too_little_are_told(node):
    handle = node.get(HandleKey("net1.c1"))
    node.put(HandleKey("net1.c1"), Handle({Cidr.parse("fd00:10:244::80/122"): 1}))
    head = "calico-ipam: CHECK of the addresses of c1 failed: "
    assert faults(node) == [f"{head}handle net1.c1 counts 0 of 1 addresses in block 10.244.0.128/26"]
    node.put(HandleKey("net1.c1"), handle)
    node.remove(HandleKey("net1.c1"))
    assert faults(node) == [f"{head}handle net1.c1 is missing"]


def test_c10_an_address_of_another_container_is_told(node):
    node.release()
    node.put(HandleKey("net1.c9"), Handle({Cidr.parse("10.244.0.128/26"): 1}))
    block = node.block("10.244.0.128/26")
    node.put(BlockKey(block.cidr), block.give(0, Attribute("net1.c9", {})))
    told = (
        f"calico-ipam: CHECK of the addresses of c1 failed: address {FOUR} is allocated to net1.c9 instead of net1.c1"
    )
    assert faults(node)[0] == told
    node.put(BlockKey(block.cidr), block.give(0, Attribute(None, {})))
    assert f"address {FOUR} is allocated to nobody instead of net1.c1" in faults(node)[0]


def test_addresses_that_ipam_may_not_know_are_not_looked_for_there(node):
    node.release()
    check(node, ip_addrs_no_ipam=True)


def test_another_ipam_plugins_check_counts(node):
    node.own_ipam = False
    node.plugin.fails("calico-ipam", "CHECK", Refused("no lease"))
    assert faults(node) == ["calico-ipam: no lease"]
    node.plugin.fails("calico-ipam", "CHECK", Unavailable("away"))
    with pytest.raises(Unavailable):
        check(node)


@pytest.mark.parametrize(("setting", "version"), [("ipv4/conf/calic1/proxy_arp", 4), ("ipv6/conf/calic1/proxy_ndp", 6)])
def test_c10_a_host_that_does_not_answer_for_the_gateway_is_told(node, setting, version):
    node.dataplane.network.sysctls["", f"net/{setting}"] = "0"
    told = f"host interface calic1 does not answer for IPv{version} neighbours ({setting.rpartition('/')[2]} is off)"
    assert faults(node) == [told]


def test_addresses_without_routes_have_their_host_routes_from_felix(node):
    for link in [outside(node)]:
        link.routes = [(to, via) for to, via in link.routes if str(to) not in (f"{FOUR}/32", f"{SIX}/128")]
    assert len(faults(node)) == 2
    check(node, previous=node.previous.replace(routes=()))


@pytest.mark.parametrize("text", ["[]", '{"ips": [{"address": "nonsense"}]}', '{"cniVersion": "9.9.9"}'])
def test_b04_a_previous_result_that_cannot_be_read_is_the_configurations_fault(node, text):
    """B04."""
    with pytest.raises(CniError) as caught:
        node.check(prev_result=text)
    assert caught.value.code == 7
    assert caught.value.message.startswith("prevResult cannot be read: ")


@pytest.mark.parametrize("text", ["{}", '{"cniVersion": "1.0.0", "ips": []}'])
def test_b04_a_previous_result_without_addresses_says_nothing_to_compare_with(node, text):
    """B04."""
    with pytest.raises(CniError, match="prevResult has no ips to compare with") as caught:
        node.check(prev_result=text)
    assert caught.value.code == 7


# --- refused ---------------------------------------------------------------------------------------------------------


def test_a_container_whose_namespace_is_gone_fails(node):
    node.dataplane.network.remove_namespace(netns("c1"))
    with pytest.raises(Refused, match="no such file or directory"):
        check(node)


def test_a_cluster_that_is_not_ready_is_refused(node):
    node.set_ready(ready=False)
    with pytest.raises(CniError, match="Calico is currently not ready to process requests"):
        check(node)


def test_c10_a_datastore_that_is_away_is_not_the_containers_fault(node):
    """C10: code 11."""
    node.fail("fetch", WorkloadEndpoints)
    with pytest.raises(Unavailable):
        check(node)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"nodename_file": "/x"}, "stat /x: no such file or directory"),
        ({"netns": "/proc/self/ns/net"}, "plugin's netns and netns from CNI_NETNS"),
    ],
)
def test_what_add_refuses_check_refuses(node, fields, text):
    with pytest.raises(CniError, match=text):
        check(node, **fields)
