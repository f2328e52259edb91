"""A pod's endpoint: checklist K8S-003, K8S-023, K8S-024, K8S-030, K8S-038, K8S-039, and what recordings show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.ipam.address import Cidr
from domain.resource import Metadata
from domain.workload.endpoint import Nat, Port, WorkloadEndpoint
from domain.workload.pod import ContainerPort, Pod
from domain.workload.pod_endpoint import is_networked, pod_endpoint, without_wishes

CNI = "cni.projectcalico.org/"
GOLDEN = Path(__file__).parents[3] / "golden"
POD = Pod("web-0", "default", node="node-a")


def cidrs(*texts: str) -> tuple[Cidr, ...]:
    return tuple(Cidr.parse(text) for text in texts)


def annotated(**annotations: str) -> Pod:
    return POD.replace(annotations={CNI + key: raw for key, raw in annotations.items()})


@pytest.mark.parametrize(("said", "networks"), [("10.0.0.9/32", ("10.0.0.5/32",)), ("", ())])
def test_a_pod_without_its_owners_wishes_is_still_the_container_s_endpoint(said, networks):
    """What the kubelet has reported counts, unless a DEL has taken it back."""
    spoilt = annotated(floatingIPs="[", containerID="c1", podIP=said).replace(deleting=True, ips=("10.0.0.5",))
    endpoint = pod_endpoint(without_wishes(spoilt))
    assert endpoint.container_id == "c1"
    assert tuple(map(str, endpoint.ip_networks)) == networks


def test_a_bare_pod_gives_a_bare_endpoint():
    assert pod_endpoint(POD) == WorkloadEndpoint(
        Metadata(
            "node--a-k8s-web--0-eth0",
            "default",
            labels={"projectcalico.org/namespace": "default", "projectcalico.org/orchestrator": "k8s"},
        ),
        orchestrator="k8s",
        node="node-a",
        pod="web-0",
        endpoint="eth0",
        profiles=("kns.default",),
        interface_name="cali0d7763386da",
    )


def test_a_full_pod_gives_all_that_it_says():
    """K8S-003, K8S-023, K8S-024, K8S-038, K8S-039."""
    status = '[{"name":"net"}]'
    pod = Pod(
        "web-0",
        "test",
        uid="u-1",
        created="2026-11-29T14:49:04Z",
        generate_name="test-gen-name",
        labels={"app": "web", "projectcalico.org/namespace": "forged"},
        annotations={
            CNI + "containerID": "c1",
            CNI + "allowedSourcePrefixes": '["8.8.8.8/32","1.1.1.0/24"]',
            CNI + "floatingIPs": '["1.1.1.1"]',
            "k8s.v1.cni.cncf.io/network-status": status,
            "other": "stays with the pod",
        },
        node="node-a",
        service_account="testserviceaccount",
        ports=(ContainerPort(555, "anamedport"),),
        ips=("172.16.0.5",),
    )
    endpoint = pod_endpoint(pod, "eni,veth")
    assert endpoint.metadata == Metadata(
        "node--a-k8s-web--0-eth0",
        "test",
        "test-gen-name",
        "u-1",
        "2026-11-29T14:49:04Z",
        {
            "app": "web",
            "projectcalico.org/namespace": "test",
            "projectcalico.org/orchestrator": "k8s",
            "projectcalico.org/serviceaccount": "testserviceaccount",
        },
        {"k8s.v1.cni.cncf.io/network-status": status},
    )
    assert endpoint.container_id == "c1"
    assert endpoint.service_account == "testserviceaccount"
    assert endpoint.profiles == ("kns.test", "ksa.test.testserviceaccount")
    assert endpoint.ports == (Port("anamedport", "TCP", 555),)
    assert endpoint.ip_networks == cidrs("172.16.0.5/32")
    assert endpoint.ip_nats == (Nat("172.16.0.5", "1.1.1.1"),)
    assert endpoint.allowed_source_prefixes == ("8.8.8.8/32", "1.1.1.0/24")
    assert endpoint.interface_name.startswith("eni")


@pytest.mark.parametrize(("length", "labelled"), [(62, True), (63, False)])
def test_an_account_s_name_becomes_a_label_only_if_it_is_shorter_than_63(length, labelled):
    endpoint = pod_endpoint(POD.replace(service_account="s" * length))
    assert ("projectcalico.org/serviceaccount" in endpoint.metadata.labels) is labelled
    assert endpoint.profiles[1] == "ksa.default." + "s" * length


SOURCES = {
    "podIPs": "10.0.0.2/32,fd00::2/128",
    "podIP": "10.0.0.3/32",
}


@pytest.mark.parametrize(
    ("ips", "annotations", "networks"),
    [
        (("10.0.0.1", "fd00::1"), SOURCES, ("10.0.0.1/32", "fd00::1/128")),
        ((), SOURCES, ("10.0.0.2/32", "fd00::2/128")),
        ((), {"podIPs": "", "podIP": "10.0.0.3/32"}, ("10.0.0.3/32",)),
        ((), {"podIP": "10.0.0.3/24"}, ("10.0.0.0/24",)),
        ((), {"podIP": ""}, ()),
    ],
)
def test_addresses_come_from_the_first_source_that_has_any(ips, annotations, networks):
    assert pod_endpoint(annotated(**annotations).replace(ips=ips)).ip_networks == cidrs(*networks)


def test_the_last_source_is_what_another_network_wrote():
    pod = POD.replace(annotations={"vpc.amazonaws.com/pod-ips": "10.0.0.4,10.0.0.5"})
    assert pod_endpoint(pod).ip_networks == cidrs("10.0.0.4/32", "10.0.0.5/32")


@pytest.mark.parametrize("phase", ["Failed", "Succeeded", "Completed"])
def test_a_finished_pod_has_given_its_addresses_back(phase):
    pod = annotated(floatingIPs='["1.1.1.1"]').replace(ips=("10.0.0.1",), phase=phase)
    assert pod_endpoint(pod).ip_networks == ()
    assert pod_endpoint(pod).ip_nats == ()


@pytest.mark.parametrize(
    ("deleting", "annotations", "has_addresses"),
    [
        (True, {"podIP": ""}, False),
        (True, {}, True),
        (True, {"podIP": "10.0.0.1/32"}, True),
        (False, {"podIP": ""}, True),
    ],
)
def test_a_pod_being_deleted_keeps_its_addresses_until_a_del_has_said_so(deleting, annotations, has_addresses):
    pod = annotated(**annotations).replace(ips=("10.0.0.1",), deleting=deleting, phase="Running")
    assert bool(pod_endpoint(pod).ip_networks) is has_addresses


def test_floating_addresses_follow_the_order_of_the_list_and_skip_a_version_the_pod_has_not_got():
    """K8S-030."""
    pod = annotated(floatingIPs='["1.1.1.1","2001:647f::21"]')
    both = (Nat("20.0.0.1", "1.1.1.1"), Nat("fd80:20::1", "2001:647f::21"))
    assert pod_endpoint(pod.replace(ips=("20.0.0.1", "fd80:20::1"))).ip_nats == both
    assert pod_endpoint(pod.replace(ips=("20.0.0.1",))).ip_nats == both[:1]


def test_floating_addresses_are_not_even_read_before_the_pod_has_an_address():
    assert pod_endpoint(annotated(floatingIPs="nonsense")).ip_nats == ()


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (POD.replace(node=""), "error with field node (field should be assigned)"),
        (POD.replace(name="-x"), "error with field pod = '-x' (field must not begin with a '-')"),
        (POD.replace(ips=("10.0.0.256",)), "invalid CIDR address: 10.0.0.256"),
        (POD.replace(ips=("10.0.0.1/99",), phase="Failed"), "invalid CIDR address: 10.0.0.1/99"),
        (
            annotated(allowedSourcePrefixes="8.8.8.8"),
            "failed to parse '8.8.8.8' as JSON: invalid character '.' after top-level value",
        ),
        (
            annotated(floatingIPs="[").replace(ips=("10.0.0.1",)),
            "failed to parse '[' as JSON: unexpected end of JSON input",
        ),
        (
            annotated(floatingIPs='["1.1.1.1"]', podIP="10.0.0.0/24"),
            "PodIP 10.0.0.0/24 is not a valid IPv4: Mask size is 24, not 32",
        ),
    ],
)
def test_what_cannot_be_an_endpoint_is_refused_in_the_original_s_words(pod, text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared below
        pod_endpoint(pod)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("node", "host_network", "networked"), [("n", False, True), ("n", True, False), ("", False, False)]
)
def test_only_a_scheduled_pod_with_a_network_of_its_own_is_an_endpoint(node, host_network, networked):
    assert is_networked(POD.replace(node=node, host_network=host_network)) is networked


@pytest.mark.parametrize(
    "name", ["kdd-add-del", "kdd-floating", "kdd-hwaddr", "kdd-ipaddrs", "kdd-qos", "kdd-host-local-ranges"]
)
def test_the_pod_that_an_add_left_has_the_answer_s_addresses_and_device(name):
    """The endpoint derived from a recorded pod agrees with the recorded answer."""
    step = json.loads((GOLDEN / f"{name}.json").read_text())["steps"][0]
    answer = json.loads(step["call"]["stdout"])
    recorded = step["datastore"]["pods/web-0"]["metadata"]
    pod = Pod("web-0", "gold", labels=recorded["labels"], annotations=recorded["annotations"], node="node-a")
    endpoint = pod_endpoint(pod)
    assert endpoint.ip_networks == cidrs(*[ip["address"] for ip in answer["ips"]])
    assert endpoint.interface_name == answer["interfaces"][0]["name"]
    assert endpoint.container_id == step["call"]["env"]["CNI_CONTAINERID"]
    assert bool(endpoint.ip_nats) == (name == "kdd-floating")
    assert endpoint.allowed_source_prefixes == (("10.9.0.0/16",) if name == "kdd-qos" else ())
