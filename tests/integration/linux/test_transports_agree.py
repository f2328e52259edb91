"""The lean netlink transport beside the library's: the same kernel afterwards, the same words when it refuses."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from adapters.linux.kernel import Kernel
from adapters.linux.netlink.seam import KernelError, PairRequest
from adapters.linux.netlink.transports import load_lean, load_pyroute2
from contracts.dataplane import DEFAULTS, GATEWAY_V6, HOST, V4, V6
from domain.ipam.address import Address, Cidr
from domain.linux.steps import CONTAINER
from ports.errors import PortError
from worlds.linux_world import TRANSPORTS, LinuxWorld

MAC = "02:00:00:00:00:07"
CHANCE = ("ifindex", "link_index", "link_netnsid", "link", "tentative")  # numbers of this run, and haste
SETTINGS = ("ipv4/conf/{}", "ipv6/conf/{}", "ipv4/neigh/{}", "ipv6/neigh/{}")
MORE_ROUTES = (Cidr.parse("10.96.0.0/12"), Cidr.parse("192.0.2.1/32"), Cidr.parse("fd00:96::/112"))


@pytest.fixture
def worlds(tmp_path):
    with LinuxWorld(tmp_path, "library") as library, LinuxWorld(tmp_path, "lean") as lean:
        yield {"lean": lean, "library": library}


def _without_chance(shown):
    if isinstance(shown, list):
        return [_without_chance(item) for item in shown]
    if isinstance(shown, dict):
        return {key: _without_chance(item) for key, item in shown.items() if key not in CHANCE}
    if isinstance(shown, str) and shown.startswith("fe80::") and shown != str(GATEWAY_V6):
        return "link-local"  # of the random MAC that the container's end was born with
    return shown


def _settings(world, netns, name):
    """Every kernel setting of that device."""
    folders = [f"/proc/sys/net/{folder.format(name)}" for folder in SETTINGS]
    script = f"grep -rs . {' '.join(folders)}; true"  # one file cannot be read, and not every folder is there
    if netns:
        return sorted(world.inside(netns, "sh", "-c", script).splitlines())
    found = [path for folder in folders for path in sorted(Path(folder).iterdir())]
    return [f"{path}:{path.read_text().strip()}" for path in found if path.name != "stable_secret"]


def _kernel(world, netns, host):
    """All that there is to see of a container, on both sides."""
    seen = {
        "links": world.show(netns, "link"),
        "addresses": world.show(netns, "addr"),
        "host link": world.show(HOST, "link", "show", "dev", host),
        "host addresses": world.show(HOST, "addr", "show", "dev", host),
        "neighbours": world.show(netns, "neigh", "show", "dev", "eth0", "proxy"),
        "rules": world.show(netns, "rule"),
    }
    for family in ("-4", "-6"):
        seen[f"routes {family}"] = world.show(netns, family, "route", "show", "table", "all")
        seen[f"host routes {family}"] = world.show(HOST, family, "route", "show", "table", "all", "dev", host)
    for name in ("eth0", "lo", "all", "default"):
        seen[f"settings {name}"] = _settings(world, netns, name)
    seen["forwarding"] = world.setting(netns, "ipv4/ip_forward")
    seen["host settings"] = _settings(world, HOST, host)
    return _without_chance(seen)


def _wait_for_carrier(world, netns, host):
    """The kernel tells of it a little later, and only then gives each end a link-local address and looks for doubles
    of it. When that is over the last routes are there.
    """
    for _ in range(500):
        ends = [*world.show(HOST, "addr", "show", "dev", host), world.show(netns, "addr")[-1]]
        local = [[info for info in end["addr_info"] if info["scope"] == "link"] for end in ends]
        waiting = [info for end in ends for info in end["addr_info"] if info.get("tentative")]
        if all(end["operstate"] == "UP" for end in ends) and all(local) and not waiting:
            return
        time.sleep(0.02)
    raise AssertionError("the pair has not settled after ten seconds")


@pytest.mark.parametrize(
    ("addresses", "more"),
    [
        ((V4,), {}),
        ((V6,), {}),
        ((V4, V6), {}),
        ((V4, V6), {"mtu": 1430, "num_queues": 3}),
        ((V4,), {"device_type": "netkit", "mtu": 1400, "num_queues": 2}),
        ((V4, V6), {"allow_ip_forwarding": True, "host_routes": False}),
        ((V4, Cidr.parse("10.231.7.10/32"), V6), {"routes": (*DEFAULTS, *MORE_ROUTES)}),
    ],
    ids=["v4", "v6", "dual", "mtu and queues", "netkit or its fallback", "forwarding", "several"],
)
def test_the_kernel_looks_the_same_after_a_plan(worlds, addresses, more):
    """CNI-004 CNI-005 DP-009 DP-010: links, addresses, routes of all tables and settings, on both sides."""
    host, seen = worlds["lean"].new_name(), {}
    for transport, world in worlds.items():
        netns = world.make_namespace()
        attachment = world.attachment(netns, host, *addresses, mac=MAC)
        world.connect(attachment.replace(**more))
        _wait_for_carrier(world, netns, host)
        seen[transport] = _kernel(world, netns, host) | {"warnings": world.log.shown("warning")}
        world.dataplane.disconnect(netns, "eth0", world.soon())
        assert world.see(HOST, host).link is None
    for part, shown in seen["library"].items():
        assert seen["lean"][part] == shown, part


def _leftover_pair(world, netns, host):
    world.make_pair((HOST, host), (HOST, world.new_name()))


def _leftover_of_the_container(world, netns, host):
    world.make_pair((HOST, host), (netns, "eth0"))


def _device_in_the_way(world, netns, host):
    world.make_link(netns, "eth0")


def _another_container(world, netns, host):
    world.make_pair((HOST, host), (world.make_namespace(), "eth0"))


def _route_elsewhere(world, netns, host):
    name = world.new_name()
    world.make_link(HOST, name)
    world.make_route(HOST, name, V4.address.host_cidr)


def _same_route_elsewhere_v6(world, netns, host):
    name = world.new_name()
    world.make_link(HOST, name)
    world.make_route(HOST, name, V6.address.host_cidr)


def _nothing(world, netns, host):
    pass


@pytest.mark.parametrize(
    ("before", "more"),
    [
        (_leftover_pair, {}),
        (_leftover_of_the_container, {}),
        (_device_in_the_way, {}),
        (_another_container, {}),
        (_another_container, {"replace_host_link": True}),
        (_route_elsewhere, {}),
        (_same_route_elsewhere_v6, {}),
        (_nothing, {"mac": "01:00:00:00:00:01"}),
        (_nothing, {"mac": "02:00:00:00:00:00:00:01"}),
        (_nothing, {"mtu": 70000}),
        (_nothing, {"mtu": 60}),
        (_nothing, {"num_queues": 5000}),
        (_nothing, {"ifname": "eth/0"}),
        (_nothing, {"ifname": "e" * 16}),
        (_nothing, {"ifname": "lo"}),
        (_nothing, {"host_name": "c" * 16}),
        (_nothing, {"host_name": "cali:"}),
        (_nothing, {"host_name": ".."}),
        (_nothing, {"host_name": "lo"}),
        (_nothing, {"addresses": (V4, V4)}),
        (_nothing, {"addresses": (V4, Cidr.parse("224.0.0.1/32"))}),
        (_nothing, {"addresses": (Cidr.parse("ff02::1/128"),)}),
        (_nothing, {"routes": (DEFAULTS[0], DEFAULTS[0])}),
    ],
)
def test_what_was_there_before_and_what_the_kernel_refuses_end_in_the_same_words(tmp_path, before, more):
    """G26 D05"""
    said = {}
    for transport in TRANSPORTS:
        with LinuxWorld(tmp_path, transport) as world:
            netns, host = world.make_namespace(), world.new_name()
            before(world, netns, host)
            attachment = world.attachment(netns, host, V4, V6).replace(**more)
            words = [_said(world, attachment, verb) for verb in ("examine", "connect")] + world.log.shown("warning")
            gone = world.see(netns, "eth0").link is None, world.see(HOST, host).link is None
            said[transport] = [_neutral(text, netns, host) for text in words], gone
            world.dataplane.disconnect(netns, "eth0", world.soon())
    assert said["lean"] == said["library"]


def _said(world, attachment, verb):
    netns, ifname, host = attachment.netns, attachment.ifname, attachment.host_name
    try:
        if verb == "connect":
            world.connect(attachment)
        else:
            replace = attachment.replace_host_link
            world.dataplane.examine(netns, ifname, world.soon(), host, replace_host_link=replace)
    except PortError as error:
        return str(error)
    return "done"


def _neutral(text, netns, host):
    """Without what differs from run to run: names, indexes and ids."""
    text = text.replace(netns, "NETNS").replace(host, "HOST")
    text = re.sub(r"tdp[0-9]+x[0-9]+", "OTHER", text)
    return re.sub(r"(Ifindex:|index|with id) [0-9]+", r"\1 N", text)


@pytest.fixture
def netns(worlds):
    return worlds["lean"].make_namespace()


@pytest.fixture
def both(netns):
    """One of each, for a namespace of our own, where nothing can be broken."""
    with Kernel(netns, load_lean) as lean, Kernel(netns, load_pyroute2) as library:
        yield {"lean": lean.netlink(CONTAINER), "library": library.netlink(CONTAINER)}


def test_what_there_is_reads_the_same(worlds, netns, both):
    world, lean, library = worlds["lean"], both["lean"], both["library"]
    host = world.new_name()
    world.connect(world.attachment(netns, host, V4, V6))
    world.make_link(netns, "br0")
    world.ip(netns, "addr", "add", "10.231.9.1/28", "dev", "br0")
    world.ip(netns, "addr", "add", "fd2e:9::1/70", "dev", "br0", "nodad")
    world.ip(netns, "route", "add", "10.231.9.128/25", "via", "10.231.9.2", "dev", "br0")
    world.ip(netns, "route", "add", "unreachable", "10.231.10.0/24")
    world.ip(netns, "route", "add", "10.231.11.0/24", "dev", "br0", "table", "7")
    for name in ("lo", "eth0", "br0", "absent"):
        assert lean.link(name) == library.link(name)
    for name in ("lo", "eth0", "br0"):
        index = lean.link(name).index
        assert lean.link_by_index(index) == library.link_by_index(index) == lean.link(name)
        for version in (4, 6):
            assert lean.addresses(index, version) == library.addresses(index, version)
        assert not lean.has_tentative(index)
        assert not library.has_tentative(index)
    world.ip(
        netns, "addr", "add", "fd2e:9::2/70", "dev", "br0"
    )  # examined for a second, or for as long as br0 has no port
    assert lean.has_tentative(index) == library.has_tentative(index) is True
    assert lean.link_by_index(1 << 30) is library.link_by_index(1 << 30) is None
    assert lean.addresses(1 << 30, 4) == library.addresses(1 << 30, 4) == []
    for version, least in ((4, 4), (6, 3)):
        assert lean.routes(version) == library.routes(version)
        assert len(lean.routes(version)) >= least


def test_a_namespace_without_any_route_has_none(both):
    for netlink in both.values():
        assert netlink.routes(4) == netlink.routes(6) == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda netlink: netlink.set_up(1 << 30, up=True),
        lambda netlink: netlink.set_mac(1 << 30, MAC),
        lambda netlink: netlink.set_mac(1, "02:00"),
        lambda netlink: netlink.set_mac(1, ""),
        lambda netlink: netlink.delete_link(1 << 30),
        lambda netlink: netlink.delete_link(1),
        lambda netlink: netlink.add_address(1 << 30, V4),
        lambda netlink: netlink.add_address(1, Cidr.parse("ff02::1/128")),
        lambda netlink: netlink.add_route(1 << 30, V4, None, "link"),
        lambda netlink: netlink.add_route(1, V4, Address.parse("203.0.113.77"), "universe"),
        lambda netlink: netlink.add_route(1, V6, Address.parse("2001:db8::77"), "universe"),
        lambda netlink: netlink.add_route(1, V4, None, "universe"),
        lambda netlink: netlink.create_pair(PairRequest("netkit", "tdpx0", "tdpx1", 0)),
        lambda netlink: netlink.create_pair(PairRequest("veth", "tdpx0", "tdpx1", 1 << 20)),
        lambda netlink: netlink.create_pair(PairRequest("veth", "lo", "tdpx1", 1 << 20)),
        lambda netlink: netlink.link("x" * 20),
        lambda netlink: netlink.link(""),
        lambda netlink: netlink.namespace_id(1 << 20),
    ],
)
def test_each_verb_is_refused_in_the_same_words(both, ask):
    said = {}
    for transport, netlink in both.items():
        try:
            said[transport] = ask(netlink)
        except KernelError as error:
            said[transport] = error.errno, str(error)
    assert said["lean"] == said["library"]


def test_the_kernels_explanation_is_kept(both):
    with pytest.raises(KernelError) as refused:
        both["lean"].create_pair(PairRequest("nosuchkind", "tdpx0", "tdpx1", 0))
    assert str(refused.value) == "operation not supported"
    assert refused.value.explanation == "Unknown device type"


def test_the_id_of_a_namespace_is_the_one_that_links_show(worlds, netns, both):
    world = worlds["lean"]
    other = world.make_namespace()
    with open(other) as file:
        assert both["lean"].namespace_id(file.fileno()) is both["library"].namespace_id(file.fileno()) is None
        world.make_pair((netns, "net1"), (other, "net1"))
        known = both["lean"].namespace_id(file.fileno())
        assert known == both["library"].namespace_id(file.fileno()) == both["lean"].link("net1").peer_namespace
        assert known is not None
