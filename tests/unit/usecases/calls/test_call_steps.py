"""Small steps of a call: readiness, gates, the host lock, the own namespace, endpoints, undo."""

from __future__ import annotations

import pytest

from domain.cni.errors import CniError
from domain.ipam.block import Owner
from domain.ipam.errors import StillContended
from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from domain.workload.identity import Identity, endpoint_name
from ports.clock import Deadline
from ports.datastore import ClusterInformationKey, HandleKey, WorkloadEndpointKey
from ports.errors import Expired, Refused, Unauthorized, Unavailable
from usecases.calls.cluster_ready import CLUSTER, cluster_information, pass_gates, require_ready
from usecases.calls.find_endpoint import endpoints_like, matching
from usecases.calls.safeguards import host_lock, refuse_own_namespace
from usecases.ipam.work import Work
from worlds.one_node import NEVER

# --- readiness -------------------------------------------------------------------------------------------------------


def test_a_ready_cluster_is_let_pass(node):
    require_ready(cluster_information(node.datastore, NEVER))


@pytest.mark.parametrize("ready", [False, None])
def test_a_cluster_that_is_not_ready_or_does_not_say_is_refused(node, ready):
    """G1."""
    node.set_ready(ready=ready)
    with pytest.raises(CniError) as caught:
        require_ready(cluster_information(node.datastore, NEVER))
    assert (caught.value.code, caught.value.message) == (999, "Calico is currently not ready to process requests")


def test_a_cluster_without_information_is_refused(node):
    node.remove(CLUSTER)
    with pytest.raises(CniError) as caught:
        require_ready(cluster_information(node.datastore, NEVER))
    assert caught.value.message == (
        "error getting ClusterInformation: resource does not exist: ClusterInformation(default)"
    )


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (Unavailable("no route to host"), Unavailable, "error getting ClusterInformation: no route to host"),
        (Unauthorized("no"), Refused, "error getting ClusterInformation: connection is unauthorized: no"),
    ],
)
def test_a_failing_datastore_is_met_at_this_step(node, error, kind, text):
    node.fail("fetch", ClusterInformationKey, error)
    with pytest.raises(kind) as caught:
        cluster_information(node.datastore, NEVER)
    assert str(caught.value) == text
    assert caught.value.__cause__ is error


def test_waiting_for_gates_is_not_charged_to_the_call(node):
    node.readiness.make_ready("http://a/", after=12)
    node.readiness.make_ready("/b", after=0)
    call = node.call(readiness_gates=("http://a/", "/b"), seconds=60)
    assert pass_gates(call, node.runtime()) == Deadline(60.0 + node.clock.monotonic())
    assert node.clock.monotonic() >= 12
    assert set(node.readiness.probes) == {"http://a/", "/b"}


def test_a_gate_that_stays_shut_ends_the_call_after_half_a_minute(node):
    """spec: cni-plugin 4.1, step 6."""
    call = node.call(readiness_gates=("http://a/",), seconds=5)
    with pytest.raises(Expired, match="readiness gate http://a/"):
        pass_gates(call, node.runtime())
    assert node.clock.monotonic() == 30


# --- the host lock ---------------------------------------------------------------------------------------------------


def test_the_host_lock_is_held_for_the_block(node):
    with host_lock(node.call(), node.runtime()) as held:
        assert held
        assert node.lock.held_now
    assert not node.lock.held_now


def test_a_third_of_the_calls_time_is_waited_for_the_lock_then_it_goes_on_without(node):
    """L03."""
    node.lock.hold_elsewhere()
    with host_lock(node.call(seconds=60), node.runtime()) as held:
        assert not held
    assert node.clock.monotonic() == 20


# --- the own namespace -----------------------------------------------------------------------------------------------


def test_the_plugins_own_namespace_is_refused(node):
    """G2."""
    call = node.call(netns="/proc/self/ns/net")
    with pytest.raises(CniError) as caught:
        refuse_own_namespace(call.request, node.runtime())
    assert (caught.value.code, caught.value.message) == (
        8,
        "plugin's netns and netns from CNI_NETNS should not be the same",
    )


