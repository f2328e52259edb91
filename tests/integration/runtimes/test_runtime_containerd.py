"""containerd, asked as a kubelet asks it, on every datastore and with the bridge plugin.

After each of these nothing is left: no link, route, rule, address, record or file, and `tortie ipam check` is clean.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from integration.runtimes.conftest import CONTAINERD, QUICK, Place, need
from integration.runtimes.containerd import Containerd, Pod
from integration.runtimes.cri import CriRefused
from integration.runtimes.nodes import answer_of, await_that

MANY, WORKERS = 32 if QUICK else 100, 16
PORT = 8080


@pytest.fixture(scope="module")
def runtime(place: Place) -> Iterator[Containerd]:
    if not CONTAINERD:
        need("containerd", "containerd-shim-runc-v2", "ctr")
    need("runc", "busybox", "iptables", "nft")
    with Containerd(place.node, CONTAINERD) as runtime:
        place.runtime = runtime
        yield runtime


@pytest.fixture(autouse=True)
def _nothing_is_left(place: Place, runtime: Containerd) -> Iterator[None]:
    configure(place)
    place.network.forget_calls()
    yield
    runtime.clear()
    for name in [*"abc", *(f"p{number}" for number in range(MANY))]:
        place.network.drop_pod(name)
    place.network.await_nothing()
    assert runtime.sandboxes() == []


def configure(place: Place, **options: Any) -> None:
    place.network.configure(**options)
    place.runtime.await_network(place.network.word)


def run(place: Place, name: str, **more: Any) -> Pod:
    return place.runtime.run_pod(name, place.network.add_pod(name), **more)


def sent(place: Place) -> list[tuple[str, bool]]:
    """Of each call for a pod's eth0 its verb, and whether it named a network namespace."""
    return [
        (call["environment"]["CNI_COMMAND"], bool(call["environment"]["CNI_NETNS"])) for call in place.network.calls()
    ]


def ask(host: str) -> str:
    """What the pod behind that host's port says, asked from another machine."""
    return answer_of(f"http://{host}:{PORT}/")


def test_pods_reach_each_other_their_host_and_the_world_their_ports(place):
    """D07."""
    configure(place, chain=True)
    rate = {"kubernetes.io/ingress-bandwidth": "10M", "kubernetes.io/egress-bandwidth": "10M"}
    ports = [{"container_port": 80, "host_port": PORT}]
    a = run(place, "a", port_mappings=ports, annotations=rate).start()
    b = run(place, "b").start()
    assert len(a.addresses) == len(b.addresses) == 2, "one of each family"
    assert all(a.pings(address) for address in b.addresses)
    assert all(b.pings(address) for address in [*a.addresses, place.node.address4, place.node.address6])
    for address in a.addresses:
        place.node.run("ping", "-c1", "-W10", address)
    assert [ask(place.node.address4), ask(f"[{place.node.address6}]")] == ["a", "a"]
    assert a.execute("cat", "/proc/sys/net/core/somaxconn") == (0, "500\n")
    assert "tbf" in place.node.run("tc", "qdisc", "show"), "bandwidth is limited"


def test_del_comes_up_to_three_times_and_later_ones_without_namespace(place):
    """K01."""
    a = run(place, "a")
    a.stop()
    a.stop()
    a.remove()
    assert sent(place) == [("ADD", True), ("DEL", True), ("DEL", False), ("DEL", False)]


def test_a_sandbox_removed_at_once(place):
    run(place, "a").remove()
    assert sent(place)[0] == ("ADD", True)
    assert all(verb == "DEL" for verb, _ in sent(place)[1:])


def test_a_later_plugin_of_the_chain_fails(place):
    configure(place, chain=True)
    fault = place.network.fault("ADD", "no luck today")
    try:
        with pytest.raises(CriRefused, match="no luck today"):
            run(place, "a", port_mappings=[{"container_port": 80, "host_port": PORT}])
    finally:
        fault.unlink()
    place.network.await_nothing()  # the runtime has asked for DEL itself
    place.network.drop_pod("a")
    run(place, "a")


def test_a_later_plugin_fails_at_add_and_at_the_del_after_it(place):
    faults = [place.network.fault(verb, "broken") for verb in ("ADD", "DEL")]
    try:
        with pytest.raises(CriRefused, match="broken"):
            run(place, "a")
    finally:
        for fault in faults:
            fault.unlink()
    if not place.runtime.sandboxes():  # containerd 2 has forgotten it; its DEL by hand is all that is left
        place.network.delete_by_hand(place.network.calls()[0]["environment"])


def test_the_runtime_is_killed_and_started_again(place):
    a, b = run(place, "a").start(), run(place, "b").start()
    place.runtime.kill()
    place.runtime.launch()
    assert a.pings(b.addresses[0])
    assert [verb for verb, _ in sent(place)] == ["ADD", "ADD"]


def test_the_plugin_is_killed_at_the_deadline(place):
    """P04: its datastore or its lock makes it wait, the kubelet's patience ends, and DEL comes while it still waits."""
    config = place.runtime.config("a", place.network.add_pod("a"))
    with place.network.stalled():
        for attempt, patience in enumerate((3, 15, 50)):  # where the machine is so busy that the plugin has not begun
            config["metadata"]["attempt"] = attempt
            with pytest.raises(CriRefused) as caught:
                place.runtime.cri.call("RunPodSandbox", config=config, seconds=patience)
            assert caught.value.code in {"DEADLINE_EXCEEDED", "CANCELLED"}  # ours, or the runtime's own word for it
            with suppress(TimeoutError):
                await_that(lambda: sent(place), "DEL begins", 10)
                break
    await_that(lambda: ("DEL", True) in sent(place), "DEL comes to its end")
    assert ("ADD", True) not in sent(place)


def test_the_machine_starts_again_with_its_records(place):
    a, b = run(place, "a").start(), run(place, "b").start()
    place.node.halt()
    place.node.boot()
    place.runtime.launch()
    place.runtime.await_network()
    assert len(place.runtime.sandboxes()) == 2
    assert not [name for name in place.network._links() if name.startswith(("cali", "veth"))]
    c = run(place, "c").start()
    assert not set(c.addresses) & {*a.addresses, *b.addresses}, "addresses are theirs until DEL"


def test_the_configuration_goes_and_comes_back(place):
    a = run(place, "a")
    place.network.unconfigure()
    place.runtime.kill()
    place.runtime.launch()
    assert place.runtime.network_state()[0] is False
    with pytest.raises(CriRefused):
        a.stop()
    configure(place)
    a.stop()


def test_the_configuration_changes_under_a_pod(place):
    """DEL comes with the new one."""
    a = run(place, "a")
    configure(place, chain=True, mtu=1400)
    a.stop()
    place.network.await_nothing()


def test_many_pods_by_sixteen_at_once(place):
    names = [f"p{number}" for number in range(MANY)]
    uids = {name: place.network.add_pod(name) for name in names}
    with ThreadPoolExecutor(WORKERS) as pool:
        pods = list(pool.map(lambda name: place.runtime.run_pod(name, uids[name], seconds=300), names))
        addresses = [address for pod in pods for address in pod.addresses]
        assert len(set(addresses)) == 2 * MANY
        assert list(pool.map(lambda pod: pod.remove(), pods)) == [None] * MANY
