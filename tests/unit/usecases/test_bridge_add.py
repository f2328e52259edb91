"""ADD and DEL of the bridge plugin as stories over memory: what is made, what is undone, what is found again."""

from __future__ import annotations

import pytest

from domain.cni.errors import CniError
from domain.cni.result import Dns, Result, ResultIp, ResultRoute
from domain.ipam.address import Address, Cidr
from domain.linux.bridge_steps import AppendRoute, AwaitPort, Enslave, EnsureAddress, MakePair, SetAlias
from ports.errors import Expired, Refused, Unavailable
from worlds.one_host import DUAL, GATEWAY_V4, NETWORK, ONE_V4, V4, OneHost, netns


@pytest.fixture
def host() -> OneHost:
    return OneHost()


def test_the_worked_example_of_the_tutorial(host: OneHost) -> None:
    result = host.add(host.conf(bridge="mycni0", ipMasq=True), "mycontainer123", netns=netns("c1"))
    assert [one.name for one in result.interfaces] == ["mycni0", "eth0mycon", "eth0"]
    assert [one.sandbox for one in result.interfaces] == ["", "", netns("c1")]
    assert {one.mtu for one in result.interfaces} == {1500}
    assert result.ips == (ResultIp(V4, 2, GATEWAY_V4),)
    assert result.routes == (ResultRoute(Cidr.parse("0.0.0.0/0"), GATEWAY_V4),)
    port = host.host("eth0mycon")
    assert port.up
    assert port.master is host.host("mycni0")
    assert port.alias == f"cni:{NETWORK}:mycontainer123:eth0"
    assert V4 in host.inside().addresses
    assert host.inside(ifname="lo").up
    assert Cidr.parse("10.244.0.1/24") in host.host("mycni0").addresses
    assert host.firewall.masqueraded == {("iptables", host.owner("mycontainer123")): (V4,)}


def test_br_040_the_record_tells_all_that_was_made(host: OneHost) -> None:
    host.add(host.conf(ipMasq=True, ipMasqBackend="nftables", macspoofchk=True))
    record = host.attachments.load(NETWORK, host.owner().attachment)
    assert record is not None
    assert (record.bridge, record.host_name, record.host_index) == ("cni0", "eth0c1", host.host("eth0c1").index)
    assert (record.addresses, record.masquerade, record.guarded) == ((V4,), "nftables", True)
    assert (record.mac, record.ipam, record.netns) == (host.inside().mac, "host-local", netns("c1"))


def test_bt_04_a_bridge_that_exists_is_used_as_it_is(host: OneHost) -> None:
    host.add()
    bridge = host.host("cni0")
    host.add(host.conf(mtu=9000), "c2")
    assert host.host("cni0") is bridge
    assert bridge.mtu == 1500


def test_a_device_of_the_bridges_name_that_is_none(host: OneHost) -> None:
    host.network.add_link("", "cni0", "dummy")
    with pytest.raises(Refused, match='failed to create bridge "cni0": "cni0" already exists but is not a bridge'):
        host.add()


def test_as_bridge_the_hosts_device_is_named_at_random(host: OneHost) -> None:
    result = host.add(host.conf(own_name=False))
    assert result.interfaces[1].name.startswith("veth")
    assert len(result.interfaces[1].name) == 12
    assert not host.inside(ifname="lo").up


def test_bt_34_a_name_that_somebody_else_has_gives_way_to_a_random_one(host: OneHost) -> None:
    other = host.network.add_link("", "eth0c1")
    assert host.add().interfaces[1].name.startswith("veth")
    assert host.host("eth0c1") is other


def test_a_device_that_an_earlier_add_left_behind_is_replaced(host: OneHost) -> None:
    left = host.network.add_link("", "eth0c1")
    left.alias = f"cni:{NETWORK}:c1:eth0"
    assert host.add().interfaces[1].name == "eth0c1"
    assert host.host("eth0c1") is not left


def test_layer_2_without_ipam(host: OneHost) -> None:
    result = host.add(host.conf(ipam={}, ipMasq=True))
    assert result.ips == result.routes == ()
    assert host.inside().up
    assert host.verbs() == []
    assert host.firewall.masqueraded == {}


