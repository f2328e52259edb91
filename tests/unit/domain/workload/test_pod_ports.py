"""Ports of pods: K8S-003, K8S-038."""

from __future__ import annotations

import pytest

from domain.workload.endpoint import Port
from domain.workload.pod import ContainerPort
from domain.workload.pod_endpoint import endpoint_ports


@pytest.mark.parametrize(
    ("declared", "listed"),
    [
        (ContainerPort(555, "anamedport"), Port("anamedport", "TCP", 555)),
        (ContainerPort(53, "dns", "UDP"), Port("dns", "UDP", 53)),
        (ContainerPort(9, "", "SCTP", 9000, "10.0.0.1"), Port("", "SCTP", 9, 9000, "10.0.0.1")),
        (ContainerPort(80, "", "TCP"), None),
        (ContainerPort(0, "web", "TCP", 80), None),
        (ContainerPort(80, "web", "ICMP"), None),
        (ContainerPort(80, "web", "tcp"), None),
    ],
)
def test_a_port_is_listed_if_it_can_be_named_or_forwarded(declared, listed):
    assert endpoint_ports([declared]) == (() if listed is None else (listed,))


def test_ports_keep_their_order():
    declared = [ContainerPort(2, "b"), ContainerPort(1, "a")]
    assert [port.name for port in endpoint_ports(declared)] == ["b", "a"]
