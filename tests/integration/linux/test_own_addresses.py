"""The machine's own addresses, as `ip` lists them, in a namespace of our own."""

from __future__ import annotations

import os

import pytest

from adapters.linux.namespaces import Inside, open_namespace
from adapters.linux.own_addresses import own_addresses
from domain.ipam.address import Address
from worlds.linux_world import LinuxWorld


@pytest.fixture
def world(tmp_path):
    with LinuxWorld(tmp_path) as world:
        yield world


@pytest.fixture
def netns(world):
    return world.make_namespace()


@pytest.fixture
def ask(netns):
    """What the machine's own addresses would be, were that namespace the machine's."""
    descriptor = open_namespace(netns)

    def inside():
        with Inside(descriptor):
            return own_addresses()

    yield inside
    os.close(descriptor)


def test_a_machine_without_addresses_has_none(ask):
    assert ask() == ()


def test_addresses_of_both_versions_are_listed_as_ip_does(world, netns, ask):
    world.ip(netns, "link", "set", "lo", "up")
    world.make_link(netns, "br0")
    for address in ("10.9.0.1/24", "10.9.0.2/24", "fd09::1/64"):
        world.ip(netns, "addr", "add", address, "dev", "br0")
    listed = [entry["local"] for link in world.show(netns, "addr") for entry in link["addr_info"]]
    assert {"127.0.0.1", "::1", "10.9.0.1", "10.9.0.2", "fd09::1"} <= set(listed)
    assert sorted(map(str, ask())) == sorted(listed)


def test_of_a_point_to_point_device_the_near_address_counts(world, netns, ask):
    world.make_link(netns, "br0")
    world.ip(netns, "addr", "add", "10.9.0.1", "peer", "10.9.0.2/32", "dev", "br0")
    assert Address.parse("10.9.0.1") in ask()
    assert Address.parse("10.9.0.2") not in ask()


def test_more_addresses_than_fit_into_a_datagram_are_all_listed(world, netns, ask, tmp_path):
    world.make_link(netns, "br0")
    batch = tmp_path / "batch"
    batch.write_text("".join(f"addr add 10.9.{number >> 8}.{number & 255}/16 dev br0\n" for number in range(1, 2000)))
    world.ip(netns, "-batch", str(batch))
    assert len([address for address in ask() if address.version == 4]) == 1999
