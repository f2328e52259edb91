"""A termination signal after any single conversation with the kernel: undo runs, and nothing is left."""

from __future__ import annotations

import signal
import threading

import pytest

from adapters.linux.dataplane import LinuxDataplane
from adapters.linux.netlink_pyroute2 import Pyroute2Netlink
from contracts_dataplane import HOST, V4, V6
from linux_world import TRANSPORTS, LinuxWorld


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
