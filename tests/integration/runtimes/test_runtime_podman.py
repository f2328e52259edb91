"""podman's CNI back end with `calico` on datastores that need no pods of Kubernetes, and with the bridge plugin.

After each of these nothing is left: no link, route, rule, address, record or file, and `tortie ipam check` is clean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from integration.runtimes.conftest import QUICK, Place, need
from integration.runtimes.nodes import answer_of
from integration.runtimes.podman import Podman

MANY, WORKERS = 8 if QUICK else 32, 16
PORT = 8080


@pytest.fixture(scope="module")
def podman(place: Place) -> Podman:
    need("podman", "conmon", "runc", "busybox", "iptables", "nft")
    place.network.configure(chain=True)
    return Podman(place.node)


@pytest.fixture(autouse=True)
def _nothing_is_left(place: Place, podman: Podman) -> Iterator[None]:
    place.network.configure(chain=True)
    place.network.forget_calls()
    yield
    podman.clear()
    place.network.await_nothing()


def verbs(place: Place) -> list[str]:
    """Without VERSION, which podman asks of every plugin in each of its commands."""
    found = [call["environment"]["CNI_COMMAND"] for call in place.network.calls()]
    return [verb for verb in found if verb != "VERSION"]


def pings(podman: Podman, name: str, address: str) -> bool:
    return podman.call("exec", name, "ping", "-c1", "-W10", address).returncode == 0


def test_containers_reach_each_other_and_the_world_their_ports(place, podman):
    podman.start("a", "-p", f"{PORT}:80")
    podman.start("b")
    assert len(podman.addresses("a")) == 2
    assert all(pings(podman, "b", one) for one in [*podman.addresses("a"), place.node.address4, place.node.address6])
    assert answer_of(f"http://{place.node.address4}:{PORT}/") == "a"
    podman.remove("a", "b")
    assert verbs(place) == ["ADD", "ADD", "DEL", "DEL"]


def test_the_plugin_is_known_as_a_driver(place, podman):
    listed = json.loads(podman.run("network", "ls", "--format", "json"))
    assert {one["name"]: one["driver"] for one in listed}["pod-net"] == place.network.main["type"]


def test_an_address_and_a_mac_of_ones_own(place, podman):
    """They come as CNI_ARGS; the MAC is for `my-custom-cni` itself, and behind `calico` for `tuning`."""
    wanted = "10.44.0.77"
    podman.start("a", "--network", f"pod-net:ip={wanted},mac=aa:bb:cc:dd:ee:07")
    args = next(c for c in place.network.calls() if c["environment"]["CNI_COMMAND"] == "ADD")["environment"]["CNI_ARGS"]
    assert {"K8S_POD_NAME=a", f"IP={wanted}", "MAC=aa:bb:cc:dd:ee:07"} <= set(args.split(";"))
    assert podman.addresses("a")[0] == wanted
    mac = podman.run("exec", "a", "cat", "/sys/class/net/eth0/address").strip()
    assert mac == "aa:bb:cc:dd:ee:07"


def test_a_later_plugin_of_the_chain_fails(place, podman):
    fault = place.network.fault("ADD", "no luck today")
    try:
        done = podman.call("run", "-d", "--name", "a", "-p", f"{PORT}:80", "tortie.test/box:1")
    finally:
        fault.unlink()
    assert done.returncode != 0
    assert "no luck today" in done.stderr
    podman.clear()
    place.network.await_nothing()


def test_a_network_is_left_and_joined_again(place, podman):
    podman.start("a")
    podman.run("network", "disconnect", "pod-net", "a")
    assert place.network.records() == []
    podman.run("network", "connect", "pod-net", "a")
    assert len(podman.addresses("a")) == 2
    podman.run("network", "reload", "a")
    assert verbs(place) == ["ADD", "DEL", "ADD", "DEL", "ADD"]


def test_a_restart_gives_an_address_again(place, podman):
    podman.start("a")
    podman.run("restart", "-t", "0", "a")
    assert len(podman.addresses("a")) == 2
    assert verbs(place) == ["ADD", "DEL", "ADD"]


def test_the_machine_starts_again_with_its_records(place, podman):
    """Nobody asks for DEL: podman has forgotten what was there. The same container is started and asked for again; it
    has been in its endpoint all the time.
    """
    podman.start("a")
    before = podman.addresses("a")
    place.node.halt()
    place.node.boot()
    # As Debian does when it starts, by /usr/lib/tmpfiles.d/podman.conf; host-local gives nobody an address twice.
    place.node.run("rm", "-rf", "/var/lib/cni/networks")
    podman.start("b")
    podman.run("start", "a")
    if place.kind != "bridge":
        assert podman.addresses("a") == before, "they stay with who may come back"
    assert pings(podman, "b", podman.addresses("a")[0])
    assert verbs(place) == ["ADD", "ADD", "ADD"]


def test_many_at_once(place, podman):
    names = [f"m{number}" for number in range(MANY)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(podman.start, names))
    addresses = [address for name in names for address in podman.addresses(name)]
    assert len(set(addresses)) == 2 * MANY
