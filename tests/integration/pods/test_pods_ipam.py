"""Conformance IPAM-019 and IPAM-020, and what calico-ipam, called directly, asks Kubernetes when records are in etcd.

The rest of IPAM-* runs on Kubernetes as tests/integration/plugin does on any datastore.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration.plugin.host import Answer, Container
from integration.plugin.store import NODE
from integration.pods.world import PodHost

CONTAINER = Container("2ad1c4d6-9f6f-4a53-8a3e-0f9f6d6f2c11", "b", "c")
LABELS = {"affinity-type", "hostname-hash", "ip-version"}
# Its own /var/run/calico, kept for all calls of a test.
OWN_FOLDER = 'mkdir -p {0} /var/run/calico; mount --bind {0} /var/run/calico; exec "$@"'


def ask(pods: PodHost, verb: str, args: str = "", container: Container = CONTAINER, **ipam: Any) -> Answer:
    own = str(pods.folder / "run-calico")
    environment = pods.environment(verb, container, CNI_ARGS=args, CNI_PATH="d")
    netconf = json.dumps(pods.netconf(ipam={"type": "calico-ipam", **ipam}))
    return pods.raw(environment, netconf, program="calico-ipam", through=OWN_FOLDER.replace("{0}", own))


def old_affinity(pods: PodHost, cidr: str) -> None:
    """As a version that knew no labels has left it."""
    deleted: Any = False if pods.kind == "v3" else "false"
    spec = {"cidr": cidr, "node": NODE, "state": "confirmed", "deleted": deleted}
    pods.cluster.add(pods.kind, "blockaffinities", affinity_name(cidr), spec)


def affinity_name(cidr: str) -> str:
    return f"{NODE}-{cidr.replace('.', '-').replace('/', '-')}"


def labels(pods: PodHost, cidr: str) -> set[str]:
    affinity = pods.cluster.calico(pods.kind)[f"blockaffinities/{affinity_name(cidr)}"]
    return {name.removeprefix("projectcalico.org/") for name in affinity["metadata"].get("labels", {})}


@pytest.mark.stores("v1", "v3")
def test_ipam_019_020_old_affinities_are_labelled_once(pods: PodHost) -> None:
    """IPAM-019, IPAM-020."""
    pods.pools("192.168.0.0/16")
    touched = pods.folder / "run-calico" / "cni" / "ipam_upgraded"
    other = Container("another", "b", "c")
    old_affinity(pods, "10.11.0.0/26")
    ask(pods, "ADD", "IP=192.168.123.123").result()
    assert touched.exists()
    assert labels(pods, "10.11.0.0/26") == LABELS
    old_affinity(pods, "10.11.0.64/26")
    ask(pods, "ADD", "IP=192.168.123.124", other).result()
    assert labels(pods, "10.11.0.64/26") == set()
    for container in (CONTAINER, other):
        ask(pods, "DEL", container=container).silent()
    assert pods.store.allocated() == {}


def test_pools_are_chosen_by_the_labels_of_node_and_namespace(pods: PodHost) -> None:
    """The node is where Calico's records are, the namespace always in Kubernetes."""
    pods.pools("10.20.0.0/24", nodeSelector="rack == 'none'")
    pods.pools("10.21.0.0/24", namespaceSelector="team == 'red'")
    pods.cluster.add_namespace("red", labels={"team": "red"})
    answers = []
    for namespace in ("red", "test"):
        sandbox = pods.pod(namespace=namespace)
        answers.append(pods.add(sandbox))
    assert answers[0].result()["ips"][0]["address"].startswith("10.21.0.")
    answers[1].error(999)
