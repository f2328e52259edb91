"""Two implementations share a node and a Kubernetes cluster, in either group of resources: pods and their addresses.

Invariant: whichever of the two made a call, records, pods and kernel are as if one implementation had made them all.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from integration.plugin.store import NODE
from integration.pods.checks import POD_IP, POD_IPS, check_gone
from integration.pods.world import Sandbox
from interop.pair import BLOCK, NETWORK, Implementation, PodPair

POOL = "10.20.0.0/24"
WAYS = pytest.mark.parametrize("way", [0, 1], ids=["ours first", "peer first"])
CONTAINER_ID = "cni.projectcalico.org/containerID"


def pod(pair: PodPair, **more: Any) -> Sandbox:
    return pair.pods.pod(**more)


def say(pair: PodPair, sandbox: Sandbox, address: str) -> None:
    """The pod's annotations, the container and the host have that address, and the handle counts it."""
    said = pair.pods.annotations(sandbox)
    assert said[POD_IP] == said[POD_IPS] == f"{address}/32"
    assert said[CONTAINER_ID] == sandbox.identity
    assert sandbox.inside.addresses("eth0") == [f"{address}/32"]
    assert [(route["dst"], route["dev"]) for route in pair.host.net.routes(4)] == [(address, sandbox.host_name)]
    assert address in pair.pods.holds(sandbox)
    pair.checks()


def none_left(pair: PodPair, *sandboxes: Sandbox) -> None:
    assert pair.host.left() == {}
    for sandbox in sandboxes:
        assert sandbox.inside.names() == {"lo"}
    pair.checks()


@WAYS
def test_a_pod_added_by_one_and_deleted_by_the_other(pod_pair: PodPair, way: int) -> None:
    adder, other = pod_pair.both_ways()[way]
    pod_pair.reset(POOL)
    sandbox = pod(pod_pair)
    address = pod_pair.add(adder, sandbox)
    say(pod_pair, sandbox, address)
    pod_pair.delete(other, sandbox)
    said = pod_pair.pods.annotations(sandbox)
    assert (said[POD_IP], said[POD_IPS], said[CONTAINER_ID]) == ("", "", sandbox.identity)
    none_left(pod_pair, sandbox)
    pod_pair.delete(adder, sandbox)
    pod_pair.delete(other, sandbox)
    none_left(pod_pair, sandbox)


@WAYS
def test_a_sandbox_that_one_adds_again_after_the_other(pod_pair: PodPair, way: int) -> None:
    """Which address it has then is each one's own affair; it has one, and a DEL leaves none."""
    adder, other = pod_pair.both_ways()[way]
    pod_pair.reset(POOL)
    sandbox = pod(pod_pair)
    pod_pair.add(adder, sandbox)
    say(pod_pair, sandbox, pod_pair.add(other, sandbox))
    pod_pair.delete(adder, sandbox)
    none_left(pod_pair, sandbox)


@WAYS
def test_a_late_del_of_the_first_sandbox_leaves_the_second_alone(pod_pair: PodPair, way: int) -> None:
    one, other = pod_pair.both_ways()[way]
    pod_pair.reset(POOL)
    first = pod(pod_pair)
    pod_pair.add(one, first)
    second = pod_pair.pods.sandbox(first.pod)
    address = pod_pair.add(other, second)
    pod_pair.delete(other, first)
    assert pod_pair.pods.holds(first) == []
    assert pod_pair.pods.annotations(second)[POD_IPS] == f"{address}/32"
    assert second.inside.addresses("eth0") == [f"{address}/32"]
    pod_pair.checks()
    pod_pair.delete(one, second)
    none_left(pod_pair, second)


@WAYS
def test_a_fixed_address_of_a_pod(pod_pair: PodPair, way: int) -> None:
    """`cni.projectcalico.org/ipAddrs`."""
    one, other = pod_pair.both_ways()[way]
    pod_pair.reset(POOL)
    sandbox = pod(pod_pair, annotations={"cni.projectcalico.org/ipAddrs": '["10.20.0.77"]'})
    assert pod_pair.add(one, sandbox) == "10.20.0.77"
    pod_pair.delete(other, sandbox)
    assert pod_pair.add(other, sandbox) == "10.20.0.77"
    pod_pair.delete(one, sandbox)
    none_left(pod_pair, sandbox)


@WAYS
def test_an_address_of_a_pod_taken_by_one_is_freed_by_the_other(pod_pair: PodPair, way: int) -> None:
    """`calico-ipam` alone."""
    adder, other = pod_pair.both_ways()[way]
    pod_pair.reset(POOL)
    containers = [pod_pair.container(number) for number in range(3)]
    addresses = {pod_pair.add(side, one, "calico-ipam") for side, one in zip((adder, other, adder), containers)}
    assert len(addresses) == 3
    assert len(pod_pair.store.blocks()) == 1
    for side, one in zip((other, adder, other), containers):
        pod_pair.delete(side, one, "calico-ipam")
    none_left(pod_pair)


# --- records --------------------------------------------------------------------------------------------------------


