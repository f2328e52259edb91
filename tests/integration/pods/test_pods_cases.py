"""What users reported about pods, tried on installed executables: R01, R08, L08, C02, C08, D03, D05, D06, K01."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from integration.plugin.host import Container
from integration.plugin.kernel import Namespace
from integration.plugin.store import IPAM
from integration.pods.checks import (
    POD_IPS,
    address_of,
    addresses_of,
    check_endpoint,
    check_gone,
    check_nothing_stored,
    networks_of,
)
from integration.pods.world import PodHost, Sandbox

POOL = "10.20.0.0/24"
CNI = "cni.projectcalico.org/"
BOTH = {"type": "calico-ipam", "assign_ipv4": "true", "assign_ipv6": "true"}


@pytest.fixture
def pool(pods: PodHost) -> PodHost:
    pods.pools(POOL)
    return pods


def wish(name: str, value: Any) -> dict[str, str]:
    return {CNI + name: value if isinstance(value, str) else json.dumps(value)}


# --- R01: a late DEL ------------------------------------------------------------------------------------------------


def test_r01_a_late_del_leaves_the_newer_sandbox_alone(pool: PodHost) -> None:
    old = pool.pod()
    pool.add(old).result()
    new = pool.sandbox(old.pod)
    networks = networks_of(pool.add(new).result())
    pool.delete(old).silent()
    check_endpoint(pool, new, networks)
    assert (pool.holds(old), pool.holds(new)) == ([], [networks[0].partition("/")[0]])
    assert pool.devices() == {new.host_name}
    assert new.inside.addresses("eth0") == networks
    assert [route["dst"] for route in pool.net.routes(4)] == [networks[0].partition("/")[0]]


# --- R08: a node's name from before it was imaged anew --------------------------------------------------------------


@pytest.mark.stores("v1", "v3")
def test_r08_a_pod_of_another_node_is_refused_before_anything_is_allocated(pool: PodHost) -> None:
    pool.cluster.add_node("node-old")
    answer = pool.add(pool.pod(), nodename="node-old")
    answer.error(7, '"node-old"', '"node-a"', "nodename")
    check_nothing_stored(pool)
    assert pool.store.blocks() == {}


# --- L08: a sandbox that nobody took down ---------------------------------------------------------------------------


def lost(pool: PodHost) -> Sandbox:
    """A networked pod with a fixed address, of which a reboot has left nothing but its records."""
    sandbox = pool.pod(annotations=wish("ipAddrs", ["10.20.0.5"]))
    assert address_of(pool.add(sandbox).result()) == "10.20.0.5"
    pool.net.ip("link", "del", sandbox.host_name)
    sandbox.inside.remove()
    return sandbox


def test_l08_the_same_pods_next_sandbox_takes_the_fixed_address_over(pool: PodHost) -> None:
    old = lost(pool)
    new = pool.sandbox(old.pod)
    networks = networks_of(pool.add(new).result())
    assert networks == ["10.20.0.5/32"]
    check_endpoint(pool, new, networks)
    assert (pool.holds(old), pool.holds(new)) == ([], ["10.20.0.5"])
    pool.delete(old).silent()
    assert pool.holds(new) == ["10.20.0.5"]
    pool.clean()
    pool.delete(new).silent()
    check_gone(pool, new)


def test_l08_an_address_on_another_node_is_refused_and_its_holder_named(pool: PodHost) -> None:
    old = lost(pool)
    for key, text in pool.store.texts().items():
        if key.startswith(f"{IPAM}/assignment/"):
            pool.store.put(
                key, text.replace('"node":"node-a"', '"node":"node-b"').replace('"node": "node-a"', '"node": "node-b"')
            )
    new = pool.sandbox(old.pod)
    pool.add(new).error(999, "Address already assigned in block", f"test/{old.pod}", "node-b", f"net1.{old.identity}")
    assert (pool.holds(old), pool.holds(new)) == (["10.20.0.5"], [])
    assert pool.devices() == set()


# --- C02: pools that pods ask for -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "code", "texts"),
    [
        (["10-20-0-0-24"], 0, ()),
        (["10.20.0.0/24"], 0, ()),
        (["P1"], 999, ('error parsing pool "P1": invalid CIDR address: P1',)),
        (["nope"], 999, ('error parsing pool "nope": invalid CIDR address: nope',)),
        (["fd20::/112"], 999, ("isn't a IPv4 address",)),
        ("[new-pool]", 7, ("[new-pool]", "ipv4pools", "10-20-0-0-24", "fd20-")),
        ('"p1"', 7, ('"p1"', "ipv4pools", "10-20-0-0-24")),
        ("{}", 7, ("{}", "ipv4pools", "10-20-0-0-24")),
        ("null", 0, ()),
    ],
)
def test_c02_pools_by_name_by_range_and_by_mistake(
    pool: PodHost, asked: Any, code: int, texts: tuple[str, ...]
) -> None:
    """What has been recorded keeps its code and text; what could not be read says where it stands and what could."""
    pool.pools("fd20::/112")
    sandbox = pool.pod(annotations=wish("ipv4pools", asked))
    answer = pool.add(sandbox)
    if code == 0:
        assert address_of(answer.result()).startswith("10.20.0.")
        return
    answer.error(code, *texts, *([f"test/{sandbox.pod}"] if code == 7 else []))
    check_nothing_stored(pool)
    assert pool.store.blocks() == {}


def test_c02_a_first_pool_that_is_full_is_passed_over(pool: PodHost) -> None:
    pool.pools("10.21.0.0/29", block_size=29)
    pool.fill("10.21.0.0/29")
    sandbox = pool.pod(annotations=wish("ipv4pools", ["10.21.0.0/29", POOL]))
    assert address_of(pool.add(sandbox).result()).startswith("10.20.0.")


def test_c02_a_pool_that_is_disabled_is_refused_even_among_others(pool: PodHost) -> None:
    """The report would have it passed over; the original's answer is recorded for it alone, and the same in a list."""
    pool.pools("10.22.0.0/24", disabled=True)
    sandbox = pool.pod(annotations=wish("ipv4pools", ["10.22.0.0/24", POOL]))
    pool.add(sandbox).error(999, "the given pool (10.22.0.0/24) does not exist, or is not enabled")
    check_nothing_stored(pool)


