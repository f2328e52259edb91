"""The bridge plugin's ports on the real kernel, from inside a namespace that plays the host's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from adapters.linux.bridges import LinuxBridges
from adapters.linux.clock import SystemClock
from adapters.linux.filter.firewall import LinuxFirewall
from adapters.linux.namespaces import Inside
from adapters.linux.netlink.transports import load_lean_bridge, load_pyroute2_bridge
from adapters.memory.log import RecordingLog
from contracts.bridge import BridgesContract, FirewallContract
from integration.plugin.kernel import Namespace


@pytest.fixture
def near():
    return SystemClock().deadline(30)


@pytest.fixture
def on_a_host() -> Iterator[ExitStack]:
    """The test runs in that namespace, and so do the commands that it starts."""
    if os.geteuid() != 0:
        pytest.fail("these tests make network namespaces and need root")
    with ExitStack() as undo:
        host = Namespace("host", undo)
        descriptor = os.open(host.path, os.O_RDONLY)
        undo.callback(os.close, descriptor)
        before = sorted(os.listdir("/proc/self/fd"))
        with Inside(descriptor):
            inside = sorted(os.listdir("/proc/self/fd"))
            yield undo
            assert sorted(os.listdir("/proc/self/fd")) == inside
        assert sorted(os.listdir("/proc/self/fd")) == before


class TestLinuxFirewall(FirewallContract):
    @pytest.fixture
    def firewall(self, on_a_host: ExitStack) -> LinuxFirewall:
        return LinuxFirewall({}, SystemClock())

    def test_without_the_commands_nothing_works_and_removing_is_fine(self, near, tmp_path, on_a_host) -> None:
        firewall = LinuxFirewall({}, SystemClock())
        firewall._tools._path = str(tmp_path)
        with pytest.raises(Exception, match="neither iptables nor nftables"):
            firewall.choose_backend("", near)
        firewall.stop_masquerade("", self.owner, (), near)
        firewall.stop_guarding(self.owner, near)
        firewall.collect_masquerade("net1", (), near)


class TestLinuxBridges(BridgesContract):
    @pytest.fixture(params=[load_lean_bridge, load_pyroute2_bridge], ids=["lean", "library"])
    def bridges(self, on_a_host: ExitStack, request: pytest.FixtureRequest) -> LinuxBridges:
        load: Callable = request.param
        load()  # beforehand, so that what a library opens for itself is no leak
        return LinuxBridges(SystemClock(), RecordingLog(), load)

    @pytest.fixture
    def netns(self, on_a_host: ExitStack) -> str:
        return Namespace("pod", on_a_host).path

    @pytest.fixture
    def bridge(self) -> str:
        return "br0"
