"""A host whose default route comes from a router's advertisements keeps it when it begins to forward for containers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from adapters.linux.bridges import LinuxBridges
from adapters.linux.clock import SystemClock
from adapters.linux.dataplane import LinuxDataplane
from adapters.linux.namespaces import Inside
from adapters.linux.netlink.transports import load_lean, load_lean_bridge, load_pyroute2, load_pyroute2_bridge
from adapters.memory.log import RecordingLog
from domain.bridge.conf import read_bridge_conf
from domain.bridge.plan import bridge_plan, gateway_plan
from domain.cni.result import Result, ResultIp
from domain.ipam.address import Address, Cidr
from domain.workload.attachment import Attachment
from integration.plugin.kernel import Namespace

# A router advertisement: itself as default router for half an hour, to all nodes on the link.
ADVERTISE = """
import socket, struct, sys
index = socket.if_nametoindex(sys.argv[1])
sender = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
sender.sendto(struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0), ("ff02::1", 0, 0, index))
"""
ACCEPT = "ipv6/conf/up0/accept_ra"
LOADERS = pytest.mark.parametrize(
    ("load", "load_bridge"),
    [(load_lean, load_lean_bridge), (load_pyroute2, load_pyroute2_bridge)],
    ids=["lean", "library"],
)


class Site:
    """A host behind a router, and a container; the test runs on the host."""

    def __init__(self, undo: ExitStack) -> None:
        self.host, self.router, self.pod = [Namespace(name, undo) for name in ("host", "router", "pod")]
        self.host.ip("link", "add", "up0", "type", "veth", "peer", "name", "down0", "netns", self.router.name)
        for space, device in ((self.host, "up0"), (self.router, "down0")):
            space.set_sysctl(f"ipv6/conf/{device}/accept_dad", "0")
            space.ip("link", "set", device, "up")
        self.clock, self.log = SystemClock(), RecordingLog()
        descriptor = os.open(self.host.path, os.O_RDONLY)
        undo.callback(os.close, descriptor)
        undo.enter_context(Inside(descriptor))
        self.learn()

    def learn(self) -> None:
        """Until the advertisement has come through a link that has just come up."""
        give_up = time.monotonic() + 20
        while not self.learned():
            assert time.monotonic() < give_up, "the host takes no advertisement"
            self.router.run(sys.executable, "-c", ADVERTISE, "down0", check=False)
            time.sleep(0.02)

    def learned(self) -> bool:
        return any(route.get("protocol") == "ra" for route in self.host.routes(6, "default"))

    def add_gateway(self, load_bridge) -> None:
        conf = read_bridge_conf({"name": "n", "isGateway": True}, own_name=False)
        answer = Result(ips=(ResultIp(Cidr.parse("fd01::2/64"), gateway=Address.parse("fd01::1")),))
        near = self.clock.deadline(30)
        with LinuxBridges(self.clock, self.log, load_bridge).enter("", near) as sides:
            sides.apply((*bridge_plan(conf), *gateway_plan(conf, answer)))

    def add_workload(self, load) -> None:
        wanted = Attachment(self.pod.path, "eth0", "cali1", (Cidr.parse("fd02::2/128"),), (Cidr.parse("::/0"),))
        LinuxDataplane(self.clock, self.log, load).connect(wanted, self.clock.deadline(30))


@pytest.fixture
def site() -> Iterator[Site]:
    with ExitStack() as undo:
        yield Site(undo)


@LOADERS
def test_both_plugins_keep_it(site: Site, load, load_bridge) -> None:
    assert site.host.sysctl(ACCEPT) == "1"
    site.add_workload(load)
    assert (site.host.sysctl(ACCEPT), site.learned()) == ("2", True)
    assert len(site.log.shown("warning")) == 1
    site.host.set_sysctl(ACCEPT, "1")
    site.add_gateway(load_bridge)
    assert site.host.sysctl("ipv6/conf/all/forwarding") == "1"
    assert (site.host.sysctl(ACCEPT), site.learned()) == ("2", True)


def test_the_kernel_drops_it_otherwise(site: Site) -> None:
    """As long as this holds the setting has to be changed."""
    site.host.set_sysctl("ipv6/conf/all/forwarding", "1")
    assert not site.learned()
