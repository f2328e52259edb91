"""How the bridge plugin's steps are carried out when the kernel is slow, refuses, or cannot be had here: VLANs.

Over a scripted netlink, without root.
"""

from __future__ import annotations

import os
from errno import EEXIST, EINVAL, EOPNOTSUPP, EPERM

import pytest

from adapters.linux.interpreter import Interpreter
from adapters.linux.netlink.bridge_seam import BridgeNetlink, KernelAddress
from adapters.linux.netlink.seam import KernelError
from adapters.memory.clock import MemoryClock
from adapters.memory.log import RecordingLog
from domain.ipam.address import Cidr
from domain.linux.bridge_steps import (
    AwaitPort,
    AwaitSettled,
    Enslave,
    EnsureAddress,
    EnsureBridge,
    EnsureSysctl,
    EnsureVlanDevice,
    JoinVlans,
    MakePair,
    PinMac,
)
from domain.linux.link import Link, PortVlan
from domain.linux.steps import Device, Step
from ports.errors import Expired, Refused

VETH, BRIDGE = Device("host", "veth1"), Device("host", "br0")
V6 = Cidr.parse("fd00::2/64")


class Scripted(BridgeNetlink):
    """Devices by name, and the VLANs of each port; `refuses` maps a verb to the errno that it answers, once or more."""

    def __init__(self) -> None:
        self.known: dict[str, Link] = {}
        self.vlans: dict[int, list[PortVlan]] = {}
        self.refuses: dict[str, int] = {}
        self.calls: list[tuple] = []
        self.answers: list[list[KernelAddress]] = []
        self.states: list[str] = []

    def put(self, name: str, kind: str = "veth", **more) -> None:
        index = len(self.known) + 1
        self.known[name] = Link(index, name, kind, False, 1500, f"02:00:00:00:00:{index:02x}", **more)

    def _called(self, verb: str, *arguments: object) -> None:
        self.calls.append((verb, *arguments))
        if verb in self.refuses:
            raise KernelError(self.refuses[verb])

    def link(self, name):
        return self.known.get(name)

    def link_by_index(self, index):
        raise NotImplementedError

    def create_pair(self, request):
        self._called("create_pair", request.name, request.mtu)
        self.put(request.name)
        self.put(request.peer_name)

    def set_up(self, index, *, up):
        self._called("set_up", index)

    def set_mac(self, index, mac):
        self._called("set_mac", index, mac)

    def delete_link(self, index):
        raise NotImplementedError

    def add_address(self, index, address):
        raise NotImplementedError

    def addresses(self, index, version):
        raise NotImplementedError

    def add_route(self, index, destination, gateway, scope):
        raise NotImplementedError

    def routes(self, version):
        raise NotImplementedError

    def learned_over(self):
        raise NotImplementedError

    def namespace_id(self, namespace):
        raise NotImplementedError

    def close(self):
        raise NotImplementedError

    def port(self, name):
        found = self.known.get(name)
        return found.replace(state=self.states.pop(0)) if found is not None and self.states else found

    def ports(self):
        raise NotImplementedError

    def create_bridge(self, name, mtu, *, filters_vlans):
        self._called("create_bridge", name, mtu, filters_vlans)
        self.put(name, "bridge")

    def set_promiscuous(self, index):
        self._called("set_promiscuous", index)

    def set_alias(self, index, alias):
        self._called("set_alias", index, alias)

    def enslave(self, index, bridge):
        self._called("enslave", index, bridge)
        self.vlans[index] = [PortVlan(1, pvid=True, untagged=True)]

    def set_port(self, index, *, hairpin, isolated):
        self._called("set_port", index, hairpin, isolated)

    def port_vlans(self, index):
        return self.vlans.get(index, [])

    def add_vlans(self, index, vlans):
        self._called("add_vlans", index, vlans)

    def remove_vlans(self, index, numbers):
        self._called("remove_vlans", index, numbers)

    def assign_address(self, index, address, *, settled):
        self._called("assign_address", index, address)

    def remove_address(self, index, address):
        self._called("remove_address", index, address)

    def has_tentative(self, index):
        raise NotImplementedError

    def known_addresses(self, index, version):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0] if self.answers else []

    def append_route(self, route):
        raise NotImplementedError

    def known_routes(self, version):
        raise NotImplementedError


