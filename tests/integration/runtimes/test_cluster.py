"""Two nodes of a real Kubernetes, which have their network from us by one manifest: what a cluster goes through.

After each of these no pod is there and nothing of it: no link, no handle, no address, and `tortie ipam check` is clean.

TORTIE_PEER is a folder of the original's `calico` and `calico-ipam`: node-b then uses those.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from integration.runtimes.cluster import KubeCluster, addresses, is_ready, template
from integration.runtimes.conftest import need
from integration.runtimes.containerd import BIN
from integration.runtimes.document import write
from integration.runtimes.kube_node import KubeNode
from integration.runtimes.nodes import Rack
from integration.runtimes.sightings import summary, table
from integration.runtimes.starts import Starts

PEER = os.environ.get("TORTIE_PEER", "")
EACH_START = Path(__file__).resolve().parents[3] / "build" / "cluster" / "pod-starts.md"
KUBECONFIG = "/etc/cni/net.d/calico-kubeconfig"


@pytest.fixture(scope="module")
def cluster(rack: Rack, programs: Path) -> Iterator[KubeCluster]:
    need("containerd", "containerd-shim-runc-v2", "ctr", "runc", "busybox", "iptables")
    try:
        cluster = KubeCluster(rack, programs)
    except RuntimeError as error:
        pytest.skip(f"NOT TRIED: {error}")
    with cluster:
        for name in ("node-a", "node-b"):
            cluster.add_node(name)
        cluster.install()
        cluster.await_installed(2)
        if PEER:
            for name in ("calico", "calico-ipam"):
                cluster.nodes["node-b"].node.run("install", "-m755", str(Path(PEER, name)), f"{BIN}/{name}")
        yield cluster


@pytest.fixture(autouse=True)
def _nothing_is_left(cluster: KubeCluster) -> Iterator[None]:
    yield
    cluster.clear()
    cluster.await_nothing()


def on(cluster: KubeCluster, pod: dict[str, Any]) -> KubeNode:
    return cluster.nodes[pod["spec"]["nodeName"]]


def assert_all_reach_all(cluster: KubeCluster, pods: list[dict[str, Any]]) -> None:
    """Over both families, within nodes and between them; and nothing is lost on the way."""
    cluster.await_that(cluster.routes.are_known, "each node knows where the others' blocks are")

    def reach(pod: dict[str, Any]) -> list[str]:
        lost = []
        for other in pods:
            assert len(addresses(other)) == 2
            for address in addresses(other):
                code, said = on(cluster, pod).execute(pod, "ping", "-c3", "-i0.2", "-W5", address)
                if code != 0 or " 0% packet loss" not in said:
                    lost.append(f"{pod['metadata']['name']} to {other['metadata']['name']}: {said}")
        return lost

    with ThreadPoolExecutor(4) as at_once:
        assert [line for lost in at_once.map(reach, pods) for line in lost] == []


def spread(pods: list[dict[str, Any]]) -> set[str]:
    return {pod["spec"].get("nodeName", "") for pod in pods}


def test_the_manifest_has_put_it_there(cluster):
    for node in cluster.nodes.values():
        assert node.node.run("stat", "-c", "%a %U", KUBECONFIG).split() == ["600", "root"]
        assert "calico" in node.node.run("cat", "/etc/cni/net.d/10-calico.conflist")
        if not PEER:
            assert node.node.run(f"{BIN}/calico", "-v")


def test_pods_of_both_nodes_reach_each_other(cluster):
    cluster.deploy("web", 4)
    pods = cluster.await_pods("web", 4)
    assert spread(pods) == {"node-a", "node-b"}
    assert_all_reach_all(cluster, pods)


def test_a_deployment_is_scaled_and_rolled(cluster):
    networked: dict[str, float] = {}
    with ExitStack() as timing:
        for node in cluster.nodes.values():
            timing.enter_context(node.timed(networked))
        starts = timing.enter_context(Starts(cluster.client))
        cluster.deploy("web", 5)
        cluster.await_pods("web", 5)
        cluster.change("web", replicas=30)
        cluster.await_pods("web", 30)
        cluster.change("web", replicas=12)
        cluster.await_pods("web", 12)
        cluster.change("web", template=template("web", turn="2"))
        cluster.await_that(
            lambda: all(p["metadata"]["annotations"].get("turn") for p in cluster.running("web")), "roll"
        )
        pods = cluster.await_pods("web", 12)
    assert spread(pods) == {"node-a", "node-b"}
    assert len({address for pod in pods for address in addresses(pod)}) == 24
    assert starts.sightings.doubled == []
    started = starts.sightings.starts()
    assert len(started.keys() & networked.keys()) >= 42
    EACH_START.parent.mkdir(parents=True, exist_ok=True)
    EACH_START.write_text(table(started, networked) + "\n")
    print(f"\n{summary(started, networked)}\nEach of them: {EACH_START}")
    if not PEER:
        write("pod starts", summary(started, networked))


def test_a_stateful_set_is_restarted(cluster):
    cluster.deploy("db", 3, kind="StatefulSet", podManagementPolicy="Parallel")
    before = {pod["metadata"]["uid"] for pod in cluster.await_pods("db", 3)}
    cluster.change("db", kind="StatefulSet", template=template("db", turn="2"))
    cluster.await_that(
        lambda: (
            not before & {pod["metadata"]["uid"] for pod in cluster.running("db")} and len(cluster.running("db")) == 3
        ),
        "three new ones",
    )
    pods = cluster.await_pods("db", 3)
    assert {pod["metadata"]["name"] for pod in pods} == {"db-0", "db-1", "db-2"}
    assert_all_reach_all(cluster, pods)


def test_a_node_is_drained(cluster):
    cluster.deploy("web", 8)
    cluster.await_pods("web", 8)
    cluster.client.patch("/api/v1/nodes/node-b", {"spec": {"unschedulable": True}})
    try:
        for pod in cluster.pods("web"):
            if pod["spec"]["nodeName"] == "node-b":
                name = pod["metadata"]["name"]
                eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
                cluster.client.create(f"/api/v1/namespaces/default/pods/{name}/eviction", eviction)
        cluster.await_that(lambda: spread(cluster.pods("web")) == {"node-a"}, "all are on node-a")
        cluster.await_pods("web", 8)
        cluster.await_that(lambda: cluster.nodes["node-b"].pod_links() == [], "node-b has no link of a pod")
    finally:
        cluster.client.patch("/api/v1/nodes/node-b", {"spec": {"unschedulable": None}})


def test_a_node_is_lost_and_comes_back(cluster):
    cluster.deploy("web", 6)
    pods = cluster.await_pods("web", 6)
    assert spread(pods) == {"node-a", "node-b"}
    lost = cluster.nodes["node-b"]
    lost.lose()
    cluster.await_that(
        lambda: len([p for p in cluster.running("web") if p["spec"]["nodeName"] == "node-a"]) == 6, "moved"
    )
    lost.come_back()
    cluster.await_ready_nodes(2)
    pods = cluster.await_pods("web", 6)
    assert spread(pods) == {"node-a"}
    cluster.change("web", replicas=10)
    assert_all_reach_all(cluster, cluster.await_pods("web", 10)[-4:])


def test_addresses_stay_with_the_names_of_pods_that_ask_for_it(cluster):
    """F01: over a restart, and when a node is lost, whose pods are forgotten by force, and which comes back late."""

    def here(pods: list[dict[str, Any]]) -> dict[str, list[str]]:
        return {pod["metadata"]["name"]: addresses(pod) for pod in pods}

    keep = {"tortie.io/keep-addresses": "true"}
    kind = {"kind": "StatefulSet"}
    cluster.deploy("kept", 4, podManagementPolicy="Parallel", template=template("kept", **keep), **kind)
    pods = cluster.await_pods("kept", 4)
    had, before = here(pods), {pod["metadata"]["uid"] for pod in pods}
    assert spread(pods) == {"node-a", "node-b"}
    cluster.change("kept", template=template("kept", turn="2", **keep), **kind)
    cluster.await_that(
        lambda: not before & {pod["metadata"]["uid"] for pod in cluster.pods("kept")}, "all of them are new", 240
    )
    pods = cluster.await_pods("kept", 4)
    assert here(pods) == had
    lost = cluster.nodes["node-b"]
    cluster.client.patch("/api/v1/nodes/node-b", {"spec": {"unschedulable": True}})
    lost.lose()
    for pod in pods:
        if pod["spec"]["nodeName"] == "node-b":
            cluster.client.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
    try:
        pods = cluster.await_pods("kept", 4, 240)
        assert spread(pods) == {"node-a"}
        assert here(pods) == had
        lost.come_back()
        cluster.await_ready_nodes(2)
        cluster.await_that(lambda: lost.results() == [], "its late DELs have come")
    finally:
        cluster.client.patch("/api/v1/nodes/node-b", {"spec": {"unschedulable": None}})
    assert here(cluster.await_pods("kept", 4)) == had
    assert_all_reach_all(cluster, cluster.running("kept"))
    cluster.delete("kept", "StatefulSet")
    cluster.await_that(lambda: cluster.tortie("ipam", "show", "--kept", "-o", "name").stdout.count("ip/") == 8, "kept")
    for name in had:
        released = cluster.tortie("ipam", "release", "--kept", f"default/{name}")
        assert released.returncode == 0, released


def test_the_api_server_is_restarted_under_load(cluster):
    cluster.deploy("web", 20)
    cluster.await_that(lambda: cluster.running("web"), "the first one runs")
    cluster.server.kill()
    time.sleep(2)
    cluster.server.start()
    pods = cluster.await_pods("web", 20, 240)
    assert len({address for pod in pods for address in addresses(pod)}) == 40
    cluster.change("web", replicas=2)
    cluster.await_that(lambda: len(cluster.pods("web")) < 15, "some go")
    cluster.server.kill()
    cluster.server.start()
    cluster.await_pods("web", 2, 240)


def test_the_token_expires_under_load(cluster):
    """C14: whoever renews it has failed; once the node's agent runs again, its installer brings another.

    The server lets a token pass for a minute after its end.
    """
    short = cluster.server.sign_token("kube-system", "calico-cni-plugin", seconds=-48)
    for node in cluster.nodes.values():
        path = cluster.server.kubeconfig(node.node.folder / "short.kubeconfig", token=short)
        node.node.write(KUBECONFIG, path.read_text(), 0o600)
    cluster.deploy("web", 4)
    cluster.await_pods("web", 4)
    refused = "Unauthorized"
    cluster.change("web", replicas=8)
    time.sleep(12)
    cluster.change("web", replicas=14)
    cluster.await_that(lambda: refused in cluster.report(), "ADD is refused")
    for pod in cluster.client.list("/api/v1/namespaces/kube-system/pods"):
        if pod["metadata"]["name"].startswith("tortie-node-"):
            cluster.client.delete(f"/api/v1/namespaces/kube-system/pods/{pod['metadata']['name']}")
    cluster.await_pods("web", 14, 240)


@pytest.mark.skipif(not PEER, reason="NOT TRIED: no PEER=folder of the original's calico and calico-ipam")
def test_the_original_is_on_the_other_node(cluster):
    assert shutil.which(f"{PEER}/calico")
    cluster.deploy("web", 12)
    pods = cluster.await_pods("web", 12)
    assert spread(pods) == {"node-a", "node-b"}
    assert_all_reach_all(cluster, pods[:3] + pods[-3:])
    assert all(is_ready(pod) for pod in pods)