# --- C08: fixed addresses -------------------------------------------------------------------------------------------


def test_c08_one_address_of_each_family(pool: PodHost) -> None:
    pool.pools("fd20::/112")
    sandbox = pool.pod(annotations=wish("ipAddrs", ["10.20.0.5", "fd20::5"]))
    assert addresses_of(pool.add(sandbox, ipam=BOTH).result()) == ["10.20.0.5", "fd20::5"]
    pool.delete(sandbox, ipam=BOTH).silent()
    check_gone(pool, sandbox)


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        (wish("ipAddrs", ["10.20.0.5", "10.20.0.6"]), "cannot have more than one IPv4 address"),
        (wish("ipAddrs", ["10.99.0.5"]), "not in a configured pool"),
        (wish("ipAddrs", ["10.22.0.5"]), "not in a configured pool"),
        (wish("ipAddrs", ["10.20.0.5", "10.22.0.5"]), "cannot have more than one IPv4 address"),
        (wish("ipAddrs", ["10.20.0.5", "fd99::5"]), "not in a configured pool"),
        (wish("ipAddrs", ["10.20.0.5"]) | wish("ipAddrsNoIpam", ["10.20.0.6"]), "can't have both annotations"),
        (wish("ipAddrs", []), "specified but empty"),
        (wish("ipAddrs", "10.20.0.5"), "failed to parse"),
    ],
)
def test_c08_what_cannot_be_had_leaves_nothing_allocated(pool: PodHost, annotations: dict[str, str], text: str) -> None:
    pool.pools("10.22.0.0/24", disabled=True)
    sandbox = pool.pod(annotations=annotations)
    pool.add(sandbox, ipam=BOTH, feature_control={"ip_addrs_no_ipam": True}).error(999, text)
    check_nothing_stored(pool)
    pool.delete(sandbox, ipam=BOTH).silent()


# --- D03: reachable at once, and not before there is policy ---------------------------------------------------------


def test_d03_the_first_ping_works(pool: PodHost) -> None:
    first, second = pool.pod(), pool.pod()
    pool.net.ip("link", "add", "tmp0", "type", "veth", "peer", "name", "tmp1")
    pool.net.ip("link", "set", "tmp0", "up")
    pool.net.ip("link", "set", "tmp1", "up")
    pool.net.ip("address", "add", "192.0.2.1/24", "dev", "tmp0")
    pool.net.ip("route", "add", "default", "via", "192.0.2.2", "dev", "tmp0")
    pool.add(first).result()
    first.inside.ping_once("192.0.2.1")
    target = address_of(pool.add(second).result())
    pool.net.set_sysctl("ipv4/ip_forward", "1")
    first.inside.ping_once(target)


@pytest.mark.stores("v1")
@pytest.mark.parametrize("comes", [True, False])
def test_d03_add_waits_for_policy_as_long_as_it_may(pool: PodHost, comes: bool) -> None:
    """After six tenths of a second, or never."""
    status = pool.folder / "endpoint-status"
    status.mkdir()
    sandbox = pool.pod()
    writer = threading.Timer(0.6, (status / f"k8s test%2F{sandbox.pod} eth0").write_text, ["{}"])
    if comes:
        writer.start()
    began = time.monotonic()
    answer = pool.add(sandbox, policy_setup_timeout_seconds=60 if comes else 1, endpoint_status_dir=str(status))
    took = time.monotonic() - began
    writer.cancel()
    answer.result()
    assert (0.5 if comes else 1) <= took < 50
    assert ("timed out waiting for endpoint status file" in answer.stderr) == (not comes)


