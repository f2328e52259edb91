"""The bridge plugin's requests and answers as bytes, with the pyroute2 library's codec as the oracle."""

from __future__ import annotations

from sys import byteorder

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from adapters.linux.netlink import rtnetlink_bridge as messages
from adapters.linux.netlink.bridge_seam import OPERATIONAL_STATES, KernelAddress
from adapters.linux.netlink.messages import all_attributes, attributes
from domain.ipam.address import BITS, Address, Cidr
from domain.linux.link import Link, PortVlan, Route
from worlds.pyroute2_messages import decoded, encoded

INDEXES = st.integers(1, (1 << 31) - 1)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1, max_size=15)
MACS = st.binary(min_size=6, max_size=6).map(lambda data: data.hex(":"))
CIDRS = st.sampled_from([4, 6]).flatmap(
    lambda version: st.builds(
        Cidr, st.just(version), st.integers(0, (1 << BITS[version]) - 1), st.integers(0, BITS[version])
    )
)
VLANS = st.lists(st.builds(PortVlan, st.integers(1, 4094), st.booleans(), st.booleans()), max_size=6)
FAMILIES = {4: 2, 6: 10}
CREATE = 0x4 | 0x200 | 0x400


@given(NAMES, st.integers(0, 65535), st.booleans())
def test_a_bridge_is_asked_for_with_what_was_wished_only(name, mtu, filters):
    request = messages.new_bridge(name, mtu, filters_vlans=filters)
    assert (request.kind, request.flags) == (16, CREATE)
    message = decoded(ifinfmsg, request)
    assert (message.get_attr("IFLA_IFNAME"), message.get_attr("IFLA_MTU")) == (name, mtu or None)
    information = message.get_attr("IFLA_LINKINFO")
    assert information.get_attr("IFLA_INFO_KIND") == "bridge"
    data = information.get_attr("IFLA_INFO_DATA")
    assert (data and data.get_attr("IFLA_BR_VLAN_FILTERING")) == (1 if filters else None)


@given(INDEXES, INDEXES, st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60))
def test_a_device_is_changed_in_what_was_asked_and_nothing_else(index, bridge, alias):
    changed = decoded(ifinfmsg, messages.set_promiscuous(index))
    assert (changed["index"], changed["flags"], changed["change"], changed["attrs"]) == (index, 0x100, 0x100, [])
    changed = decoded(ifinfmsg, messages.set_master(index, bridge))
    assert (changed["index"], changed["change"], dict(changed["attrs"])) == (index, 0, {"IFLA_MASTER": bridge})
    assert attributes(messages.set_alias(index, alias).body[16:]) == {20: alias.encode()}  # no zero at its end


@pytest.mark.parametrize("hairpin", [False, True])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_port_is_set_in_a_message_of_the_bridge_family(hairpin, isolated):
    request = messages.set_port(7, hairpin=hairpin, isolated=isolated)
    assert (request.kind, request.body[0], request.body[4:8]) == (19, 7, (7).to_bytes(4, byteorder))
    assert request.body[18:20] == (0x8000 | 12).to_bytes(2, byteorder)  # unless flagged as nested it means a state
    ((_, settings),) = all_attributes(request.body[16:])
    assert attributes(settings) == {4: bytes([hairpin]), 33: bytes([isolated])}


@given(INDEXES, VLANS)
def test_vlans_are_added_and_removed_in_one_request(index, vlans):
    request = messages.add_vlans(index, vlans)
    assert (request.kind, request.body[0]) == (19, 7)
    listed = decoded(ifinfmsg, request).get_attr("IFLA_AF_SPEC").get_attrs("IFLA_BRIDGE_VLAN_INFO")
    wanted = [(vlan.number, vlan.pvid * 2 | vlan.untagged * 4) for vlan in vlans]
    assert [(one["vid"], one["flags"]) for one in listed] == wanted
    request = messages.remove_vlans(index, [vlan.number for vlan in vlans])
    assert (request.kind, request.body[0]) == (17, 7)
    listed = decoded(ifinfmsg, request).get_attr("IFLA_AF_SPEC").get_attrs("IFLA_BRIDGE_VLAN_INFO")
    assert [(one["vid"], one["flags"]) for one in listed] == [(vlan.number, 0) for vlan in vlans]