def test_bt_22_the_containers_interface_stays_down(host: OneHost) -> None:
    host.add(host.conf(ipam={}, disableContainerInterface=True))
    assert not host.inside().up


def test_bt_11_a_gateway_in_a_vlan_is_the_fourth_interface(host: OneHost) -> None:
    result = host.add(host.conf(vlan=100))
    assert [one.name for one in result.interfaces] == ["cni0", "eth0c1", "eth0", "cni0.100"]
    assert host.host("eth0c1").vlans == {100: True}
    assert host.add(host.conf(vlan=100, isGateway=False), "c2").interfaces[-1].name == "eth0"


def test_dual_stack_gets_both_gateways(host: OneHost) -> None:
    host.ipam.answers("host-local", DUAL)
    result = host.add()
    assert [str(route.dst) for route in result.routes] == ["0.0.0.0/0", "::/0"]
    assert host.network.sysctls["", "net/ipv6/conf/all/forwarding"] == "1"


def test_the_configurations_dns_goes_before_ipams(host: OneHost) -> None:
    host.ipam.answers("host-local", ONE_V4.replace(dns=Dns(("9.9.9.9",))))
    assert host.add().dns == Dns(("9.9.9.9",))
    host.ipam.answers("host-local", ONE_V4.replace(dns=Dns(("9.9.9.9",))))
    assert host.add(host.conf(dns={"domain": "d"}), "c2").dns == Dns(domain="d")


@pytest.mark.parametrize(
    "wanted", [{"args": {"cni": {"mac": "02-00-00-00-00-AA"}}}, {"runtimeConfig": {"mac": "0200.0000.00aa"}}]
)
def test_bt_16_the_wanted_mac(host: OneHost, wanted) -> None:
    assert host.add(host.conf(**wanted)).interfaces[2].mac == "02:00:00:00:00:aa"


