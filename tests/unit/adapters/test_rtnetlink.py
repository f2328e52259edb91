"""Requests and answers about devices, addresses and routes, with the pyroute2 library's codec as the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.nsidmsg import nsidmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

from adapters.linux.netlink import rtnetlink
from adapters.linux.netlink.messages import NetlinkRequest, attributes
from adapters.linux.netlink.on_pyroute2 import pair_fields
from adapters.linux.netlink.seam import SCOPES, KernelRoute, PairRequest
from domain.ipam.address import BITS, Address, Cidr
from domain.linux.link import Link
from worlds.pyroute2_messages import decoded, encoded

INDEXES = st.integers(1, (1 << 31) - 1)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1, max_size=15)
MACS = st.binary(min_size=6, max_size=6).map(lambda data: data.hex(":"))
ADDRESSES = st.sampled_from([4, 6]).flatmap(
    lambda version: st.builds(Address, st.just(version), st.integers(0, (1 << BITS[version]) - 1))
)
CIDRS = ADDRESSES.flatmap(
    lambda one: st.builds(Cidr, st.just(one.version), st.just(one.number), st.integers(0, BITS[one.version]))
)
FAMILIES = {4: 2, 6: 10}
CREATE = 0x1 | 0x4 | 0x200 | 0x400


def tree(shown):
    """Attributes as name → content, those in attributes too."""
    if hasattr(shown, "get") and shown.get("attrs") is not None:
        fields = {key: item for key, item in shown.items() if key not in ("attrs", "header", "value")}
        return fields | {name: tree(item) for name, item in shown["attrs"]}
    return shown


def written_by_the_library(pair: PairRequest):
    """The same request from the other transport, read back by its own decoder."""
    fields = pair_fields(pair)
    names = {"ifname": "IFLA_IFNAME", "mtu": "IFLA_MTU", "address": "IFLA_ADDRESS", "txqlen": "IFLA_TXQLEN"}
    names |= {"num_tx_queues": "IFLA_NUM_TX_QUEUES", "num_rx_queues": "IFLA_NUM_RX_QUEUES"}
    body = encoded(ifinfmsg, attrs=[(names.get(name, name), value) for name, value in fields.items()])
    return decoded(ifinfmsg, NetlinkRequest(16, 0, body))


PAIRS = st.builds(
    PairRequest,
    kind=st.sampled_from(["veth", "netkit"]),
    name=NAMES,
    peer_name=NAMES,
    peer_namespace=st.integers(0, 1 << 20),
    mtu=st.integers(0, 1 << 16),
    queues=st.integers(0, 4096),
    mac=st.just("") | MACS,
    tx_queue_length=st.none() | st.integers(0, 10000),
)


@given(PAIRS)
def test_a_pair_is_asked_for_as_the_library_does(pair):
    """DP-009 DP-010 DP-011"""
    request = rtnetlink.new_pair(pair)
    assert (request.kind, request.flags | 1) == (16, CREATE)
    theirs = tree(written_by_the_library(pair))  # first, for it is here that the library is taught netkit
    ours = tree(decoded(ifinfmsg, request))
    assert ours == theirs
    assert ours["IFLA_IFNAME"] == pair.name


def test_the_netkit_request_is_as_the_kernel_reads_it():
    """DP-011: layer 2, forwarding, no scrubbing; the peer with name, MTU and namespace, but no queues."""
    request = rtnetlink.new_pair(PairRequest("netkit", "cali1", "eth0", 9, 1450, 2, "ee:ee:ee:ee:ee:ee", 0))
    own = attributes(request.body[16:])
    assert set(own) == {1, 3, 4, 18, 31, 32}
    information = attributes(own[18])
    assert information[1] == b"netkit\0"
    data = attributes(information[2])
    assert data.keys() == {1, 3, 4, 5, 6, 7}
    assert all(data[kind] == bytes(4) for kind in (3, 4, 5, 6, 7))
    assert attributes(data[1][16:]).keys() == {3, 4, 28}


def test_a_link_is_asked_for_by_name_or_index_and_without_its_statistics():
    by_name, by_index = decoded(ifinfmsg, rtnetlink.get_link("eth0")), decoded(ifinfmsg, rtnetlink.get_link(index=7))
    assert (by_name["index"], by_name.get_attr("IFLA_IFNAME"), by_name.get_attr("IFLA_EXT_MASK")) == (0, "eth0", 8)
    assert (by_index["index"], by_index.get_attr("IFLA_IFNAME")) == (7, None)


@given(INDEXES, st.booleans(), MACS)
def test_a_link_is_changed_in_what_was_asked_and_nothing_else(index, up, mac):
    changed = decoded(ifinfmsg, rtnetlink.set_up(index, up=up))
    assert (changed["index"], changed["flags"], changed["change"], changed["attrs"]) == (index, int(up), 1, [])
    changed = decoded(ifinfmsg, rtnetlink.set_mac(index, mac))
    assert (changed["index"], changed["change"], dict(changed["attrs"])) == (index, 0, {"IFLA_ADDRESS": mac})
    gone = rtnetlink.delete_link(index)
    assert (gone.kind, decoded(ifinfmsg, gone)["index"]) == (17, index)


@pytest.mark.parametrize("mac", ["", "02:00", "02:00:00:00:00:00:00:01", "0x:00:00:00:00:01", "nonsense"])
def test_only_ethernet_addresses_can_be_set(mac):
    with pytest.raises(ValueError):  # noqa: PT011 - two kinds of text, neither of which anybody reads
        rtnetlink.set_mac(7, mac)


@given(INDEXES, CIDRS)
def test_an_address_is_added_without_a_broadcast_address(index, cidr):
    request = rtnetlink.new_address(index, cidr)
    assert (request.kind, request.flags | 1) == (20, CREATE)
    message = decoded(ifaddrmsg, request)
    assert (message["family"], message["prefixlen"], message["index"]) == (FAMILIES[cidr.version], cidr.length, index)
    assert (message["flags"], message["scope"]) == (0, 0)
    text = str(cidr.address)
    assert {name: Address.parse(content) for name, content in message["attrs"]} == dict.fromkeys(
        ("IFA_LOCAL", "IFA_ADDRESS"), Address.parse(text)
    )


@given(INDEXES, CIDRS)
def test_an_address_reads_as_the_library_writes_it(index, cidr):
    fields = {"family": FAMILIES[cidr.version], "prefixlen": cidr.length, "index": index}
    for names in (("IFA_ADDRESS",), ("IFA_ADDRESS", "IFA_LOCAL")):
        attrs = [(name, str(cidr.address)) for name in names]
        body = encoded(ifaddrmsg, attrs=[*attrs, ("IFA_LABEL", "eth0")], **fields)
        assert rtnetlink.read_address(body) == (index, cidr)


def test_the_near_end_of_a_point_to_point_address_counts():
    attrs = [("IFA_ADDRESS", "10.0.0.2"), ("IFA_LOCAL", "10.0.0.1")]
    body = encoded(ifaddrmsg, family=2, prefixlen=32, index=7, attrs=attrs)
    assert rtnetlink.read_address(body) == (7, Cidr.parse("10.0.0.1/32"))


@given(INDEXES, CIDRS, st.sampled_from((0, 253)), st.booleans())
def test_only_a_global_ipv6_address_is_waited_for(index, cidr, scope, tentative):
    fields = {"family": FAMILIES[cidr.version], "prefixlen": cidr.length, "index": index, "scope": scope}
    body = encoded(ifaddrmsg, attrs=[("IFA_ADDRESS", str(cidr.address))], flags=0x40 if tentative else 0, **fields)
    waited_for = cidr.version == 6 and scope == 0 and tentative
    assert rtnetlink.read_tentative(body) == (index if waited_for else None)


def test_addresses_of_other_families_are_passed_over():
    assert rtnetlink.read_address(bytes([17, 32, 0, 0]) + bytes(12)) is None
    assert rtnetlink.read_address(bytes([2, 32, 0, 0, 1, 0, 0, 0])) is None


@given(INDEXES, CIDRS, st.booleans(), st.sampled_from(sorted(SCOPES)))
def test_a_route_is_added_to_the_main_table(index, destination, via, scope):
    gateway = destination.address if via else None
    request = rtnetlink.new_route(index, destination, gateway, scope)
    assert (request.kind, request.flags | 1) == (24, CREATE)
    message = decoded(rtmsg, request)
    assert (message["family"], message["dst_len"]) == (FAMILIES[destination.version], destination.length)
    assert (message["table"], message["proto"], message["type"], message["scope"]) == (254, 3, 1, SCOPES[scope])
    found = dict(message["attrs"])
    assert found.pop("RTA_OIF") == index
    if via:
        assert Address.parse(found.pop("RTA_GATEWAY")) == Address.parse(str(gateway))
    if destination.length:
        assert Address.parse(found.pop("RTA_DST")) == Address.parse(str(destination.address))
    assert not found


@given(INDEXES, CIDRS, st.booleans(), st.sampled_from(sorted(SCOPES)), st.booleans())
def test_a_route_reads_as_the_library_writes_it(index, destination, via, scope, wide):
    gateway = destination.address if via else None
    attrs = [("RTA_OIF", index)] + [("RTA_DST", str(destination.address))] * bool(destination.length)
    attrs += [("RTA_GATEWAY", str(gateway))] * via + [("RTA_TABLE", 254)] * wide
    fields = {"family": FAMILIES[destination.version], "dst_len": destination.length, "scope": SCOPES[scope]}
    body = encoded(rtmsg, attrs=attrs, table=252 if wide else 254, type=1, proto=3, **fields)
    known = destination if destination.length else Cidr(destination.version, 0, 0)
    assert rtnetlink.read_route(body) == KernelRoute(index, known, gateway, scope)


@pytest.mark.parametrize("fields", [{"table": 255}, {"type": 2}, {"family": 28}, {"attrs": [("RTA_TABLE", 1000)]}])
def test_other_routes_are_passed_over(fields):
    assert rtnetlink.read_route(encoded(rtmsg, **({"family": 2, "table": 254, "type": 1} | fields))) is None


def test_dumps_name_what_they_are_about():
    addresses, routes = rtnetlink.get_addresses(7, 6), rtnetlink.get_routes(4)
    assert (addresses.kind, routes.kind, addresses.flags) == (22, 26, 0x300)
    assert (decoded(ifaddrmsg, addresses)["family"], decoded(ifaddrmsg, addresses)["index"]) == (10, 7)
    assert (decoded(rtmsg, routes)["family"], decoded(rtmsg, routes)["table"]) == (2, 254)


def test_routes_that_routers_advertise_are_asked_for_and_told_apart():
    request = rtnetlink.get_learned_routes()
    assert (decoded(rtmsg, request)["family"], decoded(rtmsg, request)["proto"]) == (10, 9)
    over = {"family": 10, "attrs": [("RTA_OIF", 7)]}
    assert rtnetlink.read_learned_over(encoded(rtmsg, proto=9, **over)) == 7
    assert rtnetlink.read_learned_over(encoded(rtmsg, proto=3, **over)) is None


LINKS = st.builds(
    Link,
    index=INDEXES,
    name=NAMES,
    kind=st.sampled_from(["", "veth", "bridge"]),
    up=st.booleans(),
    mtu=st.integers(68, 65535),
    mac=MACS,
    peer_index=st.just(0) | INDEXES,
    peer_namespace=st.none() | st.integers(0, 1 << 20),
)


@given(LINKS)
def test_a_link_reads_as_the_library_writes_it(link):
    attrs: list[tuple[str, object]] = [("IFLA_IFNAME", link.name), ("IFLA_MTU", link.mtu), ("IFLA_ADDRESS", link.mac)]
    if link.kind:
        attrs.append(("IFLA_LINKINFO", {"attrs": [("IFLA_INFO_KIND", link.kind)]}))
    if link.peer_index:
        attrs.append(("IFLA_LINK", link.peer_index))
    if link.peer_namespace is not None:
        attrs.append(("IFLA_LINK_NETNSID", link.peer_namespace))
    attrs += [("IFLA_TXQLEN", 1000), ("IFLA_QDISC", "noqueue"), ("IFLA_NUM_TX_QUEUES", 2)]
    body = encoded(ifinfmsg, index=link.index, flags=0x11042 | int(link.up), ifi_type=1, attrs=attrs)
    assert rtnetlink.read_link(body) == link


@pytest.mark.parametrize(("number", "known"), [(0, 0), (17, 17), (-1, None)])
def test_a_namespaces_id_is_read_or_missing(number, known):
    asked = attributes(rtnetlink.get_namespace_id(9).body[4:])
    assert asked == {3: (9).to_bytes(4, "little")} or asked == {3: (9).to_bytes(4, "big")}
    assert rtnetlink.read_namespace_id(encoded(nsidmsg, attrs=[("NETNSA_NSID", number & 0xFFFFFFFF)])) == known
    assert rtnetlink.read_namespace_id(bytes(4)) is None
