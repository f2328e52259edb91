"""What the bridge plugin asks of the kernel, by both netlink transports: the same effects, answers and refusals."""

from __future__ import annotations

import time

import pytest

from adapters.linux.kernel import Kernel
from adapters.linux.netlink.seam import KernelError, PairRequest, unsupported
from adapters.linux.netlink.transports import load_lean_bridge, load_pyroute2_bridge
from domain.ipam.address import Address, Cidr
from domain.linux.link import PortVlan, Route
from domain.linux.steps import CONTAINER
from worlds.linux_world import LinuxWorld

TRANSPORTS = {"lean": load_lean_bridge, "library": load_pyroute2_bridge}
CHANCE = (
    "ifindex",
    "link_index",
    "link_netnsid",
    "link",
    "address",
    "brport_state",
    "bridge_id",
    "root_id",
    "tentative",
)
LAN, LAN_V6 = Cidr.parse("10.231.7.1/24"), Cidr.parse("fd2e:7::1/64")


@pytest.fixture
def world(tmp_path):
    with LinuxWorld(tmp_path) as world:
        yield world


def _without_chance(shown):
    if isinstance(shown, list):
        return [_without_chance(item) for item in shown]
    if isinstance(shown, dict):
        kept = {key: item for key, item in shown.items() if key not in CHANCE and "timer" not in key}
        return {key: _without_chance(item) for key, item in kept.items()}
    if isinstance(shown, str) and shown.startswith("fe80::"):
        return "link-local"
    return shown


def _bridge_with_a_port(netlink, elsewhere):
    netlink.create_bridge("br0", 1400, filters_vlans=False)
    bridge = netlink.port("br0").index
    netlink.create_pair(PairRequest("veth", "port0", "eth0", elsewhere, 1400))
    port = netlink.port("port0").index
    netlink.enslave(port, bridge)
    return bridge, port


def _plan(netlink, elsewhere):
    """One of each verb, but for VLANs."""
    bridge, port = _bridge_with_a_port(netlink, elsewhere)
    netlink.create_bridge("br1", 0, filters_vlans=False)
    netlink.set_promiscuous(bridge)
    netlink.set_alias(port, "container 7 · eth0")
    netlink.set_up(bridge, up=True)
    netlink.set_up(port, up=True)
    netlink.set_port(port, hairpin=True, isolated=True)
    for address in (LAN, LAN_V6, Cidr.parse("10.231.8.1/31"), Cidr.parse("10.231.9.1/32"), Cidr.parse("10.0.0.1/8")):
        netlink.assign_address(bridge, address, settled=True)
    netlink.assign_address(bridge, Cidr.parse("fd2e:8::1/64"), settled=False)
    netlink.remove_address(bridge, Cidr.parse("10.0.0.1/8"))
    gateway, gateway_v6 = Address.parse("10.231.7.254"), Address.parse("fd2e:7::254")
    for route in (
        Route(bridge, Cidr.parse("0.0.0.0/0"), gateway),
        Route(bridge, Cidr.parse("::/0"), gateway_v6, priority=77),
        Route(bridge, Cidr.parse("10.96.0.0/12"), gateway, priority=5, table=100, mtu=1300, advmss=1200),
        Route(bridge, Cidr.parse("10.96.0.0/12"), gateway, priority=6),
        Route(bridge, Cidr.parse("10.97.0.0/16"), scope=253, table=5000),
        Route(bridge, Cidr.parse("fd00:96::/112"), gateway_v6, table=5000, mtu=1290),
    ):
        netlink.append_route(route)
    return bridge, port


def _kernel(world, netns):
    seen = {"links": world.show(netns, "link"), "addresses": world.show(netns, "addr")}
    for family in ("-4", "-6"):
        seen[f"routes {family}"] = world.show(netns, family, "route", "show", "table", "all")
    return _without_chance(seen)


def _quick_namespace(world):
    """One in which addresses can be used at once, so that nothing that a test sees depends on haste."""
    netns = world.make_namespace()
    for scope in ("all", "default"):
        world.inside(netns, "sh", "-c", f"echo 0 > /proc/sys/net/ipv6/conf/{scope}/accept_dad")
    return netns


def _wait_for_carrier(world, other, netlink):
    """Set the container's end up, and wait until the kernel has told the bridge."""
    world.ip(other, "link", "set", "eth0", "up")
    for _ in range(500):
        if netlink.port("port0").state == netlink.port("br0").state == "up":
            return
        time.sleep(0.01)
    raise AssertionError("the bridge is not up after five seconds")


def test_the_kernel_looks_the_same_after_one_of_each_verb(world):
    seen = {}
    for transport, load in TRANSPORTS.items():
        netns, other = _quick_namespace(world), world.make_namespace()
        with Kernel(netns, load) as kernel, open(other) as elsewhere:
            _plan(kernel.netlink(CONTAINER), elsewhere.fileno())
            _wait_for_carrier(world, other, kernel.netlink(CONTAINER))
            seen[transport] = _kernel(world, netns)
    for part, shown in seen["library"].items():
        assert seen["lean"][part] == shown, part
    (port,) = [link for link in seen["lean"]["links"] if link["ifname"] == "port0"]
    assert port["ifalias"] == "container 7 · eth0"
    assert port["linkinfo"]["info_slave_data"]["hairpin"]