@pytest.mark.parametrize(
    "mac", ["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "02:00:00:00:00:00:00:01"]
)
def test_bt_16_a_mac_that_no_device_can_have(host: OneHost, mac: str) -> None:
    with pytest.raises(CniError, match=f"failed to make veth pair: address {mac}: not that of one Ethernet device"):
        host.add(host.conf(runtimeConfig={"mac": mac}))


def test_bt_16_a_bad_mac(host: OneHost) -> None:
    with pytest.raises(CniError, match="failed to make veth pair: address x: invalid MAC address"):
        host.add(host.conf(runtimeConfig={"mac": "x"}))
    assert host.host("cni0") is None


def test_prev_result_is_not_for_this_plugin(host: OneHost) -> None:
    host.add(host.conf(prevResult={"cniVersion": "1.0.0"}))
    assert host.log.shown("warning") == ["Ignoring prevResult: this plugin makes an interface of its own"]


def test_the_own_namespace_is_refused_before_anything_is_done(host: OneHost) -> None:
    for step in (host.add, host.delete, host.check):
        with pytest.raises(CniError) as refused:
            step(None, netns="/proc/self/ns/net")
        assert refused.value.code == 8
    assert host.network.namespaces[""] == {}


def test_the_runtime_may_override_that(host: OneHost) -> None:
    host.delete(None, netns="/proc/self/ns/net", netns_override=True)


def test_a_namespace_that_is_not_there(host: OneHost) -> None:
    with pytest.raises(Refused, match='failed to open netns "/gone"'):
        host.add(netns="/gone")
    assert host.network.namespaces[""] == {}


def test_the_interface_exists_already(host: OneHost) -> None:
    host.add()
    with pytest.raises(Refused, match=r'container veth name \("eth0"\) peer provided \("eth0c1"\) already exists'):
        host.add()
    assert host.inside() is not None  # an ADD that fails leaves an earlier one alone
    assert host.host("eth0c1") is not None


def test_what_ipam_refuses_is_not_given_back(host: OneHost) -> None:
    """Its DEL would release what an earlier ADD has for this interface."""
    host.ipam.fails("host-local", "ADD", Refused("10.244.0.2 has been allocated to c1"))
    with pytest.raises(Refused, match="has been allocated"):
        host.add()
    assert host.verbs() == ["ADD"]
    assert host.inside() is None


def test_what_ipam_may_have_given_is_given_back(host: OneHost) -> None:
    host.ipam.takes("host-local", 100.0)
    with pytest.raises(Expired):
        host.add()
    assert host.verbs() == ["ADD", "WITHDRAW"]


def test_an_ipam_plugin_without_an_address(host: OneHost) -> None:
    host.ipam.answers("host-local", Result())
    with pytest.raises(Refused, match="IPAM plugin returned missing IP config"):
        host.add()
    assert host.host("eth0c1") is None


FULL = {"ipMasq": True, "macspoofchk": True}


@pytest.mark.parametrize("failing", [SetAlias, MakePair, Enslave, EnsureAddress, AppendRoute, AwaitPort])
def test_br_020_bt_35_a_failed_add_leaves_nothing(host: OneHost, failing) -> None:
    host.bridges.fails(failing, "no space")
    if failing is SetAlias:  # a mark that cannot be set is no reason to fail
        host.add(host.conf(**FULL))
        return
    with pytest.raises(Refused, match="no space"):
        host.add(host.conf(**FULL))
    assert host.inside() is None
    assert set(host.network.namespaces[""]) == {"cni0"}
    assert host.ipam.added.get("c1", []) == []
    assert (host.firewall.masqueraded, host.firewall.guarded, host.attachments.kept) == ({}, {}, {})


@pytest.mark.parametrize("verb", ["guard", "masquerade"])
def test_bt_17_bt_35_nor_does_one_that_the_packet_filter_refuses(host: OneHost, verb: str) -> None:
    host.firewall.failing[verb] = Refused("nft: no")
    with pytest.raises(Refused, match="nft: no"):
        host.add(host.conf(**FULL))
    assert host.inside() is None
    assert host.ipam.added.get("c1", []) == []
    assert host.firewall.guarded == {}


def test_bt_35_nor_does_one_that_cannot_be_recorded(host: OneHost) -> None:
    host.attachments.failing = Unavailable("open /x: no space left on device")
    with pytest.raises(Unavailable):
        host.add(host.conf(**FULL))
    assert host.inside() is None
    assert host.firewall.masqueraded == {}


def test_bt_18_the_only_back_end_that_works_is_taken(host: OneHost) -> None:
    host.firewall.working = {"nftables"}
    host.add(host.conf(ipMasq=True))
    assert list(host.firewall.masqueraded) == [("nftables", host.owner())]


@pytest.mark.parametrize(("port", "verb"), [("firewall", "guard"), ("attachments", "save")])
def test_a_device_that_vanishes_meanwhile_is_told(host: OneHost, port: str, verb: str) -> None:
    def vanish(*_arguments):
        host.network.delete(host.inside())

    setattr(getattr(host, port), verb, vanish)
    with pytest.raises(Refused, match="Link not found"):
        host.add(host.conf(macspoofchk=True))


# --- DEL ------------------------------------------------------------------------------------------------------------


def test_del_takes_all_back_but_the_bridge(host: OneHost) -> None:
    host.add(host.conf(**FULL))
    host.delete(host.conf(**FULL))
    assert set(host.network.namespaces[""]) == {"cni0"}
    assert Cidr.parse("10.244.0.1/24") in host.host("cni0").addresses
    assert (host.firewall.masqueraded, host.firewall.guarded, host.attachments.kept) == ({}, {}, {})
    assert host.ipam.added == {}
    host.delete(host.conf(**FULL))


def test_the_interface_goes_before_its_addresses_are_given_back(host: OneHost) -> None:
    host.add()
    host.bridges.fails("remove", "busy")
    with pytest.raises(Refused, match='failed to delete "eth0": busy'):
        host.delete()
    assert host.attachments.kept  # for the repeated DEL
    assert host.verbs() == ["ADD", "DEL"]


@pytest.mark.parametrize("path", ["", "/gone"])
def test_bt_36_k01_without_a_namespace_all_goes_too(host: OneHost, path: str) -> None:
    host.add(host.conf(**FULL))
    host.delete(host.conf(**FULL), netns=path)
    assert set(host.network.namespaces[""]) == {"cni0"}
    assert (host.firewall.masqueraded, host.firewall.guarded, host.attachments.kept) == ({}, {}, {})


def test_bt_36_and_without_a_record_either(host: OneHost) -> None:
    host.add(host.conf(own_name=False, **FULL))
    host.attachments.kept.clear()
    host.delete(host.conf(own_name=False, **FULL), netns="")
    assert set(host.network.namespaces[""]) == {"cni0"}
    assert (host.firewall.masqueraded, host.firewall.guarded) == ({}, {})


def test_bt_12_del_of_what_never_was(host: OneHost) -> None:
    host.delete(host.conf(**FULL))
    host.delete(host.conf(ipam={}), netns="")


def test_a_device_that_is_another_attachments_now_stays(host: OneHost) -> None:
    host.add()
    other = host.network.add_link("", "eth0c2")
    other.alias = f"cni:{NETWORK}:other:eth0"
    host.delete(None, "c2")
    assert host.host("eth0c2") is other


@pytest.mark.parametrize("previous", [{}, None, {"cniVersion": "0.4.0", "ips": [{"address": "nonsense"}]}])
def test_b04_a_prev_result_that_says_nothing(host: OneHost, previous) -> None:
    host.add(host.conf(**FULL))
    host.delete(host.conf(**FULL, prevResult=previous))
    assert set(host.network.namespaces[""]) == {"cni0"}


def test_b04_a_prev_result_of_an_older_version_leads_to_the_rules(host: OneHost) -> None:
    host.add(host.conf(**FULL))
    host.attachments.kept.clear()
    ips = [{"version": "4", "interface": 2, "address": "10.244.0.2/24"}]
    interfaces = [{"name": "cni0"}, {"name": "eth0c1"}, {"name": "eth0", "sandbox": netns("c1")}]
    told = {"cniVersion": "0.4.0", "interfaces": interfaces, "ips": ips}
    host.delete(host.conf(**FULL, prevResult=told), netns="")
    assert set(host.network.namespaces[""]) == {"cni0"}
    assert host.firewall.masqueraded == {}


def test_the_record_alone_says_that_there_are_rules(host: OneHost) -> None:
    host.add(host.conf(**FULL))
    host.delete(host.conf())
    assert (host.firewall.masqueraded, host.firewall.guarded) == ({}, {})


def test_rules_are_not_looked_for_where_the_record_says_that_there_are_none(host: OneHost) -> None:
    host.add()
    host.firewall.failing["stop_masquerade"] = Refused("not asked for")
    host.delete()


def test_the_other_interfaces_rules_stay_when_no_address_is_known(host: OneHost) -> None:
    host.add(host.conf(ipMasq=True))
    host.delete(host.conf(ipMasq=True), "c1", "eth7", netns="")
    assert host.firewall.masqueraded == {("iptables", host.owner()): (V4,)}


def test_a_mac_check_that_cannot_be_removed_is_no_error(host: OneHost) -> None:
    host.add(host.conf(**FULL))
    host.firewall.failing["stop_guarding"] = Refused("nft: no")
    host.delete(host.conf(**FULL))
    assert host.log.shown("warning") == ["Cannot remove the MAC spoof check error=nft: no"]


def test_ipams_refusal_is_told_after_everything_else_is_done(host: OneHost) -> None:
    host.add(host.conf(**FULL))
    host.ipam.fails("host-local", "DEL", Refused("disk on fire"))
    with pytest.raises(Refused, match="disk on fire"):
        host.delete(host.conf(**FULL))
    assert set(host.network.namespaces[""]) == {"cni0"}
    assert host.firewall.masqueraded == {}
    assert host.attachments.kept


def test_a_namespace_that_cannot_be_opened_is_told_after_the_rest(host: OneHost) -> None:
    host.add(host.conf(**FULL))
    host.bridges.unreadable.add(netns("c1"))
    with pytest.raises(Refused, match="permission denied"):
        host.delete(host.conf(**FULL))
    assert host.inside() is None  # with the host's end
    assert host.ipam.added == {}


def test_the_containers_namespace_is_locked(host: OneHost) -> None:
    host.add()
    host.delete()
    assert host.lock.kept == [netns("c1")] * 2


def test_a_route_of_ipam_without_gateway_leads_through_the_familys(host: OneHost) -> None:
    host.ipam.answers("host-local", ONE_V4.replace(routes=(ResultRoute(Cidr.parse("10.77.0.0/16")),)))
    host.add()
    assert host.bridges.routes[0][1].gateway == Address.parse("10.244.0.1")