@WAYS
def test_the_objects_of_both_look_alike(pod_pair: PodPair, way: int) -> None:
    """Names, labels, annotations, and the members of what is specified, whoever has created them."""
    seen: list[dict[str, Any]] = []
    for side in pod_pair.both_ways()[way]:
        pod_pair.reset(POOL)
        sandbox = pod(pod_pair)
        pod_pair.add(side, sandbox)
        found = json.loads(
            json.dumps(pod_pair.pods.cluster.calico(pod_pair.pods.kind)).replace(sandbox.identity, "<container>")
        )
        seen.append({name: shape(one) for name, one in found.items() if name.startswith(("ipam", "blockaff"))})
        pod_pair.delete(side, sandbox)
    assert seen[0] == seen[1]


def shape(one: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: one["metadata"].get(name) for name in ("name", "labels", "annotations", "finalizers")}
    spec = {name: one["spec"][name] for name in one["spec"] if name in {"deleted", "affinity", "state", "node", "type"}}
    attributes = [(sorted(entry), sorted(entry["secondary"])) for entry in one["spec"].get("attributes", [])]
    return metadata | {"members": sorted(one["spec"]), "spec": spec, "attributes": attributes}


@WAYS
def test_an_object_of_one_is_marked_as_deleted_or_gone_for_the_other(pod_pair: PodPair, way: int) -> None:
    """The original marks what it deletes before it does. Between the two it may have died: for both it is gone."""
    one, other = pod_pair.both_ways()[way]
    pod_pair.reset(POOL)
    first, second = pod_pair.container(1), pod_pair.container(2)
    pod_pair.add(one, first, "calico-ipam")
    (handle,) = [key for key in pod_pair.store.texts() if "/handle/" in key]
    record = json.loads(pod_pair.text("/handle/"))
    pod_pair.delete(one, first, "calico-ipam")
    pod_pair.store.put(handle, record | {"deleted": True})
    pod_pair.delete(other, first, "calico-ipam")
    assert pod_pair.store.handles() == {}
    pod_pair.store.put(handle, record | {"deleted": True})
    pod_pair.add(other, first, "calico-ipam")
    assert pod_pair.store.handles()[f"{NETWORK}.{first.identity}"]["deleted"] is False
    pod_pair.add(one, second, "calico-ipam")
    for container in (first, second):
        pod_pair.delete(one, container, "calico-ipam")
    none_left(pod_pair)


@WAYS
def test_a_block_is_changed_in_what_the_call_is_about_only(pod_pair: PodPair, way: int) -> None:
    one, other = pod_pair.both_ways()[way]
    pod_pair.reset(POOL)
    pod_pair.add(one, pod_pair.container(1), "calico-ipam")
    old = json.loads(pod_pair.text(BLOCK))
    pod_pair.add(other, pod_pair.container(2), "calico-ipam")
    pod_pair.delete(other, pod_pair.container(2), "calico-ipam")
    new = json.loads(pod_pair.text(BLOCK))
    assert new.pop("sequenceNumber") > old.pop("sequenceNumber")
    freed = old["unallocated"][0]
    assert new.pop("unallocated") == [*(number for number in old.pop("unallocated") if number != freed), freed]
    assert new == old
    pod_pair.checks()


@WAYS
def test_blocks_of_either_are_borrowed_from_by_the_other(pod_pair: PodPair, way: int) -> None:
    one, other = pod_pair.both_ways()[way]
    pod_pair.reset("10.20.0.0/29", block_size=30, nodes=("node-b",))
    place = {one: NODE, other: "node-b"}
    turns = [one, other, one, other, one, one, other, other]  # the last of each has to borrow
    taken = [
        pod_pair.add(side, pod_pair.container(number), "calico-ipam", nodename=place[side])
        for number, side in enumerate(turns)
    ]
    assert len(set(taken)) == 8
    assert pod_pair.affinities() == {f"{NODE} 10.20.0.0/30": "confirmed", "node-b 10.20.0.4/30": "confirmed"} or (
        pod_pair.affinities() == {f"{NODE} 10.20.0.4/30": "confirmed", "node-b 10.20.0.0/30": "confirmed"}
    )
    for number, side in enumerate(turns):
        pod_pair.delete(other if side is one else one, pod_pair.container(number), "calico-ipam", nodename=place[side])
    none_left(pod_pair)


def test_pods_of_both_at_once(pod_pair: PodPair) -> None:
    """Four processes, in blocks of eight, and each pod is deleted by the other one."""
    pod_pair.reset(POOL, block_size=29)
    sandboxes = [pod(pod_pair) for _ in range(12)]

    def in_turn(verb: str, first: int) -> list[str]:
        def one(numbered: tuple[int, Sandbox]) -> str:
            number, sandbox = numbered
            side: Implementation = pod_pair.sides[(number + first) % 2]
            if verb == "ADD":
                return pod_pair.add(side, sandbox)
            pod_pair.delete(side, sandbox)
            return ""

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, enumerate(sandboxes)))

    assert len(set(in_turn("ADD", 0))) == 12
    pod_pair.checks()
    in_turn("DEL", 1)
    for sandbox in sandboxes:
        check_gone(pod_pair.pods, sandbox)
    none_left(pod_pair, *sandboxes)
