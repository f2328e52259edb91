"""What docs/runtimes.md says that runtimes send is what they send.

`make runtimes WRITE=1` writes its tables anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from integration.runtimes.conftest import CONTAINERD, Place, need
from integration.runtimes.containerd import Containerd
from integration.runtimes.cri import CriRefused
from integration.runtimes.document import compare
from integration.runtimes.podman import Podman


class Table:
    """Events of a runtime, each with the calls for eth0 that it made."""

    def __init__(self, place: Place) -> None:
        self._network = place.network
        self._rows: list[tuple[str, str]] = []
        self._calls: list[dict[str, Any]] = []

    def tell(self, event: str, act: Callable[[], Any]) -> Any:
        self._network.forget_calls()
        done = act()
        calls = self._network.calls()
        self._calls += calls
        # podman asks in each command, for a namespace that is not there.
        told = list(dict.fromkeys(map(described, calls))) if not is_pod(calls) else [*map(described, calls)]
        self._rows.append((event, ", ".join(told) or "nothing"))
        return done

    def text(self) -> str:
        lines = ["| event | calls |", "|---|---|", *(f"| {event} | {calls} |" for event, calls in self._rows), ""]
        args = {
            word.partition("=")[0]
            for call in self._calls
            for word in call["environment"].get("CNI_ARGS", "").split(";")
        }
        given = {name for call in self._calls for name, value in call["conf"].get("runtimeConfig", {}).items() if value}
        lines.append(
            f"CNI_ARGS: {listed(args)}. Filled in `runtimeConfig`, if the configuration asks for them: {listed(given)}."
        )
        return "\n".join(lines)


def is_pod(calls: list[dict[str, Any]]) -> bool:
    return not any(call["environment"]["CNI_COMMAND"] == "VERSION" for call in calls)


def listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names) if name)


def described(call: dict[str, Any]) -> str:
    verb, ifname = call["environment"]["CNI_COMMAND"], call["environment"].get("CNI_IFNAME", "")
    lacks = [] if call["environment"].get("CNI_NETNS") else ["namespace"]
    lacks += [] if "prevResult" in call["conf"] else ["result"]
    if verb != "DEL":
        return f"{verb} {ifname}" if ifname not in {"", "eth0", "dummy"} else verb
    return f"{verb} without {' and '.join(lacks)}" if lacks else verb


@pytest.fixture
def chained(place: Place) -> Place:
    place.network.configure(chain=True)
    return place


def test_containerd_sends_what_is_said(chained):
    if not CONTAINERD:
        need("containerd", "containerd-shim-runc-v2", "ctr")
    need("runc", "busybox", "iptables")
    network = chained.network
    with Containerd(chained.node, CONTAINERD) as runtime:
        runtime.await_network()
        table = Table(chained)
        more = {
            "port_mappings": [{"container_port": 80, "host_port": 8080}],
            "dns_config": {"servers": ["10.0.0.10"]},
            "annotations": {"kubernetes.io/ingress-bandwidth": "10M"},
            "linux": {"cgroup_parent": "/pods"},
        }
        pod = table.tell("a pod starts", lambda: runtime.run_pod("a", "a", **more))
        table.tell("the runtime is asked for its state", runtime.network_state)
        table.tell("it is killed and started again", lambda: (runtime.kill(), runtime.launch()))
        table.tell("the pod is stopped", pod.stop)
        table.tell("it is stopped again", pod.stop)
        table.tell("it is removed", pod.remove)
        second = runtime.run_pod("b", "b")
        table.tell("a pod is removed without being stopped", second.remove)
        fault = network.fault("ADD", "no")

        def refused() -> None:
            with pytest.raises(CriRefused):
                runtime.run_pod("c", "c")

        table.tell("a plugin of the chain fails at ADD", refused)
        fault.unlink()
        runtime.clear()
        network.await_nothing()
        compare(f"containerd {runtime.version().partition(' ')[2].lstrip('v').partition('.')[0]}", table.text())


def test_podman_sends_what_is_said(chained):
    need("podman", "conmon", "runc", "busybox", "iptables")
    network = chained.network
    podman = Podman(chained.node)
    table = Table(chained)
    options = ["-p", "8080:80", "--network", "pod-net:ip=10.44.0.77,mac=aa:bb:cc:dd:ee:07,alias=also"]
    table.tell("`run`", lambda: podman.start("a", *options))
    table.tell("`network reload`", lambda: podman.run("network", "reload", "a"))
    table.tell("`network disconnect`", lambda: podman.run("network", "disconnect", "pod-net", "a"))
    table.tell("`network connect`", lambda: podman.run("network", "connect", "pod-net", "a"))
    table.tell("`restart`", lambda: podman.run("restart", "-t", "0", "a"))
    table.tell("`rm -f`", lambda: podman.remove("a"))
    fault = network.fault("ADD", "no")
    table.tell("`run`, and a plugin of the chain fails at ADD", lambda: podman.call("run", "-d", "tortie.test/box:1"))
    fault.unlink()
    podman.clear()
    network.await_nothing()
    compare("podman", table.text())
