"""Calls about a virtual machine that are killed right after each of their writes, on a real kube-apiserver.

Of each kind of call one is killed when the API server has carried out its first write, one at its second, and so on
until one has no more. What the runtime does next must find the machine with the address that it had, one of each IP
version; and at its end nothing is left. (The original's VM handle is wedged for good in two of these windows: L4, L7.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from integration.kubevirt.machines import Launcher, MachineHost
from services.kube_proxy import KubeProxy
from services.request_faults import after

pytestmark = pytest.mark.parametrize("kind", ["v1"], indirect=True)  # one group is enough


class Rig:
    """`proxy` sees the requests of calls that are made by `killed`."""

    def __init__(self, host: MachineHost, proxy: KubeProxy) -> None:
        self.host, self.proxy = host, proxy
        config = proxy.kubeconfig(host.folder / "watched.kubeconfig", token=host.served.token)
        self.watched = {"kubeconfig": str(config)}

    def killed(self, verb: str, launcher: Launcher, write: int) -> bool:
        """Whether the call died when the API server had carried out its write of that number; else it was over."""
        host = self.host
        process = host.start(host.environment(verb, launcher), program="calico-ipam")
        left = iter(range(write - 1, -1, -1))
        self.proxy.arm(lambda asked: asked.writes and next(left, -1) == 0, after(process.kill))
        netconf = host.netconf(cniVersion="1.0.0", kubernetes=self.watched)
        out, _ = process.communicate(json.dumps(netconf).encode(), timeout=60)
        dead = bool(self.proxy.met)
        assert process.returncode == (-9 if dead else 0), out
        assert not dead or out == b""
        self.proxy.forget()
        return dead


@pytest.fixture
def rig(host: MachineHost) -> Iterator[Rig]:
    with KubeProxy(host.served.server, netns=host.net.path) as proxy:
        yield Rig(host, proxy)


def each(rig: Rig, verb: str, prepare: Callable[[str], Launcher]) -> Iterator[tuple[str, Launcher]]:
    """Machines, each with a call that was killed at one of its writes: the first, the second, and so on."""
    for write in count(1):
        machine = f"vm-{write}"
        launcher = prepare(machine)
        if not rig.killed(verb, launcher, write):
            assert write > 1
            return
        yield machine, launcher


def ends(rig: Rig, machine: str, *launchers: Launcher) -> None:
    rig.host.delete_machine(machine)
    rig.host.release(*launchers)
    assert rig.host.slots(machine) == {}
    assert [name for name in rig.host.store.handles() if name.endswith(f".{machine}")] == []


def test_the_first_add_is_killed(rig: Rig) -> None:
    """The pod's next sandbox gets one address of each version."""
    host = rig.host

    def prepare(machine: str) -> Launcher:
        host.running(machine)
        return host.launcher("source", machine=machine)

    for machine, launcher in each(rig, "ADD", prepare):
        before = set(host.slots(machine))
        again = Launcher(launcher.pod)
        addresses = host.assign(again)
        assert len(addresses) == 2
        assert before <= set(addresses)
        assert list(host.slots(machine)) == addresses
        host.store.check()
        ends(rig, machine, launcher, again)
    host.clean()


@pytest.mark.parametrize("verb", ["ADD", "DEL"])
def test_the_target_is_killed(rig: Rig, verb: str) -> None:
    """When it comes, or when it goes: the source has what it had, and the next target gets it."""
    host = rig.host
    had: dict[str, list[str]] = {}
    sources: dict[str, Launcher] = {}

    def prepare(machine: str) -> Launcher:
        host.running(machine)
        sources[machine] = host.launcher("source", machine=machine)
        had[machine] = host.assign(sources[machine])
        target = host.launcher("target", machine=machine, migration=host.migrate(machine))
        if verb == "DEL":
            host.assign(target, routed=False)
        return target

    for machine, launcher in each(rig, verb, prepare):
        assert list(host.slots(machine)) == had[machine]
        assert {active["pod"] for active, _ in host.slots(machine).values()} == {sources[machine].pod}
        host.release(launcher)
        target = host.launcher("second", machine=machine, migration=host.migrate(machine))
        assert host.assign(target, routed=False) == had[machine]
        host.store.check()
        ends(rig, machine, sources[machine], target)


def test_the_last_del_is_killed(rig: Rig) -> None:
    """The runtime repeats it; and a machine of that name can be created anew."""
    host = rig.host

    def prepare(machine: str) -> Launcher:
        host.running(machine)
        launcher = host.launcher("source", machine=machine)
        host.assign(launcher)
        host.delete_machine(machine)
        return launcher

    for machine, launcher in each(rig, "DEL", prepare):
        host.forget(name=machine)
        host.running(machine)
        anew = host.launcher("anew", machine=machine)
        addresses = host.assign(anew)
        host.release(launcher)
        assert list(host.slots(machine)) == addresses
        assert {active["pod"] for active, _ in host.slots(machine).values()} == {anew.pod}
        host.store.check()
        ends(rig, machine, anew)
    host.clean()
