"""Conformance K8S-040 to K8S-043: readiness gates, and the connection test."""

from __future__ import annotations

import json

import pytest

from integration.plugin.host import Answer
from integration.pods.checks import check_nothing_stored
from integration.pods.world import PodHost, Sandbox
from patience import at_best
from services.http_stub import HttpStub, reply
from services.tcp_proxy import TcpProxy


@pytest.fixture
def pool(pods: PodHost) -> PodHost:
    pods.pools("10.0.0.0/24")
    return pods


def test_k8s_040_readiness_gates_must_be_a_list(pool: PodHost) -> None:
    sandbox = pool.pod()
    gates = "http://localhost:9099/invalid_x12vx"
    assert pool.add(sandbox, readiness_gates=gates).exit == 1
    check_nothing_stored(pool)
    pool.delete(sandbox, readiness_gates=gates)


def test_k8s_041_a_gate_that_answers_lets_the_pod_pass(pool: PodHost) -> None:
    """At once: the original asks for the first time after five seconds (G6)."""
    with HttpStub() as stub, TcpProxy(stub.port, netns=pool.net.path) as proxy:
        stub.answer = lambda _asked: reply(200)
        at_best(5, lambda: pool.add(pool.pod(), readiness_gates=[proxy.url]).result())
    assert stub.asked


def test_k8s_042_the_connection_test_is_silent_when_all_is_well(pool: PodHost) -> None:
    pool.connection_test(json.dumps(pool.netconf())).silent()


def test_k8s_043_the_connection_test_fails_without_a_datastore(pool: PodHost) -> None:
    netconf = pool.netconf(**pool.store.nowhere())
    answer = pool.raw({"CNI_COMMAND": "VERSION"}, json.dumps(netconf), "-t")
    assert answer.error(100, "data store connection failed")["details"]


@pytest.mark.stores("v1", "v3")
def test_use_pod_cidr_leaves_addresses_to_the_nodes_and_gives_back_what_there_is(pool: PodHost) -> None:
    """The original's error. A DEL of what was added before the setting came ends the container all the same."""
    late, early = pool.pod("late"), pool.pod("early")

    def call(verb: str, sandbox: Sandbox) -> Answer:
        environment = pool.environment(verb, sandbox, USE_POD_CIDR="true")
        return pool.raw(environment, json.dumps(pool.netconf()))

    pool.add(early).result()
    error = call("ADD", late).error(999, "operation Get is not supported on IPAMConfigKey()")
    assert '"usePodCidr"' in error["details"]
    for sandbox in (late, early):
        call("DEL", sandbox).silent()
    check_nothing_stored(pool)
