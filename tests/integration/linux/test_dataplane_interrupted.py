"""A termination signal after any single conversation with the kernel: undo runs, and nothing is left."""

from __future__ import annotations

import signal
import threading
from errno import ENOBUFS

import pytest

from adapters.linux.bridges import LinuxBridges
from adapters.linux.dataplane import LinuxDataplane
from adapters.linux.netlink.on_pyroute2 import Pyroute2Netlink
from adapters.linux.netlink.seam import Unanswered
from adapters.linux.netlink.transports import load_lean_bridge, load_pyroute2_bridge
from contracts.dataplane import HOST, V4, V6
from domain.linux.bridge_steps import MakePair
from domain.linux.steps import CONTAINER, Device, Step
from ports.errors import Refused
from worlds.linux_world import TRANSPORTS, LinuxWorld

BRIDGE_TRANSPORTS = {"lean": load_lean_bridge, "library": load_pyroute2_bridge}


class Terminated(BaseException):
    pass


class Countdown:
    def __init__(self, transport: str, left: int) -> None:
        self.base = TRANSPORTS[transport]()
        self.left = left

    def load(self):
        countdown = self

        class Interrupted(self.base):
            """Sends our own process SIGTERM right after the kernel has done what it was asked for."""

            def _ask(self, *arguments, **fields):
                answer = super()._ask(*arguments, **fields)
                countdown.left -= 1
                if countdown.left == 0:
                    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)  # test runners have other threads
                return answer

        return Interrupted


@pytest.fixture
def terminable():
    def terminate(*_):
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def world(tmp_path):
    with LinuxWorld(tmp_path) as world:
        yield world


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_termination_after_any_conversation_leaves_nothing(world, terminable, transport):
    """L01 G26 L07"""
    netns, name = world.make_namespace(), world.new_name()
    ended = 0
    while True:
        countdown = Countdown(transport, ended + 1)
        dataplane = LinuxDataplane(world.clock, world.log, countdown.load)
        try:
            dataplane.connect(world.attachment(netns, name, V4, V6, mac="02:00:00:00:00:01"), world.soon())
        except Terminated:
            ended += 1
            assert world.see(HOST, name).link is None
            assert world.see(netns, "eth0").link is None
        else:
            break
    assert ended > 15
    assert countdown.left > 0
    assert V6.address.host_cidr in world.see(netns, "eth0").addresses


class LosesAnAnswer:
    """Netlink of which one conversation, the `at`th, is not answered, whatever the kernel has done."""

    def __init__(self, base: type, at: int) -> None:
        self.base, self.left = base, at

    def load(self):
        losing = self

        class Losing(self.base):
            def _ask(self, *arguments, **fields):
                answer = super()._ask(*arguments, **fields)
                losing.left -= 1
                if losing.left == 0:
                    raise Unanswered(ENOBUFS)
                return answer

        return Losing


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_answer_that_is_lost_at_any_point_leaves_all_or_nothing(world, transport):
    netns, name = world.make_namespace(), world.new_name()
    refused = 0
    for at in range(1, 100):
        losing = LosesAnAnswer(TRANSPORTS[transport](), at)
        dataplane = LinuxDataplane(world.clock, world.log, losing.load)
        try:
            dataplane.connect(world.attachment(netns, name, V4, V6, mac="02:00:00:00:00:01"), world.soon())
        except Refused:
            refused += 1
            assert world.see(HOST, name).link is None
            assert world.see(netns, "eth0").link is None
        else:
            assert V6.address.host_cidr in world.see(netns, "eth0").addresses
            world.dataplane.disconnect(netns, "eth0", world.soon())
        if losing.left > 0:
            break
    assert at > 15
    assert refused > 5


@pytest.mark.parametrize("transport", BRIDGE_TRANSPORTS)
def test_a_bridges_pair_whose_making_was_answered_by_nobody_goes(world, transport):
    netns = world.make_namespace()
    bridges = LinuxBridges(world.clock, world.log, LosesAnAnswer(BRIDGE_TRANSPORTS[transport](), 1).load)
    sides = bridges.enter(netns, world.soon())
    try:
        with pytest.raises(Refused, match="no buffer space"):
            sides.apply((Step(MakePair(Device(CONTAINER, "eth0"), "", 0, "")),))
    finally:
        sides.close()
    assert world.see(netns, "eth0").link is None  # and with it the other end


def test_a_termination_while_the_library_works_comes_after_it(world, terminable):
    """Inside its event loop the exception would be swallowed."""
    netlink = Pyroute2Netlink()
    try:
        real = netlink._route.link
        answers = []

        def slow(*arguments, **fields):
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)  # test runners have other threads
            answers.append(real(*arguments, **fields))
            return answers[-1]

        netlink._route.link = slow
        with pytest.raises(Terminated):
            netlink.link("lo")
        assert len(answers) == 1
    finally:
        netlink.close()
