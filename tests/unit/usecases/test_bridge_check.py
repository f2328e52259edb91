"""CHECK, STATUS and GC of the bridge plugin as stories over memory."""

from __future__ import annotations

import json

import pytest

from domain.cni.errors import CniError
from domain.cni.result import ResultRoute
from domain.ipam.address import Address, Cidr
from ports.errors import Refused, Unavailable
from worlds.one_host import DUAL, NETWORK, ONE_V4, V4, OneHost, netns

FULL = {"ipMasq": True, "macspoofchk": True, "hairpinMode": True, "portIsolation": True}


@pytest.fixture
def host() -> OneHost:
    return OneHost()


def wrong(host: OneHost, result, conf=None) -> str:
    with pytest.raises((Refused, CniError)) as refused:
        host.check_after(result, conf)
    return str(refused.value)


def test_bt_19_what_add_made_is_as_it_should_be(host: OneHost) -> None:
    host.ipam.answers("host-local", DUAL.replace(routes=(ResultRoute(Cidr.parse("10.77.0.0/16"), priority=5),)))
    conf = host.conf(**FULL)
    host.check_after(host.add(conf), conf)
    assert host.verbs()[-1] == "CHECK"


def test_bt_19_and_without_a_prev_result_too_under_the_own_name(host: OneHost) -> None:
    host.add(host.conf(**FULL))
    host.check(host.conf(**FULL))


def test_bt_19_as_bridge_a_prev_result_is_required(host: OneHost) -> None:
    host.add(host.conf(own_name=False))
    with pytest.raises(Refused, match="Required prevResult missing"):
        host.check(host.conf(own_name=False))


def test_as_bridge_without_default_gateway(host: OneHost) -> None:
    conf = host.conf(own_name=False)
    host.check_after(host.add(conf), conf)


def test_layer_2_does_not_ask_ipam(host: OneHost) -> None:
    conf = host.conf(ipam={}, isGateway=False)
    result = host.add(conf)
    host.check_after(result, conf)
    host.check(conf)
    assert host.verbs() == []


def test_a_container_interface_that_was_meant_to_be_down(host: OneHost) -> None:
    conf = host.conf(ipam={}, disableContainerInterface=True)
    host.check_after(host.add(conf), conf)


def test_ipams_refusal_is_the_answer(host: OneHost) -> None:
    result = host.add()
    host.ipam.fails("host-local", "CHECK", Refused("host-local: Failed to find address added by container c1"))
    assert wrong(host, result).startswith("host-local: Failed to find address")


def test_the_namespace_is_gone(host: OneHost) -> None:
    with pytest.raises(Refused, match='failed to open netns "/gone"'):
        host.check(netns="/gone")


def test_a_prev_result_that_cannot_be_read(host: OneHost) -> None:
    host.add()
    with pytest.raises(CniError, match="unsupported CNI result version"):
        host.check(host.conf(prevResult={"cniVersion": "7"}))


def test_bt_40_the_bridge(host: OneHost) -> None:
    result = host.add()
    bridge = host.host("cni0")
    assert wrong(host, result.replace(interfaces=())) == "CNI created bridge cni0 in host namespace was not found"
    bridge.up = False
    assert wrong(host, result) == 'interface "cni0" is not up'
    bridge.promiscuous = True
    assert wrong(host, result).endswith("configured Promisc Mode false doesn't match current state: true ")
    bridge.mac = "02:ff:ff:ff:ff:ff"
    assert wrong(host, result).startswith("Bridge interface cni0 Mac doesn't match: 02:")
    bridge.kind = "dummy"
    assert wrong(host, result) == "Interface cni0 does not have link type of bridge"
    host.network.delete(bridge)
    assert wrong(host, result) == "Interface name cni0 not found"


def test_bt_40_the_containers_interface(host: OneHost) -> None:
    result = host.add()
    bridge, port, inside = result.interfaces
    assert wrong(host, result.replace(interfaces=(bridge, port))) == "CNI created interface in container eth0 not found"
    moved = inside.replace(sandbox="/other")
    assert wrong(host, result.replace(interfaces=(bridge, port, moved))) == (
        f"Sandbox in prevResult /other doesn't match configured netns: {netns('c1')}"
    )
    link = host.inside()
    link.up = False
    assert wrong(host, result) == 'interface "eth0" is not up'
    link.mac = "02:ff:ff:ff:ff:ff"
    assert wrong(host, result).startswith("Interface eth0 Mac 02:")
    link.kind = "macvlan"
    assert wrong(host, result) == "Error: Container interface eth0 not of type veth"
    host.network.delete(link)
    assert wrong(host, result) == f'container interface "eth0" not found in netns "{netns("c1")}"'