@given(INDEXES, VLANS)
def test_vlans_read_as_the_library_writes_them(index, vlans):
    listed = [
        ("IFLA_BRIDGE_VLAN_INFO", {"vid": vlan.number, "flags": vlan.pvid * 2 | vlan.untagged * 4}) for vlan in vlans
    ]
    attrs = [("IFLA_IFNAME", "port0"), ("IFLA_AF_SPEC", {"attrs": listed})]
    body = encoded(ifinfmsg, family=7, index=index, attrs=attrs)
    assert messages.read_vlans(body) == (index, vlans)


def test_dumps_name_what_they_are_about():
    links, vlans, routes = messages.get_links(), messages.get_vlans(), messages.get_all_routes(6)
    assert [request.flags for request in (links, vlans, routes)] == [0x300] * 3
    assert decoded(ifinfmsg, links).get_attr("IFLA_EXT_MASK") == 8
    assert (vlans.body[0], decoded(ifinfmsg, vlans).get_attr("IFLA_EXT_MASK")) == (7, 2)
    assert (decoded(rtmsg, routes)["family"], decoded(rtmsg, routes)["table"]) == (10, 0)


@given(INDEXES, CIDRS, st.booleans())
def test_an_address_has_the_broadcast_address_of_its_network(index, cidr, settled):
    request = messages.new_address(index, cidr, settled=settled)
    assert (request.kind, request.flags) == (20, CREATE)
    message = decoded(ifaddrmsg, request)
    assert (message["family"], message["prefixlen"], message["index"]) == (FAMILIES[cidr.version], cidr.length, index)
    found = {name: Address.parse(text) for name, text in message["attrs"]}
    wanted = dict.fromkeys(("IFA_LOCAL", "IFA_ADDRESS"), Address.parse(str(cidr.address)))
    if cidr.version == 4 and cidr.length <= 30:
        wanted["IFA_BROADCAST"] = cidr.at(cidr.size - 1)
    assert found == wanted
    assert message["flags"] == (2 if cidr.version == 6 and settled else 0)
    gone = messages.delete_address(index, cidr)
    assert (gone.kind, gone.flags) == (21, 4)
    assert dict(decoded(ifaddrmsg, gone)["attrs"]).keys() == {"IFA_LOCAL", "IFA_ADDRESS"}


@given(INDEXES, CIDRS, st.sampled_from([0, 253, 254]), st.booleans(), st.booleans(), st.booleans())
def test_an_address_reads_as_the_library_writes_it(index, cidr, scope, tentative, duplicate, wide_flags):
    flags = tentative * 0x40 | duplicate * 0x08 | 0x80
    attrs = [("IFA_ADDRESS", str(cidr.address))] + [("IFA_FLAGS", flags)] * wide_flags
    fields = {"family": FAMILIES[cidr.version], "prefixlen": cidr.length, "index": index, "scope": scope}
    body = encoded(ifaddrmsg, attrs=attrs, flags=flags, **fields)
    assert messages.read_known_address(body) == (index, KernelAddress(cidr, scope == 0, tentative, duplicate))


def test_other_families_are_passed_over():
    assert messages.read_known_address(bytes([17, 32, 0, 0]) + bytes(12)) is None
    assert messages.read_known_address(bytes([2, 32, 0, 0, 1, 0, 0, 0])) is None
    assert messages.read_any_route(encoded(rtmsg, family=28, table=254, type=1)) is None
    assert messages.read_any_route(encoded(rtmsg, family=2, table=254, type=7)) is None


ROUTES = CIDRS.flatmap(
    lambda cidr: st.builds(
        Route,
        link=INDEXES,
        destination=st.just(cidr if cidr.length else Cidr(cidr.version, 0, 0)),
        gateway=st.sampled_from([None, Address(cidr.version, (1 << BITS[cidr.version]) - 7)]),
        priority=st.integers(0, 1 << 20),
        table=st.integers(1, 1 << 20),
        scope=st.sampled_from([0, 200, 253]),
        mtu=st.integers(0, 65535),
        advmss=st.integers(0, 65535),
    )
)


