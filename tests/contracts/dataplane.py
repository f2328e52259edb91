"""What every dataplane that connects containers to this machine promises, whether over a kernel or over dicts.

A subclass brings a `world` fixture: the machine, with hooks to put things in a plugin's way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import pytest

from domain.ipam.address import Address, Cidr
from domain.workload.attachment import Attachment
from ports.clock import Clock
from ports.dataplane import Dataplane
from ports.errors import Expired, Refused

HOST = ""
HOST_MAC = "ee:ee:ee:ee:ee:ee"
V4, V6 = Cidr.parse("10.231.7.9/26"), Cidr.parse("fd2e:7::9/122")
DEFAULTS = (Cidr.parse("0.0.0.0/0"), Cidr.parse("::/0"))
ON_LINK = Cidr.parse("169.254.1.1/32")
GATEWAY = Address.parse("169.254.1.1")
GATEWAY_V6 = Address.parse("fe80::ecee:eeff:feee:eeee")


class World(ABC):
    """One machine. Whatever the hooks and the dataplane make is gone after the test."""

    clock: Clock
    dataplane: Dataplane

    @abstractmethod
    def make_namespace(self) -> str:
        """The path of a new one."""

    @abstractmethod
    def make_file(self) -> str:
        """The path of a plain file."""

    @abstractmethod
    def new_name(self) -> str:
        """A free device name for the host."""

    @abstractmethod
    def make_link(self, netns: str, name: str) -> None:
        """A device without another end, up. `netns` "" is the host."""

    @abstractmethod
    def make_pair(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        """A veth pair; each end is (netns, name)."""

    @abstractmethod
    def make_route(self, netns: str, name: str, destination: Cidr) -> None:
        """On-link over that device."""

    def attachment(self, netns: str, host_name: str, *addresses: Cidr, **more: object) -> Attachment:
        return Attachment(netns, "eth0", host_name, addresses or (V4,), DEFAULTS, **more)

    def see(self, netns: str, name: str):
        return self.dataplane.look(netns, name, self.soon())

    def soon(self):
        return self.clock.deadline(20.0)

    def connect(self, attachment: Attachment):
        return self.dataplane.connect(attachment, self.soon())


class DataplaneContract:
    @pytest.fixture
    def world(self):
        raise NotImplementedError

    def test_an_ipv4_container_gets_a_host_address_and_a_gateway_nobody_owns(self, world):
        """CNI-004 CNI-006 CNI-007 D02"""
        netns, host = world.make_namespace(), world.new_name()
        connected = world.connect(world.attachment(netns, host))
        inside, outside = world.see(netns, "eth0"), world.see(HOST, host)
        assert inside.link.up
        assert inside.link.kind == "veth"
        assert connected.host_interface == host
        assert connected.mac == inside.link.mac != HOST_MAC
        assert connected.addresses == (V4.address.host_cidr,)
        assert V4.address.host_cidr in inside.addresses
        assert {route for route in inside.routes if route[0].version == 4} == {
            (ON_LINK, None),
            (DEFAULTS[0], GATEWAY),
        }
        assert outside.link.up
        assert outside.link.mac == HOST_MAC
        assert (V4.address.host_cidr, None) in outside.routes

    def test_an_ipv6_container_is_routed_to_the_host_ends_link_local_address(self, world):
        netns, host = world.make_namespace(), world.new_name()
        world.connect(world.attachment(netns, host, V6))
        inside = world.see(netns, "eth0")
        assert V6.address.host_cidr in inside.addresses
        assert (DEFAULTS[1], GATEWAY_V6) in inside.routes
        assert not [route for route in inside.routes if route[0].version == 4]
        assert (V6.address.host_cidr, None) in world.see(HOST, host).routes

    def test_a_dual_stack_container_gets_both(self, world):
        netns, host = world.make_namespace(), world.new_name()
        world.connect(world.attachment(netns, host, V4, V6))
        inside, outside = world.see(netns, "eth0"), world.see(HOST, host)
        assert {V4.address.host_cidr, V6.address.host_cidr} <= set(inside.addresses)
        assert {(DEFAULTS[0], GATEWAY), (DEFAULTS[1], GATEWAY_V6)} <= set(inside.routes)
        assert {(V4.address.host_cidr, None), (V6.address.host_cidr, None)} <= set(outside.routes)

    def test_host_routes_can_be_left_to_others(self, world):
        netns, host = world.make_namespace(), world.new_name()
        world.connect(world.attachment(netns, host, V4, host_routes=False))
        assert (V4.address.host_cidr, None) not in world.see(HOST, host).routes

    @pytest.mark.parametrize("device_type", ["", "veth"])
    def test_a_veth_pair_has_the_mtu_on_both_ends(self, world, device_type):
        """DP-009 DP-010"""
        netns, host = world.make_namespace(), world.new_name()
        world.connect(world.attachment(netns, host, mtu=1450, device_type=device_type))
        for seen in (world.see(netns, "eth0"), world.see(HOST, host)):
            assert seen.link.kind == "veth"
            assert seen.link.mtu == 1450

    def test_without_an_mtu_the_kernels_default_stays(self, world):
        """CNI-004"""
        netns, host = world.make_namespace(), world.new_name()
        world.connect(world.attachment(netns, host))
        assert world.see(netns, "eth0").link.mtu == world.see(HOST, host).link.mtu == 1500

    def test_a_mac_that_was_asked_for_is_set_and_reported(self, world):
        """D02"""
        netns, host = world.make_namespace(), world.new_name()
        connected = world.connect(world.attachment(netns, host, mac="1C-0C-0A-C0-FF-EE"))
        assert connected.mac == world.see(netns, "eth0").link.mac == "1c:0c:0a:c0:ff:ee"
        assert world.see(HOST, host).link.mac == HOST_MAC

    @pytest.mark.parametrize("mac", ["", "nonsense", "1c:0c:0a:c0:ff"])
    def test_a_mac_that_cannot_be_read_is_refused_before_anything_is_made(self, world, mac):
        netns, host = world.make_namespace(), world.new_name()
        with pytest.raises(Refused) as refused:
            world.connect(world.attachment(netns, host, mac=mac))
        shown = f"address {mac}: invalid MAC address" if mac else "invalid MAC address"
        text = f"failed to parse MAC address {mac} provided via cni.projectcalico.org/hwAddr: {shown}"
        assert str(refused.value) == text
        assert world.see(HOST, host).link is None

    @pytest.mark.parametrize("leftover", ["no other end", "other end on the host", "other end is the container's"])
    def test_a_leftover_host_device_is_replaced(self, world, leftover):
        """CNI-009 D05"""
        netns, host, peer = world.make_namespace(), world.new_name(), world.new_name()
        if leftover == "no other end":
            world.make_link(HOST, host)
        elif leftover == "other end on the host":
            world.make_pair((HOST, host), (HOST, peer))
        else:
            world.make_pair((HOST, host), (netns, "eth0"))
        world.dataplane.examine(netns, "eth0", world.soon(), host)
        world.connect(world.attachment(netns, host))
        assert world.see(HOST, host).link.mac == HOST_MAC
        assert world.see(HOST, peer).link is None
        assert V4.address.host_cidr in world.see(netns, "eth0").addresses
        world.dataplane.disconnect(netns, "eth0", world.soon())
        assert world.see(HOST, host).link is None

    @pytest.mark.parametrize("name", ["eth0", "other0"])
    def test_a_host_device_that_a_live_container_uses_is_refused_and_kept(self, world, name):
        """D05"""
        netns, host, neighbour = world.make_namespace(), world.new_name(), world.make_namespace()
        world.make_pair((HOST, host), (neighbour, name))
        before = world.see(HOST, host)
        with pytest.raises(Refused, match=f'device "{host}" is in use.*is not "eth0" of this container'):
            world.dataplane.examine(netns, "eth0", world.soon(), host)
        with pytest.raises(Refused, match=f'failed to delete old hostVeth {host}: device "{host}" is in use'):
            world.connect(world.attachment(netns, host))
        assert world.see(HOST, host) == before
        assert world.see(neighbour, name).link is not None
        assert world.see(netns, "eth0").link is None

    def test_a_host_device_that_another_interface_of_the_container_uses_is_refused_and_kept(self, world):
        """D05 D06"""
        netns, host = world.make_namespace(), world.new_name()
        world.make_pair((HOST, host), (netns, "net1"))
        with pytest.raises(Refused, match=f'device "{host}" is in use'):
            world.dataplane.examine(netns, "eth0", world.soon(), host)
        assert world.see(netns, "net1").link is not None

    def test_a_live_containers_host_device_is_replaced_when_that_is_asked_for(self, world):
        """R01: the sandbox of a restarted pod takes the name over while the old one still lives."""
        netns, host, neighbour = world.make_namespace(), world.new_name(), world.make_namespace()
        world.make_pair((HOST, host), (neighbour, "eth0"))
        world.dataplane.examine(netns, "eth0", world.soon(), host, replace_host_link=True)
        world.connect(world.attachment(netns, host, replace_host_link=True))
        assert world.see(neighbour, "eth0").link is None
        assert V4.address.host_cidr in world.see(netns, "eth0").addresses

    def test_a_container_that_has_such_a_device_already_is_refused_and_kept(self, world):
        """D05 L01"""
        netns, host = world.make_namespace(), world.new_name()
        world.make_link(netns, "eth0")
        before = world.see(netns, "eth0")
        for known_host in (host, ""):
            with pytest.raises(Refused, match=f'device "eth0" in network namespace "{netns}": file exists'):
                world.dataplane.examine(netns, "eth0", world.soon(), known_host)
        with pytest.raises(Refused, match="file exists"):
            world.connect(world.attachment(netns, host))
        assert world.see(netns, "eth0") == before
        assert world.see(HOST, host).link is None

    def test_a_device_that_belongs_to_another_host_device_is_not_taken_for_a_leftover(self, world):
        """D05: device indexes of different namespaces can be equal, so they alone prove nothing."""
        netns, host, other = world.make_namespace(), world.new_name(), world.new_name()
        world.make_link(HOST, host)
        world.make_pair((HOST, other), (netns, "eth0"))
        with pytest.raises(Refused, match="file exists"):
            world.dataplane.examine(netns, "eth0", world.soon(), host)

    def test_a_fresh_namespace_passes_the_examination(self, world):
        netns = world.make_namespace()
        world.dataplane.examine(netns, "eth0", world.soon(), world.new_name())
        world.dataplane.examine(netns, "eth0", world.soon())
        assert world.see(netns, "eth0").link is None

    @pytest.mark.parametrize("verb", ["examine", "connect", "look"])
    def test_a_missing_namespace_is_refused_and_not_made(self, world, verb):
        """L01"""
        netns, host = world.make_namespace() + "-absent", world.new_name()
        for _ in range(2):
            with pytest.raises(Refused) as refused:
                self._ask(world, verb, netns, host)
            assert str(refused.value) == f'failed to Statfs "{netns}": no such file or directory'
        assert world.see(HOST, host).link is None

    @pytest.mark.parametrize("verb", ["examine", "connect", "look"])
    def test_a_plain_file_is_refused(self, world, verb):
        path, host = world.make_file(), world.new_name()
        with pytest.raises(Refused) as refused:
            self._ask(world, verb, path, host)
        text, _, magic = str(refused.value).rpartition(": ")
        assert text == f'unknown FS magic on "{path}"'
        assert int(magic, 16) > 0
        assert world.see(HOST, host).link is None

    def _ask(self, world, verb, netns, host, deadline=None):
        ask = {
            "examine": lambda until: world.dataplane.examine(netns, "eth0", until, host),
            "connect": lambda until: world.dataplane.connect(world.attachment(netns, host), until),
            "look": lambda until: world.dataplane.look(netns, "eth0", until),
            "disconnect": lambda until: world.dataplane.disconnect(netns, "eth0", until),
            "begin_disconnect": lambda until: world.dataplane.begin_disconnect(netns, "eth0", until),
        }
        ask[verb](deadline or world.soon())

    def test_a_failure_at_the_last_step_takes_the_pair_away_again(self, world):
        """G26"""
        netns, host, neighbour = world.make_namespace(), world.new_name(), world.new_name()
        world.make_link(HOST, neighbour)
        world.make_route(HOST, neighbour, V4.address.host_cidr)
        with pytest.raises(Refused) as refused:
            world.connect(world.attachment(netns, host))
        text = str(refused.value)
        assert text.startswith(f"error adding host side routes for interface: {host}, error: route (Ifindex: ")
        assert f", Dst: 10.231.7.9/32, Scope: link) already exists for an interface other than '{host}': " in text
        assert text.endswith(f", Dst: 10.231.7.9/32, Scope: link, Iface: {neighbour})")
        assert world.see(HOST, host).link is None
        assert world.see(netns, "eth0").link is None
        assert world.see(HOST, neighbour).link is not None

    def test_after_a_failure_the_same_namespace_can_be_connected_under_another_name(self, world):
        """G26"""
        netns, host, neighbour = world.make_namespace(), world.new_name(), world.new_name()
        world.make_link(HOST, neighbour)
        world.make_route(HOST, neighbour, V4.address.host_cidr)
        with pytest.raises(Refused):
            world.connect(world.attachment(netns, host))
        other = world.new_name()
        world.connect(world.attachment(netns, other, V6))
        assert V6.address.host_cidr in world.see(netns, "eth0").addresses

    def test_connecting_twice_makes_the_pair_anew(self, world):
        netns, host = world.make_namespace(), world.new_name()
        world.connect(world.attachment(netns, host))
        second = world.connect(world.attachment(netns, host, V4, V6))
        assert world.see(netns, "eth0").link.mac == second.mac
        assert V6.address.host_cidr in world.see(netns, "eth0").addresses

    def test_disconnecting_removes_both_ends_and_nothing_else(self, world):
        """CNI-008"""
        netns, host, other = world.make_namespace(), world.new_name(), world.new_name()
        world.connect(world.attachment(netns, host))
        world.make_pair((HOST, other), (netns, "net1"))
        world.dataplane.disconnect(netns, "eth0", world.soon())
        assert world.see(netns, "eth0").link is None
        assert world.see(HOST, host).link is None
        assert world.see(netns, "net1").link is not None
        assert world.see(HOST, other).link is not None

    def test_disconnecting_twice_is_fine(self, world):
        netns, host = world.make_namespace(), world.new_name()
        world.connect(world.attachment(netns, host))
        for _ in range(2):
            world.dataplane.disconnect(netns, "eth0", world.soon())
            world.dataplane.begin_disconnect(netns, "eth0", world.soon())(world.soon())
        assert world.see(netns, "eth0").link is None

    def test_a_disconnection_that_has_begun_shows_neither_end_and_no_route(self, world):
        """CNI-008"""
        netns, host, other = world.make_namespace(), world.new_name(), world.new_name()
        world.connect(world.attachment(netns, host, V4, V6))
        world.make_pair((HOST, other), (netns, "net1"))
        wait_for_rest = world.dataplane.begin_disconnect(netns, "eth0", world.soon())
        assert world.see(netns, "eth0").link is None
        assert world.see(HOST, host).link is None
        next_host = world.new_name()  # whose routes the kernel would refuse if the former ones were there
        world.connect(world.attachment(world.make_namespace(), next_host, V4, V6))
        assert (V4.address.host_cidr, None) in world.see(HOST, next_host).routes
        wait_for_rest(world.soon())
        assert world.see(netns, "net1").link is not None
        assert world.see(HOST, other).link is not None

    def test_there_is_nothing_to_disconnect_without_a_namespace(self, world):
        """K01"""
        for netns in ("", world.make_namespace() + "-absent", world.make_file()):
            world.dataplane.disconnect(netns, "eth0", world.soon())
            world.dataplane.begin_disconnect(netns, "eth0", world.soon())(world.soon())

    def test_the_loopback_device_was_never_ours(self, world):
        """CNI_IFNAME=lo: no ADD can have made it, so nothing of it is left."""
        netns = world.make_namespace()
        world.dataplane.disconnect(netns, "lo", world.soon())
        world.dataplane.begin_disconnect(netns, "lo", world.soon())(world.soon())
        assert world.see(netns, "lo").link is not None

    def test_a_missing_device_is_seen_as_missing(self, world):
        seen = world.see(HOST, world.new_name())
        assert (seen.link, seen.addresses, seen.routes) == (None, (), ())

    @pytest.mark.parametrize("verb", ["examine", "connect", "look", "disconnect", "begin_disconnect"])
    def test_nothing_is_begun_past_the_deadline(self, world, verb):
        netns, host = world.make_namespace(), world.new_name()
        past = world.clock.deadline(0.0)
        with pytest.raises(Expired, match=netns):
            self._ask(world, verb, netns, host, past)
        assert world.see(HOST, host).link is None
