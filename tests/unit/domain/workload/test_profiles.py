"""The profile made for a network that has none (spec: cni-plugin 9)."""

from __future__ import annotations

from domain.resource import Metadata
from domain.workload.endpoint import Profile, Rule, allow_profile


def test_endpoints_of_a_plain_network_reach_each_other_and_everything_out():
    assert allow_profile("net1", "cni") == Profile(
        Metadata("net1"), (Rule("Allow", "has(net1)"),), (Rule("Allow"),), {"net1": ""}
    )


def test_under_kubernetes_anyone_may_come_in():
    assert allow_profile("net1", "k8s").ingress == (Rule("Allow"),)
