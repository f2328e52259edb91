"""The plugins on a Windows node, over HNS in memory: what a runtime asks, and what is there afterwards."""

from __future__ import annotations

import json

import pytest

from domain.cni.errors import CniError
from domain.cni.netconf import IpamSettings, RuntimeDns
from domain.cni.result import Dns, Result, ResultIp, result_text
from domain.ipam.address import Cidr
from domain.ipam.pools import AllocationConfig
from domain.moment import SECOND, rfc3339
from ports.datastore import AllocationConfigKey, IPPools, Node, NodeKey
from ports.errors import Refused, Unavailable
from worlds.one_node import NODE
from worlds.windows_node import POOL, WindowsNode

NAT_OFF = {"nat_outgoing": False}
CALICO_DNS = {"dns": '{"Nameservers":["10.96.0.10"],"Search":["pod.cluster.local"]}'}
RESERVED = [f"10.244.0.{at}" for at in (128, 129, 130, 191)]  # this node begins with that block
VXLAN = {"mode": "vxlan", "windows_use_single_network": True}


@pytest.fixture
def node():
    made = WindowsNode()
    made.add_pool("pool0", POOL, nat_outgoing=True)
    return made


def address(result: Result) -> Cidr:
    return result.ips[0].address


def exceptions(endpoint):
    return [policy.get("ExceptionList") for policy in endpoint["Policies"] if policy["Type"] == "OutBoundNAT"]


def test_a_pod_is_connected_in_its_block(node):
    """WFV-001 WFV-002: the result has the block's mask, the record the address alone."""
    result = node.add_pod()
    assert address(result).length == 26
    (endpoint,) = node.endpoints()
    assert endpoint.ip_networks == (address(result).address.host_cidr,)
    assert [(port.name, port.port) for port in endpoint.ports] == [("http", 8080)]
    made = node.hns_endpoint("c1_net1")
    assert made["IPAddress"] == str(address(result).address)
    assert endpoint.mac == result.interfaces[1].mac == made["MacAddress"].replace("-", ":").lower()
    assert made["PrefixLength"] == 26
    node.delete_pod()
    assert node.leftovers() == {}
    node.delete_pod()


def test_a_container_without_an_orchestrator_as_well(node):
    result = node.add()
    assert node.hns_endpoints() == ["c1_net1"]
    assert node.add().ips[0].address.address == address(result).address
    node.delete()
    assert node.leftovers() == {}


def test_windows_keeps_four_addresses_of_each_block(node):
    """LIB-287: as calico-ipam asks for it."""
    node.assign()
    assert [one for one, holder in node.holders().items() if holder == "windows-reserved-ipam-handle"] == RESERVED


def test_windows_demands_strict_affinity(node):
    """LIB-286: as calico-ipam asks for it."""
    node.put(AllocationConfigKey(), AllocationConfig(strict_affinity=False))
    with pytest.raises(Refused, match=r"^global strict affinity should not be false for Windows node$"):
        node.add_pod()
    assert node.leftovers() == {}


def fill(node, count, **fields):
    """How many of that many containers get an address."""
    given = 0
    for number in range(count):
        container = f"p{number}"
        node.namespaces[container] = node.hns.make_namespace()
        try:
            node.add(container, **fields)
        except Refused:
            return given
        given += 1
    return given


def test_a_single_network_ends_with_its_block():
    """WFV-011"""
    node = WindowsNode(pools=())
    node.add_pool("small", "10.244.0.0/27", block_size=29)
    assert fill(node, 5, windows_use_single_network=True) == 4
    assert [one["Name"] for one in node.hns.networks.values()] == ["net1"]


def test_each_block_has_a_network_of_its_own():
    """WFV-012"""
    node = WindowsNode(pools=())
    node.add_pool("small", "10.244.0.0/27", block_size=29)
    assert fill(node, 5) == 5
    assert len(node.hns.networks) == 2


def test_addresses_come_back_to_the_same_network(node):
    """WFV-008 WFV-013"""
    fill(node, 4)
    for container in ("p0", "p1", "p2"):
        node.delete(container)
    assert fill(node, 3) == 3
    assert len(node.hns.networks) == 1


def test_pools_are_exceptions_and_say_whether_there_is_nat(node):
    node.add_pool("other", "10.245.0.0/16", disabled=True)
    node.add_pool("odd", "not a range")
    node.add_pod()
    assert exceptions(node.hns_endpoint("c1_net1")) == [["10.245.0.0/16", POOL, "10.11.128.0/19"]]
    node.add_pool("pool0", POOL, nat_outgoing=False)
    node.add_pod("c2", "web-1")
    assert exceptions(node.hns_endpoint("c2_net1")) == []


