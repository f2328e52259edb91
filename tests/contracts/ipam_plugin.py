"""What every way of asking an IPAM plugin keeps: derive, provide a `world` fixture, a `PluginWorld`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pytest

from domain.cni.netconf import IpamSettings, NetConf
from domain.cni.request import Request
from domain.cni.result import Result, ResultIp, ResultRoute
from domain.ipam.address import Cidr
from ports.clock import Clock
from ports.errors import Expired, Refused
from ports.ipam_plugin import IpamCall, IpamPlugin

RESULT = Result(
    ips=(ResultIp(Cidr.parse("10.20.0.128/26")), ResultIp(Cidr.parse("fd80::80/122"))),
    routes=(ResultRoute(Cidr.parse("10.20.0.128/26")),),
)


class PluginWorld(ABC):
    """A CNI_PATH whose plugins the test decides about."""

    clock: Clock
    plugin: IpamPlugin
    path: tuple[str, ...]

    @abstractmethod
    def answers(self, type: str, result: Result) -> None:
        """There is such a plugin, and this is its answer to ADD."""

    @abstractmethod
    def fails(self, type: str, verb: str, code: int, message: str, details: str) -> None: ...

    @abstractmethod
    def takes(self, type: str, seconds: float) -> None: ...

    @abstractmethod
    def calls(self) -> list[tuple[str, str]]:
        """(verb, text on stdin) of every call that reached a plugin."""

    @abstractmethod
    def holds(self, container_id: str) -> bool:
        """Whether the plugin has given something to the container and not got it back."""

    def call(self, type: str, container_id: str = "c1", path: tuple[str, ...] | None = None) -> IpamCall:
        text = f'{{"cniVersion":"1.0.0","name":"net1","ipam":{{"type":"{type}"}},"kept":"as \\u00fcber ü is"}}'
        request = Request(
            command="ADD",
            container_id=container_id,
            netns="/var/run/netns/none",
            ifname="eth0",
            args="IgnoreUnknown=1;IP=10.20.0.5",
            path=self.path if path is None else path,
        )
        netconf = NetConf(cni_version="1.0.0", name="net1", ipam=IpamSettings(type=type))
        return IpamCall(request, netconf, text)


class IpamPluginContract:
    def test_add_gives_the_plugins_result(self, world: PluginWorld) -> None:
        world.answers("calico-ipam", RESULT)
        assert world.plugin.add(world.call("calico-ipam"), world.clock.deadline(10)) == RESULT
        assert world.holds("c1")

    def test_the_plugin_gets_the_configuration_text_unchanged(self, world: PluginWorld) -> None:
        world.answers("calico-ipam", RESULT)
        call = world.call("calico-ipam")
        world.plugin.add(call, world.clock.deadline(10))
        assert world.calls() == [("ADD", call.netconf_text)]

    def test_delete_releases_what_the_container_holds(self, world: PluginWorld) -> None:
        world.answers("calico-ipam", RESULT)
        for container_id in ("c1", "c2"):
            world.plugin.add(world.call("calico-ipam", container_id), world.clock.deadline(10))
        world.plugin.delete(world.call("calico-ipam", "c1"), world.clock.deadline(10))
        assert [world.holds("c1"), world.holds("c2")] == [False, True]

    def test_deleting_what_was_never_added_is_fine(self, world: PluginWorld) -> None:
        world.answers("calico-ipam", RESULT)
        world.plugin.delete(world.call("calico-ipam"), world.clock.deadline(10))

    def test_check_runs_the_plugins_check(self, world: PluginWorld) -> None:
        world.answers("calico-ipam", RESULT)
        world.plugin.check(world.call("calico-ipam"), world.clock.deadline(10))
        assert [verb for verb, _ in world.calls()] == ["CHECK"]

    def test_withdraw_takes_an_add_back(self, world: PluginWorld) -> None:
        """G15, as far as a foreign plugin lets us."""
        world.answers("calico-ipam", RESULT)
        call = world.call("calico-ipam")
        result = world.plugin.add(call, world.clock.deadline(10))
        world.plugin.withdraw(call, result, world.clock.deadline(10))
        assert not world.holds("c1")

    @pytest.mark.parametrize("verb", ["ADD", "DEL", "CHECK"])
    def test_a_plugins_own_error_comes_through_whole(self, world: PluginWorld, verb: str) -> None:
        world.answers("calico-ipam", RESULT)
        world.fails("calico-ipam", verb, 11, "try later", "because")
        ask = {"ADD": world.plugin.add, "DEL": world.plugin.delete, "CHECK": world.plugin.check}[verb]
        with pytest.raises(Refused) as refused:
            ask(world.call("calico-ipam"), world.clock.deadline(10))
        assert (refused.value.code, str(refused.value), refused.value.details) == (11, "try later", "because")

    def test_a_plugin_that_takes_too_long_expires_by_name(self, world: PluginWorld) -> None:
        world.answers("slow-ipam", RESULT)
        world.takes("slow-ipam", 30)
        before = world.clock.monotonic()
        with pytest.raises(Expired) as expired:
            world.plugin.add(world.call("slow-ipam"), world.clock.deadline(0.3))
        assert expired.value.waited_for == "IPAM plugin slow-ipam"
        assert 0.25 <= world.clock.monotonic() - before < 30

    @pytest.mark.parametrize("verb", ["add", "delete", "check"])
    def test_a_plugin_that_is_not_in_the_path_is_named(self, world: PluginWorld, verb: str) -> None:
        """Recording `errors` 27 and 37."""
        path = (*world.path, "/nowhere")
        with pytest.raises(Refused) as refused:
            getattr(world.plugin, verb)(world.call("no-such-plugin", path=path), world.clock.deadline(10))
        assert str(refused.value) == f'failed to find plugin "no-such-plugin" in path [{" ".join(path)}]'
        assert refused.value.code == 999

    @pytest.mark.parametrize(
        ("type", "text"),
        [("", "no plugin name provided"), ("../calico-ipam", "invalid plugin name: ../calico-ipam")],
    )
    def test_an_unusable_plugin_name_is_refused(self, world: PluginWorld, type: str, text: str) -> None:
        """Recording `errors` 28."""
        with pytest.raises(Refused) as refused:
            world.plugin.add(world.call(type), world.clock.deadline(10))
        assert (str(refused.value), refused.value.code) == (text, 999)

    def test_an_empty_path_is_refused(self, world: PluginWorld) -> None:
        with pytest.raises(Refused, match=r"^no paths provided$"):
            world.plugin.add(world.call("calico-ipam", path=()), world.clock.deadline(10))
