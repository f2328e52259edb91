"""Conformance K8S-031 to K8S-039: sandboxes of a pod that come and go in any order, and names that look alike."""

from __future__ import annotations

import ipaddress

import pytest

from integration.pods.checks import (
    LABELS,
    NAMED_PORT,
    address_of,
    check_endpoint,
    check_gone,
    networks_of,
)
from integration.pods.world import PodHost, Sandbox, endpoint_key

X, Y = "container-id-00x", "container-id-00y"


@pytest.fixture
def pool(pods: PodHost) -> PodHost:
    pods.pools("10.0.0.0/24")
    return pods


def check_last_gone(pods: PodHost, *sandboxes: Sandbox) -> None:
    check_gone(pods, *sandboxes)
    if pods.kind == "etcd":
        assert pods.stored() == {}


def test_k8s_031_a_del_that_comes_again_after_the_next_add(pool: PodHost) -> None:
    x = pool.pod(identity=X)
    pool.add(x).result()
    pool.delete(x).silent()
    check_last_gone(pool, x)
    y = pool.sandbox(x.pod, identity=Y)
    networks = networks_of(pool.add(y).result())
    pool.delete(x).silent()
    check_endpoint(pool, y, networks)
    assert pool.holds(y) == [networks[0].partition("/")[0]]
    pool.delete(y).silent()
    check_last_gone(pool, x, y)


def test_k8s_032_a_del_of_the_first_sandbox_after_the_add_of_the_second(pool: PodHost) -> None:
    x = pool.pod(identity=X)
    pool.add(x).result()
    y = pool.sandbox(x.pod, identity=Y)
    networks = networks_of(pool.add(y).result())
    assert list(pool.stored()) == [endpoint_key(x)]
    check_endpoint(pool, y, networks)
    pool.delete(x).silent()
    check_endpoint(pool, y, networks)
    assert pool.holds(x) == []
    assert y.inside.addresses("eth0") == networks
    pool.delete(y).silent()
    check_last_gone(pool, x, y)


def test_k8s_033_the_handle_holds_the_address(pool: PodHost) -> None:
    sandbox = pool.pod()
    result = pool.add(sandbox, name="calico-uts").result()
    address = address_of(result)
    (route,) = result["routes"]
    assert ipaddress.ip_address(address) in ipaddress.ip_network(route["dst"])
    check_endpoint(pool, sandbox, [f"{address}/32"])
    assert pool.holds(sandbox, "calico-uts") == [address]


def test_k8s_034_another_sandbox_in_the_same_namespace_gets_another_address(pool: PodHost) -> None:
    first = pool.pod()
    before = pool.add(first).result()
    second = Sandbox("new-container-id", first.inside, first.pod, first.namespace)
    after = pool.add(second).result()
    assert address_of(after) != address_of(before)
    assert [one["name"] for one in after["interfaces"]] == [one["name"] for one in before["interfaces"]]
    assert after["interfaces"][1]["mac"] != before["interfaces"][1]["mac"]
    assert after["interfaces"][1]["mac"] == first.inside.link("eth0")["address"]
    assert pool.holds(first) == [address_of(before)]
    assert pool.holds(second) == [address_of(after)]
    check_endpoint(pool, second, networks_of(after))
    for one in (second, first):
        pool.delete(one).silent()
    check_last_gone(pool, first)


def test_k8s_035_a_renamed_host_end_is_in_the_way_of_another_sandbox(pool: PodHost) -> None:
    first = pool.pod()
    networks = networks_of(pool.add(first).result())
    for words in (("down",), ("name", "sali0000000"), ("up",)):
        name = "sali0000000" if words == ("up",) else first.host_name
        pool.net.ip("link", "set", name, *words)
    second = Sandbox("new-container-id", first.inside, first.pod, first.namespace)
    pool.add(second).error(999)
    assert pool.holds(first) == [networks[0].partition("/")[0]]
    assert pool.holds(second) == []
    check_endpoint(pool, first, networks)
    pool.delete(first).silent()
    check_last_gone(pool, first)


def test_k8s_036_037_a_second_interface_and_a_pod_whose_name_looks_alike(pool: PodHost) -> None:
    """K8S-036, K8S-037."""
    first = pool.pod()
    pool.add(first).result()
    again = first.with_interface("eth1")
    networks = networks_of(pool.add(again).result())
    assert list(pool.stored()) == [endpoint_key(first)]
    check_endpoint(pool, again, networks)

    other = pool.pod(f"{first.pod}-1", identity="random-cid")
    others = networks_of(pool.add(other).result())
    assert set(pool.stored()) == {endpoint_key(first), endpoint_key(other)}
    check_endpoint(pool, other, others)
    check_endpoint(pool, again, networks)

    for one in (again, other):
        pool.delete(one).silent()
    check_last_gone(pool, again, other)


def test_k8s_038_the_service_account_is_the_endpoints(pods: PodHost) -> None:
    pods.pools("172.24.0.0/24")
    pods.cluster.add_account("test", "testserviceaccount")
    ports = [{"name": "anamedport", "containerPort": 555}]
    sandbox = pods.pod(account="testserviceaccount", ports=ports)
    networks = networks_of(pods.add(sandbox).result())
    check_endpoint(pods, sandbox, networks, account="testserviceaccount", ports=[NAMED_PORT])
    pods.delete(sandbox).silent()
    check_last_gone(pods, sandbox)


def test_k8s_039_the_name_that_a_controller_generated_from(pool: PodHost) -> None:
    sandbox = pool.pod(generateName="test-gen-name", ports=[{"name": "anamedport", "containerPort": 555}])
    networks = networks_of(pool.add(sandbox).result())
    check_endpoint(pool, sandbox, networks, ports=[NAMED_PORT], metadata={"generateName": "test-gen-name"})
    assert pool.endpoint(sandbox)["metadata"]["labels"] == LABELS