def test_bt_40_the_hosts_device(host: OneHost) -> None:
    result = host.add()
    bridge, port, inside = result.interfaces
    link = host.host("eth0c1")
    bare = result.replace(interfaces=(bridge, inside))
    assert wrong(host, bare) == "CNI veth created for bridge cni0 was not found"
    told = result.replace(interfaces=(bridge, port.replace(mac="02:ff:ff:ff:ff:ff"), inside))
    assert wrong(host, told) == "Interface eth0c1 Mac doesn't match: 02:ff:ff:ff:ff:ff not found"
    link.up = False
    assert wrong(host, result) == 'interface "eth0c1" is not up'
    link.master = None
    assert wrong(host, result) == 'host veth "eth0c1" is not attached to bridge "cni0"'
    link.alias = ""
    with pytest.raises(Refused, match="CNI veth created for bridge cni0 was not found"):
        host.check()


def test_br_030_flags_of_the_port(host: OneHost) -> None:
    conf = host.conf(**FULL)
    result = host.add(conf)
    host.host("eth0c1").isolated = False
    assert wrong(host, result, conf) == "isolation of eth0c1 at bridge cni0 is not true"
    host.host("eth0c1").hairpin = False
    assert wrong(host, result, conf) == "hairpin mode of eth0c1 at bridge cni0 is not true"


def test_br_030_vlans_of_the_port(host: OneHost) -> None:
    conf = host.conf(vlan=100, vlanTrunk=[{"id": 7}])
    result = host.add(conf)
    host.check_after(result, conf)
    host.host("eth0c1").vlans = {7: False, 100: False}
    assert wrong(host, result, conf) == "VLAN 100 is not the own one of eth0c1 at bridge cni0"
    host.host("eth0c1").vlans = {100: True}
    assert wrong(host, result, conf) == "eth0c1 is not a member of VLAN 7 at bridge cni0"


def test_bt_40_addresses_and_routes(host: OneHost) -> None:
    via = Address.parse("10.244.0.9")
    extra = ResultRoute(Cidr.parse("10.77.0.0/16"), via, priority=5)
    host.ipam.answers("host-local", ONE_V4.replace(routes=(extra, ResultRoute(Cidr.parse("10.78.0.0/16")))))
    result = host.add()
    host.check_after(result)
    default = host.bridges.routes.pop()
    assert wrong(host, result) == "Expected Route 0.0.0.0/0 not found in routing table"
    with pytest.raises(Refused, match='no default route found for container interface "eth0"'):
        host.check()
    host.bridges.routes.append(default)
    link, made = host.bridges.routes[0]
    host.bridges.routes[0] = (link, made.replace(gateway=Address.parse("10.244.0.8")))
    assert wrong(host, result) == "Expected Route 10.77.0.0/16 not found in routing table"
    host.bridges.routes[0] = (link, made.replace(table=7))
    assert wrong(host, result) == "Expected Route 10.77.0.0/16 not found in routing table"
    host.inside().addresses.remove(V4)
    assert wrong(host, result) == "Failed to match addr 10.244.0.2/24 on interface eth0"
    with pytest.raises(Refused, match='no IP address found for container interface "eth0"'):
        host.check()


def test_bt_40_the_connected_route(host: OneHost) -> None:
    result = host.add()
    sides = type(host.bridges.enter("", host.clock.deadline(1)))
    whole = sides.routes

    class Cut(sides):
        def routes(self, version):
            return tuple([one for one in whole(self, version) if one.gateway is not None])

    host.bridges.enter = lambda netns, _deadline: Cut(host.bridges, netns)
    assert wrong(host, result) == "Failed to find Gateway 10.244.0.1 for interface eth0"


def test_br_030_the_gateways_address(host: OneHost) -> None:
    result = host.add()
    host.host("cni0").addresses.clear()
    assert wrong(host, result) == 'gateway address 10.244.0.1/24 is not on "cni0"'


def test_br_030_packet_filter_rules(host: OneHost) -> None:
    conf = host.conf(**FULL)
    result = host.add(conf)
    host.firewall.masqueraded.clear()
    assert wrong(host, result, conf) == "traffic from 10.244.0.2 is not masqueraded"
    host.attachments.kept.clear()
    assert wrong(host, result, conf) == "traffic from 10.244.0.2 is not masqueraded"
    host.firewall.guarded.clear()
    assert wrong(host, result, conf) == "the MAC spoof check of interface eth0 is missing"


# --- STATUS ---------------------------------------------------------------------------------------------------------


def unready(host: OneHost, conf=None) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        host.status(conf)
    return refused.value.code, str(refused.value)


def test_bt_32_ready(host: OneHost) -> None:
    host.status(host.conf(ipMasq=True))
    assert host.verbs() == ["STATUS"]
    host.status(host.conf(ipam={}))
    assert host.network.namespaces[""] == {}


