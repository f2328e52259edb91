"""What may be stored as an endpoint (spec: cni-plugin 3, storage rules; G5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ipam.address import Cidr
from domain.resource import Metadata
from domain.workload.endpoint import Nat, Port, WorkloadEndpoint
from domain.workload.endpoint_rules import check_endpoint, is_subdomain, with_forced_labels
from domain.workload.identity import InvalidField, full_name, identity_of

PLAIN = WorkloadEndpoint(
    Metadata("node--a-cni-cid-eth0", "default"),
    orchestrator="cni",
    node="node-a",
    container_id="cid",
    endpoint="eth0",
    interface_name="calicid",
    profiles=("net1",),
)
POD = WorkloadEndpoint(
    Metadata("node--a-k8s-web--0-eth0", "prod"),
    orchestrator="k8s",
    node="node-a",
    pod="web-0",
    container_id="A-b",
    endpoint="eth0",
    service_account="web",
    interface_name="*",
    profiles=("kns.prod", "ksa.prod.web"),
    ip_networks=(Cidr.parse("10.0.0.1/32"), Cidr.parse("fd00::1/128")),
    ip_nats=(Nat("fd00::1", "fd00::9"),),
    ports=(Port("http", "TCP", 80), Port("", "UDP", 53, host_port=53), Port("s", "SCTP", 65535)),
)


def renamed(endpoint, **changes):
    changed = endpoint.replace(**changes)
    return changed.replace(metadata=changed.metadata.replace(name=full_name(identity_of(changed))))


@pytest.mark.parametrize("endpoint", [PLAIN, POD])
def test_a_sound_endpoint_passes(endpoint):
    check_endpoint(endpoint)


@pytest.mark.parametrize(
    ("endpoint", "field"),
    [
        (PLAIN.replace(metadata=Metadata("other", "default")), "name"),
        (PLAIN.replace(node=""), "node"),
        (renamed(PLAIN, container_id="ABC"), "name"),
        (renamed(PLAIN, container_id="a_b"), "name"),
        (renamed(PLAIN, container_id="a.b"), "containerID"),
        (renamed(PLAIN, container_id="a" * 250), "name"),
        (POD.replace(container_id="a."), "containerID"),
        (PLAIN.replace(metadata=Metadata(PLAIN.metadata.name, "")), "namespace"),
        (PLAIN.replace(metadata=Metadata(PLAIN.metadata.name, "a/b")), "namespace"),
        (PLAIN.replace(profiles=("net1", "Net2")), "profiles"),
        (PLAIN.replace(pod="Web"), "pod"),
        (PLAIN.replace(service_account="a_b"), "serviceAccountName"),
        (PLAIN.replace(interface_name=""), "interfaceName"),
        (PLAIN.replace(interface_name="a/b"), "interfaceName"),
        (PLAIN.replace(interface_name="c" * 16), "interfaceName"),
        (POD.replace(ip_networks=(Cidr.parse("10.0.0.0/31"),)), "ipNetworks"),
        (POD.replace(ip_nats=(Nat("10.0.0.2", "1.2.3.4"),)), "ipNATs"),
        (POD.replace(ip_nats=(Nat("<nil>", "1.2.3.4"),)), "ipNATs"),
        (POD.replace(ip_nats=(Nat("10.0.0.1", "x"),)), "ipNATs"),
        (POD.replace(ports=(Port("p", "TCP", 0),)), "ports"),
        (POD.replace(ports=(Port("p", "TCP", 65536),)), "ports"),
        (POD.replace(ports=(Port("p", "ICMP", 1),)), "ports"),
        (POD.replace(ports=(Port("", "TCP", 1),)), "ports"),
    ],
)
def test_what_calico_would_not_store_is_refused_naming_the_field(endpoint, field):
    with pytest.raises(InvalidField) as caught:
        check_endpoint(endpoint)
    assert caught.value.field == field


def test_a_foreign_name_is_refused_with_the_expected_one():
    with pytest.raises(InvalidField) as caught:
        check_endpoint(PLAIN.replace(metadata=Metadata("other", "default")))
    assert str(caught.value) == (
        "error with field name = 'other' (the WorkloadEndpoint name does not match the primary identifiers assigned in "
        "the Spec: expected name node--a-cni-cid-eth0)"
    )


def test_two_labels_always_mirror_namespace_and_orchestrator():
    labelled = POD.replace(
        metadata=Metadata("x", "prod", labels={"app": "web", "projectcalico.org/namespace": "forged"})
    )
    assert with_forced_labels(labelled).metadata.labels == {
        "app": "web",
        "projectcalico.org/namespace": "prod",
        "projectcalico.org/orchestrator": "k8s",
    }


@pytest.mark.parametrize("text", ["a", "a-b", "a.b-c.0", "a" * 253])
def test_subdomains(text):
    assert is_subdomain(text)


@pytest.mark.parametrize("text", ["", "-a", "a-", "a..b", ".a", "A", "a_b", "-", "a" * 254, "é"])
def test_texts_that_are_no_subdomains(text):
    assert not is_subdomain(text)


@given(st.text("aB0_.-", min_size=1, max_size=12).filter(lambda text: text[0] not in "-_." and text[-1] != "-"))
def test_exactly_the_container_ids_that_can_be_stored_pass(container_id):
    endpoint = renamed(PLAIN, container_id=container_id)
    if set(container_id) & set("B_."):
        with pytest.raises(InvalidField, match=r"^error with field (name|containerID) = "):
            check_endpoint(endpoint)
    else:
        check_endpoint(endpoint)