def test_a_port_is_a_member_of_the_same_vlans(world):
    seen = {}
    for transport, load in TRANSPORTS.items():
        netns = world.make_namespace()
        with Kernel(netns, load) as kernel, open(world.make_namespace()) as elsewhere:
            netlink = kernel.netlink(CONTAINER)
            try:
                netlink.create_bridge("br1", 0, filters_vlans=True)
            except KernelError as error:
                if unsupported(error):
                    pytest.skip("NOT RUN: VLANs of ports need a kernel with CONFIG_BRIDGE_VLAN_FILTERING")
                raise
            bridge, port = netlink.port("br1").index, _bridge_with_a_port(netlink, elsewhere.fileno())[1]
            netlink.enslave(port, bridge)
            netlink.add_vlans(port, [PortVlan(9, pvid=True, untagged=True), PortVlan(20), PortVlan(21, untagged=True)])
            netlink.add_vlans(port, [PortVlan(20, untagged=True)])
            netlink.remove_vlans(port, [1, 21])
            seen[transport] = world.inside(netns, "bridge", "-d", "vlan", "show"), netlink.port_vlans(port)
    assert seen["lean"] == seen["library"]
    assert seen["lean"][1] == [PortVlan(9, pvid=True, untagged=True), PortVlan(20, untagged=True)]


@pytest.fixture
def netns(world):
    return _quick_namespace(world)


@pytest.fixture
def other(world):
    return world.make_namespace()


@pytest.fixture
def elsewhere(other):
    with open(other) as file:
        yield file.fileno()


@pytest.fixture
def both(netns):
    with Kernel(netns, load_lean_bridge) as lean, Kernel(netns, load_pyroute2_bridge) as library:
        yield lean.netlink(CONTAINER), library.netlink(CONTAINER)


def test_what_there_is_reads_the_same(world, other, both, elsewhere):
    lean, library = both
    bridge, port = _plan(lean, elsewhere)
    _wait_for_carrier(world, other, lean)
    for name in ("lo", "br0", "br1", "port0", "absent"):
        assert lean.port(name) == library.port(name), name
    assert lean.ports() == library.ports() != []
    for index in (1, bridge, port, 1 << 30):
        assert lean.port_vlans(index) == library.port_vlans(index)
        for version in (4, 6):
            assert lean.known_addresses(index, version) == library.known_addresses(index, version)
    for version in (4, 6):
        assert lean.known_routes(version) == library.known_routes(version) != []
    seen = lean.port("port0")
    assert (seen.master, seen.hairpin, seen.isolated, seen.alias) == (bridge, True, True, "container 7 · eth0")
    assert lean.port("br0").promiscuous


@pytest.mark.parametrize(
    "ask",
    [
        lambda netlink, bridge, port: netlink.create_bridge("br0", 0, filters_vlans=False),
        lambda netlink, bridge, port: netlink.create_bridge("b" * 16, 0, filters_vlans=False),
        lambda netlink, bridge, port: netlink.create_bridge("br9", 20, filters_vlans=True),
        lambda netlink, bridge, port: netlink.create_bridge("br/9", 0, filters_vlans=True),
        lambda netlink, bridge, port: netlink.enslave(port, 1),
        lambda netlink, bridge, port: netlink.enslave(bridge, bridge),
        lambda netlink, bridge, port: netlink.enslave(1 << 30, bridge),
        lambda netlink, bridge, port: netlink.set_alias(port, "a" * 256),
        lambda netlink, bridge, port: netlink.set_promiscuous(1 << 30),
        lambda netlink, bridge, port: netlink.set_port(1, hairpin=True, isolated=False),
        lambda netlink, bridge, port: netlink.add_vlans(1, [PortVlan(100)]),
        lambda netlink, bridge, port: netlink.add_vlans(port, []),
        lambda netlink, bridge, port: netlink.add_vlans(port, [PortVlan(300)]),
        lambda netlink, bridge, port: netlink.remove_vlans(port, [300]),
        lambda netlink, bridge, port: netlink.remove_vlans(port, []),
        lambda netlink, bridge, port: netlink.assign_address(1 << 30, LAN, settled=False),
        lambda netlink, bridge, port: netlink.remove_address(bridge, LAN),
        lambda netlink, bridge, port: netlink.remove_address(bridge, LAN_V6),
        lambda netlink, bridge, port: netlink.append_route(
            Route(bridge, Cidr.parse("0.0.0.0/0"), Address.parse("203.0.113.1"))
        ),
        lambda netlink, bridge, port: netlink.append_route(Route(1 << 30, Cidr.parse("10.0.0.0/8"))),
    ],
)
def test_each_verb_is_refused_in_the_same_words(both, elsewhere, ask):
    bridge, port = _bridge_with_a_port(both[0], elsewhere)
    said = []
    for netlink in both:
        try:
            said.append(ask(netlink, bridge, port))
        except KernelError as error:
            said.append((error.errno, str(error)))
    assert said[0] == said[1]


@pytest.mark.parametrize("address", [LAN, LAN_V6])
def test_the_very_same_thing_twice_is_refused_in_the_same_words(both, elsewhere, address):
    bridge, _port = _bridge_with_a_port(both[0], elsewhere)
    both[0].set_up(bridge, up=True)
    route = Route(bridge, Cidr.parse("10.0.0.0/8" if address is LAN else "fd00::/16"))
    both[0].assign_address(bridge, address, settled=True)
    both[0].append_route(route)
    for netlink in both:
        with pytest.raises(KernelError, match="file exists"):
            netlink.assign_address(bridge, address, settled=True)
        with pytest.raises(KernelError, match="file exists"):
            netlink.append_route(route)