@given(ROUTES)
def test_a_route_is_added_beside_others_and_read_back(route):
    request = messages.append_route(route)
    assert (request.kind, request.flags) == (24, 0x4 | 0x400 | 0x800)
    message = decoded(rtmsg, request)
    assert (message["family"], message["proto"], message["type"]) == (FAMILIES[route.destination.version], 3, 1)
    assert message["table"] == (route.table if route.table < 256 else 252)
    assert message.get_attr("RTA_TABLE") == route.table
    assert messages.read_any_route(request.body) == route


@given(ROUTES)
def test_a_route_reads_as_the_library_writes_it(route):
    attrs: list[tuple[str, object]] = [("RTA_OIF", route.link), ("RTA_TABLE", route.table)]
    if route.destination.length:
        attrs.append(("RTA_DST", str(route.destination.address)))
    if route.gateway:
        attrs.append(("RTA_GATEWAY", str(route.gateway)))
    if route.priority:
        attrs.append(("RTA_PRIORITY", route.priority))
    metrics = [("RTAX_MTU", route.mtu)] * bool(route.mtu) + [("RTAX_ADVMSS", route.advmss)] * bool(route.advmss)
    if metrics:
        attrs.append(("RTA_METRICS", {"attrs": metrics}))
    fields = {"family": FAMILIES[route.destination.version], "dst_len": route.destination.length, "type": 1}
    assert messages.read_any_route(encoded(rtmsg, attrs=attrs, scope=route.scope, **fields)) == route


def test_the_main_table_is_meant_where_none_is_named():
    request = messages.append_route(Route(7, Cidr.parse("10.0.0.0/8")))
    assert messages.read_any_route(request.body).table == 254
    assert messages.read_any_route(encoded(rtmsg, family=2, table=100, type=1)).table == 100


@given(
    st.builds(
        Link,
        index=INDEXES,
        name=NAMES,
        kind=st.sampled_from(["veth", "bridge"]),
        up=st.booleans(),
        mtu=st.integers(68, 65535),
        mac=MACS,
        peer_index=st.just(0) | INDEXES,
        peer_namespace=st.none() | st.integers(0, 1 << 20),
        master=st.just(0) | INDEXES,
        state=st.sampled_from(OPERATIONAL_STATES),
        alias=NAMES,
        promiscuous=st.booleans(),
        hairpin=st.booleans(),
        isolated=st.booleans(),
    ),
    st.sampled_from(["bridge", "bond"]),
)
def test_a_port_reads_as_the_library_writes_it(port, port_kind):
    information = [("IFLA_INFO_KIND", port.kind), ("IFLA_INFO_SLAVE_KIND", port_kind)]
    if port_kind == "bridge":
        settings = [("IFLA_BRPORT_STATE", 3), ("IFLA_BRPORT_MODE", int(port.hairpin))]
        settings.append(("IFLA_BRPORT_ISOLATED", int(port.isolated)))
        information.append(("IFLA_INFO_SLAVE_DATA", {"attrs": settings}))
    else:
        port = port.replace(hairpin=False, isolated=False)
    attrs = [
        ("IFLA_IFNAME", port.name),
        ("IFLA_MTU", port.mtu),
        ("IFLA_ADDRESS", port.mac),
        ("IFLA_IFALIAS", port.alias),
    ]
    attrs += [("IFLA_LINK", port.peer_index)] * bool(port.peer_index)
    attrs += [("IFLA_MASTER", port.master)] * bool(port.master)
    attrs += [("IFLA_LINK_NETNSID", port.peer_namespace)] * (port.peer_namespace is not None)
    attrs += [("IFLA_LINKINFO", {"attrs": information})]
    flags = int(port.up) | 0x100 * port.promiscuous
    body = encoded(ifinfmsg, index=port.index, flags=flags, attrs=attrs)
    body += b"\x05\0\x10\0" + bytes([OPERATIONAL_STATES.index(port.state), 0, 0, 0])
    assert messages.read_port(body) == port


def test_a_state_that_later_kernels_may_have_is_unknown():
    assert messages.read_port(bytes(16) + b"\x05\0\x10\0\x63\0\0\0").state == "unknown"