def test_an_address_of_no_pool_is_translated(node):
    node.own_ipam = False
    node.plugin.answers("other", Result(ips=(ResultIp(Cidr.parse("192.168.7.9/24")),)))
    node.add_pod(ipam=IpamSettings(type="other"))
    assert exceptions(node.hns_endpoint("c1_net1")) == [[POOL, "10.11.128.0/19"]]


def test_an_address_that_is_asked_for_gets_its_blocks_subnet(node):
    """IPAM answers it alone; HNS needs a subnet."""
    pod = node.cluster.pods["shop", "web-0"]
    wanted = {"cni.projectcalico.org/ipAddrs": '["10.244.0.77"]'}
    node.cluster.pods["shop", "web-0"] = pod.replace(annotations=wanted)
    assert str(address(node.add_pod())) == "10.244.0.77/26"
    assert [one["Name"] for one in node.hns.networks.values()] == ["net1-10-244-0-64"]


def test_pools_that_cannot_be_listed_fail_the_call(node):
    node.own_ipam = False
    node.plugin.answers("other", Result(ips=(ResultIp(Cidr.parse("192.168.7.9/24")),)))
    node.fail("fetch", IPPools)
    with pytest.raises(Unavailable):
        node.add_pod(ipam=IpamSettings(type="other"))
    node.heal()
    assert node.leftovers() == {}
    assert node.plugin.added == {"c1": []}


def test_a_refusal_of_hns_gives_everything_back(node):
    """Nothing is answered that is not closed to everybody else."""
    node.hns.fails("modify Endpoint", times=4, record="no")
    with pytest.raises(Refused, match="cannot connect the container"):
        node.add_pod()
    assert node.leftovers() == {}


def test_a_namespace_that_is_not_there_is_refused_first(node):
    node.namespaces["c1"] = "deadbeef"
    with pytest.raises(Refused, match="failed to open network namespace"):
        node.add_pod()
    assert node.holders() == {}


def test_name_servers_are_answered_too(node):
    """WFV-009 WFV-014"""
    result = node.add_pod(**CALICO_DNS)
    assert result.dns == Dns(("10.96.0.10",), search=("pod.cluster.local",))
    assert node.hns_endpoint("c1_net1")["DNSServerList"] == "10.96.0.10"
    wanted = RuntimeDns(("10.96.0.11",), searches=("svc.cluster.local",))
    assert node.add_pod("c2", "web-1", runtime_dns=wanted, **CALICO_DNS).dns.nameservers == ("10.96.0.11",)


def test_the_wait_for_policy_is_left_out(node):
    node.add_pod(policy_setup_timeout_seconds=30)
    assert "policy_setup_timeout_seconds is not used on Windows" in node.log.shown("warning")
    assert node.clock.monotonic() < 30 + WindowsNode().clock.monotonic()


def test_check_compares_the_records(node):
    """An endpoint of HNS is no device, so there is none to look at."""
    result = node.add_pod()
    previous = result_text(result, "1.0.0")
    node.check_pod(prev_result=previous)
    with pytest.raises(CniError, match="CHECK of eth0 failed"):
        node.check_pod("c2", "web-1", prev_result=previous)


def test_host_local_keeps_off_the_hosts_addresses(node):
    node.own_ipam = False
    node.plugin.answers("host-local", Result(ips=(ResultIp(Cidr.parse("10.254.112.9/20")),)))
    text = '{"ipam":{"type":"host-local","subnet":"10.254.112.0/20"}}'
    node.add_pod(ipam=IpamSettings(type="host-local"), text=text)
    asked = json.loads(node.plugin.calls[0].call.netconf_text)["ipam"]
    assert (asked["rangeStart"], asked["rangeEnd"]) == ("10.254.112.3", "10.254.127.254")


# --- the overlay's tunnel --------------------------------------------------------------------------------------------


def test_an_overlay_tells_the_node_of_its_tunnel(node):
    """WFV-015"""
    node.add_pod(**VXLAN)
    assert node.get(NodeKey(NODE)).vxlan_tunnel == ("10.244.0.129", "00:15:5d:aa:bb:cc")
    before = node.datastore.get(NodeKey(NODE), node.work().deadline).revision
    node.add_pod("c2", "web-1", **VXLAN)
    assert node.datastore.get(NodeKey(NODE), node.work().deadline).revision == before


def test_the_tunnel_is_tried_thrice_and_fails_nobody(node):
    node.own_ipam = False
    node.plugin.answers("other", Result(ips=(ResultIp(Cidr.parse("10.244.0.9/26")),)))
    node.remove(NodeKey(NODE))
    began = node.clock.monotonic()
    node.add_pod(ipam=IpamSettings(type="other"), **VXLAN)
    assert node.clock.monotonic() - began == pytest.approx(2.0, abs=0.5)
    assert len([line for line in node.log.shown("error") if "VXLAN tunnel" in line]) == 3


