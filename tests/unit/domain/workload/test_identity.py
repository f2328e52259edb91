"""Which workload a call speaks of (spec: cni-plugin 3, first table; G7)."""

from __future__ import annotations

import pytest

from domain.cni.request import CniArgs, Request
from domain.workload.identity import Identity, identify


def request(command="ADD"):
    return Request(command, "cid", "/var/run/netns/x", "eth0", "", ("/opt/cni/bin",))


def test_a_pod_name_with_a_namespace_is_a_kubernetes_workload():
    args = CniArgs(pod_name="web-0", pod_namespace="prod")
    assert identify(request(), args, (), "node-a") == Identity(
        orchestrator="k8s", node="node-a", pod="web-0", namespace="prod", container_id="cid", endpoint="eth0"
    )


@pytest.mark.parametrize("args", [CniArgs(), CniArgs(pod_name="web-0"), CniArgs(pod_namespace="prod")])
def test_anything_else_is_a_plain_cni_workload_in_namespace_default(args):
    assert identify(request(), args, (), "node-a") == Identity(
        orchestrator="cni", node="node-a", namespace="default", container_id="cid", endpoint="eth0"
    )


def test_the_test_namespace_is_used_outside_kubernetes():
    assert identify(request(), CniArgs(test_namespace="t"), (), "n").namespace == "t"


@pytest.mark.parametrize("command", ["ADD", "DEL", "CHECK"])
def test_a_mesos_namespace_label_counts_for_every_verb(command):
    """G7: the original honours it on ADD only, and leaks the endpoint."""
    labels = (("projectcalico.org/namespace", "/team a/"),)
    assert identify(request(command), CniArgs(test_namespace="t"), labels, "n").namespace == "team-a"
