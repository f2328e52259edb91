"""The dataplane over dicts: the contract that the Linux one keeps too, and how it can be made to fail."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from adapters.memory.dataplane import MemoryDataplane
from adapters.memory.log import RecordingLog
from contracts.dataplane import HOST, V4, V6, DataplaneContract, World
from domain.ipam.address import Cidr
from domain.linux.steps import AddAddress, CreatePair, WriteSysctl
from domain.workload.plan import plan_for
from ports.errors import Refused


class MemoryWorld(World):
    def __init__(self) -> None:
        self.clock = MemoryClock()
        self.log = RecordingLog()
        self.dataplane = MemoryDataplane(self.clock, self.log)
        self.network = self.dataplane.network
        self._made = 0

    def make_namespace(self) -> str:
        path = f"/var/run/netns/{self.new_name()}"
        self.network.add_namespace(path)
        return path

    def make_file(self) -> str:
        path = f"/tmp/{self.new_name()}"
        self.network.files.add(path)
        return path

    def new_name(self) -> str:
        self._made += 1
        return f"t{self._made}"

    def make_link(self, netns: str, name: str) -> None:
        self.network.add_link(netns, name).set_up()

    def make_pair(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        self.network.add_pair(one, other)

    def make_route(self, netns: str, name: str, destination: Cidr) -> None:
        self.network.link(netns, name).routes.append((destination, None))


@pytest.fixture
def memory_world():
    return MemoryWorld()


class TestMemoryDataplane(DataplaneContract):
    @pytest.fixture
    def world(self, memory_world):
        return memory_world


def _kinds_of_step(world):
    plan = plan_for(world.attachment("/n", "h", V4, V6, mac="02:00:00:00:00:01"))
    return sorted({type(step.action) for step in plan if step.fatal}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", _kinds_of_step(MemoryWorld()), ids=lambda kind: kind.__name__)
def test_whichever_step_fails_nothing_is_left(memory_world, kind):
    """G26"""
    netns = memory_world.make_namespace()
    memory_world.dataplane.fails(kind, "operation not permitted")
    with pytest.raises(Refused, match="operation not permitted"):
        memory_world.connect(memory_world.attachment(netns, "cali1", V4, V6, mac="02:00:00:00:00:01"))
    assert memory_world.see(HOST, "cali1").link is None
    assert memory_world.see(netns, "eth0").link is None
    assert memory_world.dataplane.connected == []


def test_an_interruption_leaves_nothing_either(memory_world):
    netns = memory_world.make_namespace()
    memory_world.dataplane.fails(AddAddress, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        memory_world.connect(memory_world.attachment(netns, "cali1"))
    assert memory_world.see(HOST, "cali1").link is None


def test_a_step_that_is_told_to_work_again_works(memory_world):
    netns = memory_world.make_namespace()
    memory_world.dataplane.fails(CreatePair, "device or resource busy")
    memory_world.dataplane.fails(CreatePair, None)
    memory_world.connect(memory_world.attachment(netns, "cali1"))
    assert [attachment.host_name for attachment in memory_world.dataplane.connected] == ["cali1"]


def test_a_step_that_need_not_succeed_is_logged(memory_world):
    """D04: accept_ra is the only IPv6 setting of an IPv4 container, and it may be missing."""
    netns = memory_world.make_namespace()
    memory_world.dataplane.network.missing_settings.add("net/ipv6")
    memory_world.connect(memory_world.attachment(netns, "cali1"))
    (line,) = memory_world.log.shown("warning")
    assert "failed to set net.ipv6.conf.cali1.accept_ra=0: " in line
    assert line.endswith("no such file or directory")


def test_settings_and_queue_lengths_are_kept_for_tests_to_see(memory_world):
    """CNI-004 CNI-005 G12"""
    netns = memory_world.make_namespace()
    memory_world.connect(memory_world.attachment(netns, "cali1", num_queues=3))
    network = memory_world.network
    assert network.sysctls["", "net/ipv4/conf/cali1/proxy_arp"] == "1"
    assert network.sysctls[netns, "net/ipv4/ip_forward"] == "0"
    ends = network.link("", "cali1"), network.link(netns, "eth0")
    assert [end.tx_queue_length for end in ends] == [0, 1000]
    assert [end.queues for end in ends] == [3, 3]


def test_netkit_falls_back_to_veth_where_the_kernel_lacks_it(memory_world):
    """D08"""
    netns = memory_world.make_namespace()
    memory_world.connect(memory_world.attachment(netns, "cali1", device_type="netkit"))
    assert memory_world.see(HOST, "cali1").link.kind == "netkit"
    memory_world.dataplane.unknown_kinds.add("netkit")
    memory_world.connect(memory_world.attachment(netns, "cali1", device_type="netkit"))
    assert memory_world.see(HOST, "cali1").link.kind == "veth"


def test_a_kernel_without_veth_refuses(memory_world):
    netns = memory_world.make_namespace()
    memory_world.dataplane.unknown_kinds.add("veth")
    with pytest.raises(Refused, match=r"^operation not supported$"):
        memory_world.connect(memory_world.attachment(netns, "cali1"))


def test_a_namespace_takes_its_devices_and_their_other_ends_with_it(memory_world):
    netns = memory_world.make_namespace()
    memory_world.connect(memory_world.attachment(netns, "cali1"))
    memory_world.network.remove_namespace(netns)
    assert memory_world.see(HOST, "cali1").link is None


def test_the_same_address_twice_is_refused(memory_world):
    netns = memory_world.make_namespace()
    with pytest.raises(Refused, match='failed to add IP addr to "eth0": file exists'):
        memory_world.connect(memory_world.attachment(netns, "cali1", V4, V4))


def test_the_same_route_twice_is_refused(memory_world):
    netns = memory_world.make_namespace()
    twice = memory_world.attachment(netns, "cali1").replace(routes=(Cidr.parse("0.0.0.0/0"),) * 2)
    with pytest.raises(Refused, match=r"failed to add IPv4 route for 0\.0\.0\.0/0 via 169\.254\.1\.1: file exists"):
        memory_world.connect(twice)


def test_a_missing_setting_that_must_be_written_fails(memory_world):
    netns = memory_world.make_namespace()
    memory_world.network.missing_settings.add("net/ipv6")
    with pytest.raises(Refused, match="failed to disable DAD for eth0: open /proc/sys/net/ipv6/conf/eth0/accept_dad: "):
        memory_world.connect(memory_world.attachment(netns, "cali1", V6))
    assert WriteSysctl.__name__ not in str(memory_world.log.entries)