@pytest.mark.parametrize("fields", [{"netns": "/proc/self/ns/net", "netns_override": True}, {"netns": ""}, {}])
def test_other_namespaces_none_and_an_explicit_override_are_fine(node, fields):
    refuse_own_namespace(node.call(**fields).request, node.runtime())


# --- endpoints -------------------------------------------------------------------------------------------------------

IDENTITY = Identity("cni", "node1", namespace="default", container_id="c1", endpoint="eth0")


def test_a_containers_endpoint_is_found_whatever_its_interface_and_look_alikes_are_not(node):
    """G17."""
    for name in ("node1-cni-c1-net1", "node1-cni-c1--x-eth0", "node1-cni-c10-eth0"):
        node.put(WorkloadEndpointKey("default", name), WorkloadEndpoint(Metadata(name, "default")))
    listed = node.datastore.list(endpoints_like(IDENTITY), NEVER)
    assert [one.key.name for one in listed] == ["node1-cni-c1--x-eth0", "node1-cni-c1-net1"]
    assert matching(IDENTITY, listed).key.name == "node1-cni-c1-net1"
    assert matching(IDENTITY, listed[:1]) is None


def test_an_identity_without_a_name_says_what_is_missing():
    with pytest.raises(CniError) as caught:
        endpoints_like(IDENTITY.replace(node=""))
    assert caught.value.message.startswith("error constructing WorkloadEndpoint prefix: ")
    with pytest.raises(CniError) as caught:
        endpoint_name(IDENTITY.replace(endpoint="-x"))
    assert caught.value.message.startswith("error constructing WorkloadEndpoint name: ")
    assert endpoint_name(IDENTITY) == "node1-cni-c1-eth0"


# --- undo ------------------------------------------------------------------------------------------------------------


def test_everything_is_taken_back_newest_first_and_once(node):
    done = []
    undo = node.undo()
    for what in ("address", "device", "endpoint"):
        undo.register(what, lambda deadline, what=what: done.append((what, deadline)))
    node.clock.advance(100)  # the call's own deadline has long passed
    undo.run()
    undo.run()
    assert done == [(what, Deadline(110.0)) for what in ("endpoint", "device", "address")]
    assert node.log.shown("info") == ["Undone step=endpoint", "Undone step=device", "Undone step=address"]


def test_a_step_that_uses_up_the_budget_leaves_the_others_some_time(node):
    def hang(deadline):
        node.clock.advance(deadline.left(node.clock.monotonic()))
        raise Unavailable("no answer")

    left = []
    undo = node.undo()
    undo.register("device", lambda deadline: left.append(deadline.left(node.clock.monotonic())))
    for _ in range(2):
        undo.register("address", hang)
    undo.run()
    assert (left, node.clock.monotonic()) == ([2.0], 12.0)


@pytest.mark.parametrize("error", [Unavailable("away"), StillContended("x")])
def test_a_step_that_fails_keeps_no_other_from_being_tried(node, error):
    done = []

    def away(_deadline):
        raise error

    undo = node.undo()
    undo.register("address", lambda _deadline: done.append("address"))
    undo.register("device", away)
    undo.run()
    assert done == ["address"]
    assert node.log.shown("error") == [f"Could not undo error={error} step=device"]


def test_what_is_kept_is_not_undone(node):
    undo = node.undo()
    undo.register("address", lambda _deadline: pytest.fail("undone"))
    undo.keep()
    undo.run()


def test_work_can_go_on_under_another_deadline(node):
    work = Work.on(node.runtime(), Deadline(1.0))
    later = work.until(Deadline(2.0))
    assert (later.deadline, later.datastore) == (Deadline(2.0), work.datastore)
    assert later.datastore.get(HandleKey("x"), later.deadline) is None
    assert str(Owner("host", "x")) == "host:x"