class FakeKernel:
    def __init__(self, netlink: Scripted) -> None:
        self._netlink = netlink
        self.settings = {"net/ipv4/ip_forward": "0"}
        self.read_only = False

    def netlink(self, _side: str) -> Scripted:
        return self._netlink

    def read_sysctl(self, _side: str, path: str) -> str:
        return self.settings[path]

    def write_sysctl(self, _side: str, path: str, value: str) -> None:
        if self.read_only:
            raise KernelError(EPERM, f"open /proc/sys/{path}: read-only file system")
        self.settings[path] = value


class Bench:
    def __init__(self) -> None:
        self.netlink, self.clock, self.log = Scripted(), MemoryClock(), RecordingLog()
        self.kernel = FakeKernel(self.netlink)
        self.netlink.put("br0", "bridge")
        self.netlink.put("veth1")

    def run(self, *actions, seconds: float = 60) -> None:
        interpreter = Interpreter(self.kernel, self.clock, self.log, self.clock.deadline(seconds))
        interpreter.run([Step(action, "cannot: ") for action in actions])

    def refused(self, *actions) -> str:
        with pytest.raises(Refused) as refused:
            self.run(*actions)
        return str(refused.value)

    def made(self, *verbs: str) -> list[tuple]:
        return [call for call in self.netlink.calls if call[0] in verbs]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_bt_07_only_its_own_vlan(bench: Bench) -> None:
    bench.run(Enslave(VETH, "br0"), JoinVlans(VETH, 100, (), only=True))
    assert bench.made("remove_vlans", "add_vlans") == [
        ("remove_vlans", 2, [1]),
        ("add_vlans", 2, [PortVlan(100, pvid=True, untagged=True)]),
    ]


def test_bt_10_the_default_vlan_is_kept_where_that_is_asked_for(bench: Bench) -> None:
    bench.run(Enslave(VETH, "br0"), JoinVlans(VETH, 100, (), only=False))
    assert bench.made("remove_vlans") == []


def test_bt_08_bt_09_tagged_vlans_come_before_the_own_one(bench: Bench) -> None:
    bench.run(Enslave(VETH, "br0"), JoinVlans(VETH, 1, (1, 101, 200), only=True))
    assert bench.made("remove_vlans", "add_vlans") == [
        ("remove_vlans", 2, []),
        ("add_vlans", 2, [PortVlan(101), PortVlan(200), PortVlan(1, pvid=True, untagged=True)]),
    ]


def test_a_kernel_without_vlan_filtering_says_so(bench: Bench) -> None:
    bench.netlink.refuses["add_vlans"] = EOPNOTSUPP
    said = bench.refused(JoinVlans(VETH, 100, (), only=False))
    assert said == "cannot: the kernel has no VLAN filtering in bridges: operation not supported"
    bench.netlink.refuses["create_bridge"] = EOPNOTSUPP
    said = 'cannot: could not add "br1": operation not supported'
    assert bench.refused(EnsureBridge("br1", 0, True, False)) == f"{said} (the kernel has no VLAN filtering in bridges)"
    assert bench.refused(EnsureBridge("br1", 0, False, False)) == said
    bench.netlink.refuses["add_vlans"] = EINVAL
    assert bench.refused(JoinVlans(VETH, 100, (), only=False)) == "cannot: invalid argument"


def test_bt_11_a_device_for_the_vlans_gateway_is_made_once(bench: Bench) -> None:
    for _ in range(2):
        bench.run(EnsureVlanDevice("br0.100", "br0", 100, only=True))
    assert bench.made("create_pair") == [("create_pair", "br0.100", 1500)]
    assert bench.made("enslave") == [("enslave", 4, 1)]
    assert bench.made("add_vlans") == [("add_vlans", 4, [PortVlan(100, pvid=True, untagged=True)])]
    assert bench.made("set_up") == [("set_up", 4), ("set_up", 3), ("set_up", 3)]


def test_no_descriptor_is_left_when_that_device_cannot_be_made(bench: Bench) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    bench.netlink.refuses["create_pair"] = EPERM
    assert bench.refused(EnsureVlanDevice("br0.100", "br0", 100, only=True)) == "cannot: operation not permitted"
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_bridge_that_another_call_makes_at_the_same_time_is_fine(bench: Bench) -> None:
    bench.netlink.refuses["create_bridge"] = EEXIST
    bench.run(EnsureBridge("br0", 1500, False, True))
    assert bench.made("set_promiscuous") == [("set_promiscuous", 1)]
    bench.netlink.refuses["create_bridge"] = EPERM
    assert bench.refused(EnsureBridge("br0", 0, False, False)) == 'cannot: could not add "br0": operation not permitted'


