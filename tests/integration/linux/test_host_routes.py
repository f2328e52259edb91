"""Routes to one address each, as `ip route` lists them, in a namespace of our own."""

from __future__ import annotations

import os
import time

import pytest

from adapters.linux.namespaces import Inside, open_namespace
from adapters.linux.own_addresses import host_routes, interface_of
from domain.ipam.address import Address
from worlds.linux_world import LinuxWorld


@pytest.fixture
def world(tmp_path):
    with LinuxWorld(tmp_path) as world:
        yield world


@pytest.fixture
def netns(world):
    netns = world.make_namespace()
    world.make_link(netns, "br0")
    world.ip(netns, "addr", "add", "192.0.2.1/24", "dev", "br0")
    world.ip(netns, "addr", "add", "2001:db8::1/64", "dev", "br0", "nodad")
    world.ip(netns, "link", "set", "br0", "up")
    return netns


@pytest.fixture
def inside(netns):
    """Calls what it is given as if that namespace were the machine's."""
    descriptor = open_namespace(netns)

    def call(function, *arguments):
        with Inside(descriptor):
            return function(*arguments)

    yield call
    os.close(descriptor)


@pytest.fixture
def look(inside):
    return lambda text: inside(interface_of, Address.parse(text))


@pytest.mark.parametrize("text", ["10.9.0.7", "fd09::7"])
def test_a_route_to_one_address_names_its_interface(world, netns, look, inside, text):
    assert look(text) == ""
    world.ip(netns, "route", "add", text, "dev", "br0", "scope", "link")
    assert look(text) == "br0"
    assert inside(host_routes) == ((Address.parse(text), "br0"),)


def test_other_routes_that_lead_to_an_address_are_not_its_own(world, netns, look, inside):
    world.ip(netns, "route", "add", "10.9.0.0/24", "dev", "br0")
    world.ip(netns, "route", "add", "blackhole", "10.9.0.8/32")
    world.ip(netns, "route", "add", "10.9.0.9/32", "dev", "br0", "table", "77")
    world.ip(netns, "route", "add", "default", "via", "192.0.2.2")
    assert [look(text) for text in ("10.9.0.7", "10.9.0.8", "10.9.0.9", "8.8.8.8", "fd09::7")] == [""] * 5
    assert inside(host_routes) == ()


def test_a_route_by_way_of_a_router_counts_for_a_look_only(world, netns, look, inside):
    """The kernel refuses a second route there as well; but what is behind the router is not on this machine."""
    world.ip(netns, "route", "add", "10.9.0.7/32", "via", "192.0.2.2")
    assert look("10.9.0.7") == "br0"
    assert inside(host_routes) == ()


def test_what_a_look_costs_does_not_grow_with_the_routes(world, netns, look, inside, tmp_path):
    batch = tmp_path / "batch"
    batch.write_text("".join(f"route add 10.9.{n >> 8}.{n & 255}/32 dev br0 scope link\n" for n in range(2000)))
    world.ip(netns, "-batch", str(batch))
    assert len(inside(host_routes)) == 2000

    def seconds(function, *arguments) -> float:
        began = time.perf_counter()
        inside(function, *arguments)
        return time.perf_counter() - began

    one = min(seconds(interface_of, Address.parse("10.9.7.7")) for _ in range(20))
    assert one < min(seconds(host_routes) for _ in range(3)) / 5
    assert look("10.9.7.207") == "br0"
    assert look("10.9.7.208") == ""