# --- D05: names that are taken --------------------------------------------------------------------------------------


def test_d05_pods_of_the_same_name_in_two_namespaces(pool: PodHost) -> None:
    pool.cluster.add_namespace("other")
    one, two = pool.pod("pod-1"), pool.pod("pod-1", namespace="other")
    assert one.host_name != two.host_name
    first, second = pool.add(one).result(), pool.add(two).result()
    assert address_of(first) != address_of(second)
    assert pool.devices() == {one.host_name, two.host_name}
    assert all(len(name) <= 15 for name in pool.devices())
    again = pool.add(pool.sandbox("pod-1")).result()
    assert again["interfaces"][0] == first["interfaces"][0]
    pool.delete(one).silent()
    assert pool.holds(two) == [address_of(second)]
    assert two.inside.addresses("eth0") == networks_of(second)


@pytest.mark.parametrize("link", ["a pair", "a bridge", "a pair into a namespace"])
def test_d05_a_leftover_link_of_the_pods_name_is_replaced(pool: PodHost, link: str) -> None:
    """Even one that leads somewhere: as recorded, an earlier sandbox of the pod loses its device to the next."""
    sandbox = pool.pod()
    if link == "a bridge":
        pool.net.ip("link", "add", sandbox.host_name, "type", "bridge")
    else:
        pool.net.ip("link", "add", sandbox.host_name, "type", "veth", "peer", "name", "tmp0")
    if link == "a pair into a namespace":
        pool.net.ip("link", "set", "tmp0", "netns", Namespace("live", pool.undo).name)
    networks = networks_of(pool.add(sandbox).result())
    assert sandbox.inside.addresses("eth0") == networks
    pool.delete(sandbox).silent()
    check_gone(pool, sandbox)


def test_d05_an_interface_inside_is_in_the_way_and_nothing_is_left(pool: PodHost) -> None:
    sandbox = pool.pod()
    sandbox.inside.ip("link", "add", "eth0", "type", "bridge")
    pool.add(sandbox).error(999, "eth0")
    check_nothing_stored(pool)
    assert sandbox.inside.names() == {"lo", "eth0"}


# --- D06: a second interface ----------------------------------------------------------------------------------------


def test_d06_a_second_interface_takes_the_first_ones_place(pool: PodHost) -> None:
    """The host's end is named after the pod, so there can be one only; DEL of either frees what the pod has."""
    first = pool.pod()
    pool.add(first).result()
    second = first.with_interface("net1")
    networks = networks_of(pool.add(second).result())
    check_endpoint(pool, second, networks)
    assert first.inside.names() == {"lo", "net1"}
    assert first.inside.addresses("net1") == networks
    pool.delete(first).silent()
    pool.delete(second).silent()
    check_gone(pool, first)


# --- K01: DEL of what is not there ----------------------------------------------------------------------------------


def test_k01_del_works_whatever_is_gone(pool: PodHost) -> None:
    """Nothing stored; twice; no pod; no namespace, no path, or one that leads to no namespace."""
    never = pool.pod()
    pool.delete(never).silent()

    twice = pool.pod()
    pool.add(twice).result()
    for _ in range(2):
        pool.delete(twice).silent()

    without_pod = pool.pod()
    pool.add(without_pod).result()
    pool.cluster.client.delete(f"/api/v1/namespaces/test/pods/{without_pod.pod}")
    pool.delete(without_pod).silent()
    check_gone(pool, never, twice, without_pod)


@pytest.mark.parametrize("netns", ["/var/run/netns/absent-tortie", "/etc/hostname", ""])
def test_k01_del_without_a_namespace_frees_the_address(pool: PodHost, netns: str) -> None:
    sandbox = pool.pod()
    pool.add(sandbox).result()
    sandbox.inside.remove()
    pool.await_end_of(sandbox)
    gone = Sandbox(sandbox.identity, netns, sandbox.pod, sandbox.namespace)
    for _ in range(2):
        pool.delete(gone).silent()
    check_gone(pool)


@pytest.mark.stores("v1", "v3")
def test_what_del_leaves_at_the_pod(pool: PodHost) -> None:
    """Addresses are taken back from its annotations; who the sandbox was stays."""
    sandbox = pool.pod()
    pool.add(sandbox).result()
    pool.delete(sandbox).silent()
    said = pool.annotations(sandbox)
    assert (said[POD_IPS], said["cni.projectcalico.org/containerID"]) == ("", sandbox.identity)


def test_a_container_that_is_no_pod(pool: PodHost) -> None:
    """Where endpoints are records of their own, a container without a pod can have one, too."""
    container = pool.container()
    answer = pool.add(container, policy=None)
    if pool.kind != "etcd":
        answer.error(999)
        assert pool.left() == {}
    else:
        answer.result()
    pool.delete(Container(container.identity, container.netns), policy=None).silent()
    assert pool.left() == {}