def test_a_race_for_the_nodes_record_is_won(node):
    def touch(_key):
        node.touch(NodeKey(NODE))

    with node.rival("update", NodeKey, touch):
        node.add_pod(**VXLAN)
    assert node.get(NodeKey(NODE)).vxlan_tunnel[0] == "10.244.0.129"


# --- dockershim ------------------------------------------------------------------------------------------------------


def test_containers_share_what_their_sandbox_has(node):
    """WFV-004 WFV-010: nothing is allocated, and the second one's id is its own."""
    first = node.add_pod("sandbox")
    held = node.holders()
    node.hns.run_container("app")
    second = node.add_pod("app", netns="container:sandbox")
    assert address(second).address == address(first).address
    assert node.hns.containers["app"] == [node.hns_endpoint("sandbox_net1")["ID"]]
    assert node.holders() == held
    assert second.interfaces[0] == first.interfaces[0]


def test_a_sandbox_that_is_asked_for_again_keeps_what_it_has(node):
    first = node.add_pod("sandbox")
    again = node.add_pod("sandbox")
    assert address(again).address == address(first).address
    assert len(node.hns_endpoints()) == 1


def test_a_container_without_a_networked_sandbox_is_refused(node):
    """WFV-005"""
    with pytest.raises(CniError, match='the sandbox of CNI_NETNS "container:sandbox" has no endpoint to share'):
        node.add_pod("app", netns="container:sandbox")
    assert node.leftovers() == {}


def test_a_container_that_cannot_be_attached_is_refused(node):
    node.add_pod("sandbox")
    with pytest.raises(Refused, match='cannot share the endpoint "sandbox_net1"'):
        node.add_pod("app", netns="container:sandbox")


def test_a_sandboxs_deletion_is_noted(node):
    """WFV-016"""
    node.add_pod("sandbox")
    node.stamps.late = 2
    node.delete_pod("sandbox")
    assert list(node.stamps.stamps) == ["sandbox"]
    assert node.leftovers() == {}


def test_a_pod_with_a_namespace_is_not_noted(node):
    node.add_pod()
    node.delete_pod()
    assert node.stamps.stamps == {}


def test_a_deletion_that_cannot_be_noted_fails(node):
    node.add_pod("sandbox")
    node.stamps.refuses = "access denied"
    with pytest.raises(Refused, match="access denied"):
        node.delete_pod("sandbox")
    assert node.hns_endpoints() == ["sandbox_net1"]
    node.stamps.refuses = ""
    node.stamps.late = 1000
    with pytest.raises(Refused, match="is not to be seen in the registry"):
        node.delete_pod("sandbox")


def test_a_sandbox_that_was_deleted_lately_does_not_come_back(node):
    """WFV-017: for as long as is configured; older notes, and those that cannot be read, go."""
    ago = node.clock.now() - 30 * SECOND
    now = rfc3339(node.clock.now())
    node.stamps.stamps = {"old": rfc3339(ago), "odd": "yesterday", "another": now, "sandbox": now}
    timeout = {"windows_pod_deletion_timestamp_timeout": 12}
    with pytest.raises(CniError, match=r"^endpoint with same ID was recently deleted$"):
        node.add_pod("sandbox", **timeout)
    assert list(node.stamps.stamps) == ["another", "sandbox"]
    assert node.leftovers() == {}
    node.clock.sleep(13)
    node.add_pod("sandbox", **timeout)
    assert node.stamps.stamps == {}


def test_an_endpoint_with_an_address_that_is_none(node):
    node.add_pod("sandbox")
    endpoint = node.hns_endpoint("sandbox_net1")["ID"]
    node.hns.endpoints[endpoint]["IpConfigurations"] = [{"IpAddress": "", "PrefixLength": 0}]
    with pytest.raises(Refused, match="without a usable address"):
        node.add_pod("sandbox")


def test_the_nodes_tunnel_leaves_the_rest_of_its_record(node):
    found = Node(node.get(NodeKey(NODE)).metadata, '{"bgp":{"asNumber":1},"orchRefs":[]}')
    changed = found.with_vxlan_tunnel("10.0.0.1", "aa:bb")
    assert changed.spec == (
        '{"bgp":{"asNumber":1},"orchRefs":[],"ipv4VXLANTunnelAddr":"10.0.0.1","vxlanTunnelMACAddr":"aa:bb"}'
    )
    assert changed.vxlan_tunnel == ("10.0.0.1", "aa:bb")
    assert found.replace(spec="[]").vxlan_tunnel == ("", "")
    assert found.replace(spec='{"ipv4VXLANTunnelAddr":7}').vxlan_tunnel == ("", "")
    assert found.replace(spec="[]").with_vxlan_tunnel("a", "m").vxlan_tunnel == ("a", "m")