def test_an_address_that_another_call_adds_at_the_same_time_is_fine(bench: Bench) -> None:
    bench.netlink.refuses["assign_address"] = EEXIST
    bench.run(EnsureAddress(BRIDGE, V6, force=False))
    bench.netlink.refuses["assign_address"] = EPERM
    said = bench.refused(EnsureAddress(BRIDGE, V6, force=False))
    assert said == 'cannot: could not add IP address to "br0": operation not permitted'


def test_bt_15_the_macs_own_value_is_written(bench: Bench) -> None:
    bench.run(PinMac(BRIDGE))
    assert bench.made("set_mac") == [("set_mac", 1, "02:00:00:00:00:01")]


def test_a_setting_that_is_as_wanted_is_not_written(bench: Bench) -> None:
    bench.run(EnsureSysctl("host", "net/ipv4/ip_forward", "1"))
    assert bench.kernel.settings["net/ipv4/ip_forward"] == "1"
    bench.kernel.read_only = True
    bench.run(EnsureSysctl("host", "net/ipv4/ip_forward", "1"))
    said = bench.refused(EnsureSysctl("host", "net/ipv4/ip_forward", "0"))
    assert said == "cannot: open /proc/sys/net/ipv4/ip_forward: read-only file system"


def seen(**flags) -> list[KernelAddress]:
    return [KernelAddress(V6, True, **flags)]


SETTLED = AwaitSettled(VETH, limit=5.0, pause=0.5)


def test_p06_addresses_are_waited_for_until_they_are_settled(bench: Bench) -> None:
    bench.netlink.answers = [seen(tentative=True), seen(tentative=True), seen()]
    bench.run(SETTLED)
    assert bench.clock.slept == [0.5, 0.5]


def test_a_link_local_address_may_go_on_by_itself(bench: Bench) -> None:
    bench.netlink.answers = [[KernelAddress(Cidr.parse("fe80::1/64"), False, tentative=True)]]
    bench.run(SETTLED)
    assert bench.clock.slept == []


def test_an_address_that_never_settles_and_one_that_somebody_has(bench: Bench) -> None:
    bench.netlink.answers = [seen(tentative=True)]
    assert bench.refused(SETTLED) == "cannot: link veth1 still has tentative addresses after 5 seconds"
    bench.netlink.answers = [seen(tentative=True, duplicate=True)]
    assert bench.refused(SETTLED) == "cannot: fd00::2/64 is in use elsewhere on the link"


def test_a_port_is_waited_for(bench: Bench) -> None:
    bench.netlink.states = ["down", "lower-layer-down", "up"]
    bench.run(AwaitPort(VETH, (0.1, 0.2, 0.4)))
    assert bench.clock.slept == [0.1, 0.2]
    bench.netlink.states = ["down"] * 4
    assert bench.refused(AwaitPort(VETH, (0.1, 0.2, 0.4))) == "cannot: down"
    bench.netlink.states = ["down", "up"]
    bench.run(AwaitPort(VETH, (0.1,)))


def test_no_wait_is_longer_than_the_call(bench: Bench) -> None:
    bench.netlink.states = ["down"] * 9
    with pytest.raises(Expired, match="veth1 to be operational"):
        bench.run(AwaitPort(VETH, (0.4, 0.4, 0.4)), seconds=0.5)


PAIR = MakePair(Device("container", "eth0"), "veth9", 1400, "")


def test_another_name_is_tried_while_only_the_hosts_is_taken(bench: Bench) -> None:
    bench.netlink.refuses["create_pair"] = EEXIST
    assert bench.refused(PAIR).startswith('container veth name ("eth0") peer provided ("veth')
    assert len(bench.made("create_pair")) == 11


def test_a_device_of_that_name_in_the_container(bench: Bench) -> None:
    bench.netlink.put("eth0")
    bench.netlink.refuses["create_pair"] = EEXIST
    assert bench.refused(PAIR) == 'container veth name ("eth0") peer provided ("veth9") already exists'
    assert bench.made("create_pair") == [("create_pair", "eth0", 1400)]


def test_a_pair_that_the_kernel_refuses(bench: Bench) -> None:
    bench.netlink.refuses["create_pair"] = EPERM
    assert bench.refused(PAIR) == "cannot: operation not permitted"
    assert len(bench.made("create_pair")) == 1


def test_what_is_not_there(bench: Bench) -> None:
    assert bench.refused(Enslave(VETH, "br9")) == "cannot: Link not found"