def test_bt_32_not_ready_is_code_50(host: OneHost) -> None:
    host.bridges.privileged = False
    assert unready(host) == (50, "this process may not change the network: CAP_NET_ADMIN is missing")
    host.bridges.privileged = True
    host.firewall.working.clear()
    said = "cannot masquerade: neither iptables nor nftables does not work on this host"
    assert unready(host, host.conf(ipMasq=True)) == (50, said)
    host.network.add_link("", "cni0")
    assert unready(host) == (50, '"cni0" already exists but is not a bridge')


def test_bt_32_a_bridge_that_exists_is_fine_and_ipams_word_counts(host: OneHost) -> None:
    host.add()
    host.status()
    host.ipam.fails("host-local", "STATUS", Refused("no addresses left", 51))
    assert unready(host) == (51, "no addresses left")


# --- GC -------------------------------------------------------------------------------------------------------------


def test_bt_30_what_is_not_valid_goes_and_the_rest_stays(host: OneHost) -> None:
    for container in ("c1", "c2"):
        host.add(host.conf(**FULL), container)
    host.add(host.conf(**FULL, name="net2"), "c3")
    host.collect(("c1", "eth0"))
    assert host.host("eth0c1") is not None
    assert host.host("eth0c2") is None
    assert host.host("eth0c3") is not None
    assert {owner.attachment.container_id for _, owner in host.firewall.masqueraded} == {"c1", "c3"}
    assert {owner.attachment.container_id for owner in host.firewall.guarded} == {"c1", "c3"}
    assert sorted(key for _, key in host.attachments.kept) == ["c1-eth0", "c3-eth0"]
    assert host.verbs()[3:] == ["DEL", "GC"]
    assert host.ipam.calls[3].call.request.container_id == "c2"


def test_gc_releases_addresses_in_the_version_of_the_add(host: OneHost) -> None:
    """An IPAM plugin that knows DEL need not know GC's version."""
    host.add(host.conf(cniVersion="0.4.0"))
    host.collect()
    released = host.ipam.calls[1].call
    assert released.netconf.cni_version == json.loads(released.netconf_text)["cniVersion"] == "0.4.0"
    assert host.ipam.calls[2].call.netconf.cni_version == "1.1.0"


def test_bt_31_gc_twice(host: OneHost) -> None:
    host.add(host.conf(**FULL))
    host.collect()
    host.collect()
    assert set(host.network.namespaces[""]) == {"cni0"}


def test_bt_30_devices_and_rules_without_a_record_are_found_by_their_marks(host: OneHost) -> None:
    host.add(host.conf(ipMasq=True, ipMasqBackend="nftables"))
    host.attachments.kept.clear()
    host.collect()
    assert set(host.network.namespaces[""]) == {"cni0"}
    assert host.firewall.masqueraded == {}


def test_gc_without_a_list_does_nothing(host: OneHost) -> None:
    host.add()
    host.collect(**{"cni.dev/valid-attachments": None})
    assert host.host("eth0c1") is not None
    assert host.log.shown("warning") == ["GC without cni.dev/valid-attachments: nothing is done"]


def test_gc_of_layer_2_does_not_ask_ipam(host: OneHost) -> None:
    host.add(host.conf(ipam={}))
    host.collect(ipam={})
    assert host.verbs() == []
    assert host.host("eth0c1") is None


def test_gc_gives_addresses_back_to_the_ipam_plugin_that_gave_them(host: OneHost) -> None:
    host.add()
    host.ipam.answers("static", ONE_V4)
    host.collect(ipam={"type": "static"})
    asked = [(ran.verb, ran.call.netconf.ipam.type) for ran in host.ipam.calls]
    assert asked == [("ADD", "host-local"), ("DEL", "host-local"), ("GC", "static")]


def test_gc_goes_on_after_failures_and_tells_them_together(host: OneHost) -> None:
    for container in ("c1", "c2"):
        host.add(host.conf(**FULL), container)
    host.ipam.fails("host-local", "DEL", Refused("no DEL"))
    host.ipam.fails("host-local", "GC", Unavailable("no GC"))
    with pytest.raises(Refused) as refused:
        host.collect()
    assert str(refused.value) == "no DEL; no DEL; no GC"
    assert set(host.network.namespaces[""]) == {"cni0"}
    assert len(host.attachments.kept) == 2  # the next GC tries again


def test_gc_leaves_a_device_that_has_the_name_but_is_another_attachments(host: OneHost) -> None:
    host.add()
    host.host("eth0c1").alias = f"cni:{NETWORK}:c9:eth0"
    host.collect(("c9", "eth0"))
    assert host.host("eth0c1") is not None
    assert host.attachments.kept == {}


def test_gc_of_what_is_gone_already(host: OneHost) -> None:
    host.add()
    host.network.remove_namespace(netns("c1"))
    host.collect()
    assert host.attachments.kept == {}
