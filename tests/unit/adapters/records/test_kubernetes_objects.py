"""Kubernetes' own objects are read for what networking asks of them; a pod's patches are the original's."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.records.kubernetes_nodes import decode_kubernetes_node, pod_cidrs, tunnel_patch
from adapters.records.kubernetes_objects import (
    decode_namespace,
    decode_pod,
    decode_virtual_machine_object,
    endpoint_patch,
    endpoint_removal_patch,
)
from adapters.records.kubernetes_profiles import namespace_profile, profile_source, service_account_profile
from adapters.records.members import BadRecord
from domain.cluster import Node
from domain.ipam.address import Cidr
from domain.resource import Metadata
from domain.workload.endpoint import Profile, Rule, WorkloadEndpoint
from domain.workload.pod import ContainerPort, Namespace, OwnerReference, Pod, VirtualMachineObject
from ports.datastore import ProfileKey, Stored
from strategies import endpoints

GOLDEN = Path(__file__).parents[3] / "golden"
RECORDINGS = sorted(path.name for pattern in ("kdd*.json", "kubevirt*.json") for path in GOLDEN.glob(pattern))
CREATED = "2026-11-29T13:00:00Z"
UID, CONVERTED = "3f2a9c10-7b4e-4d21-9a6f-0011223344ff", "fc543908-de72-4d84-9af6-008844cc22ff"

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-0",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "4711",
        "creationTimestamp": CREATED,
        "generateName": "web-",
        "labels": {"app": "web"},
        "annotations": {"cni.projectcalico.org/hwAddr": "1c:0c:0a:c0:ff:ee"},
        "ownerReferences": [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "name": "vm",
                "uid": "v",
                "controller": True,
            },
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r"},
        ],
        "managedFields": [{"manager": "kubelet"}],
    },
    "spec": {
        "nodeName": "node1",
        "serviceAccountName": "web",
        "containers": [
            {"name": "a", "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP", "hostPort": 8080}]},
            {"name": "b"},
        ],
        "initContainers": [{"name": "c", "ports": [{"containerPort": 9, "hostIP": "10.0.0.1"}]}],
    },
    "status": {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}]},
}


def changed(value, *path, to):
    """A copy with the member at the path replaced, or removed with `...`."""
    value = copy.deepcopy(value)
    inner = value
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    if to is ...:
        inner.pop(path[-1])
    else:
        inner[path[-1]] = to
    return value


# --- pods ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [POD, json.dumps(POD)], ids=["value", "text"])
def test_a_pod_is_read_with_all_that_networking_asks_for(source):
    """DATASTORE D.9."""
    assert decode_pod(source) == Pod(
        name="web-0",
        namespace="default",
        uid="u",
        revision="4711",
        created=CREATED,
        generate_name="web-",
        labels={"app": "web"},
        annotations={"cni.projectcalico.org/hwAddr": "1c:0c:0a:c0:ff:ee"},
        owners=(
            OwnerReference("kubevirt.io/v1", "VirtualMachineInstance", "vm", "v", True),
            OwnerReference("apps/v1", "ReplicaSet", "web", "r"),
        ),
        node="node1",
        service_account="web",
        ports=(ContainerPort(80, "http", "TCP", 8080), ContainerPort(9, host_ip="10.0.0.1")),
        phase="Running",
        ips=("10.0.0.7", "fd00::7"),
    )


def test_a_pod_that_was_just_made_has_little():
    assert decode_pod({"metadata": {"name": "p", "namespace": "d"}}) == Pod("p", "d")


@pytest.mark.parametrize(("status", "ips"), [({"podIP": "10.0.0.7"}, ("10.0.0.7",)), ({"podIPs": [], "podIP": ""}, ())])
def test_the_single_address_counts_where_there_is_no_list(status, ips):
    assert decode_pod(changed(POD, "status", to=status)).ips == ips


def test_a_deletion_timestamp_and_the_host_network_are_seen():
    assert decode_pod(changed(POD, "metadata", "deletionTimestamp", to=CREATED)).deleting
    assert decode_pod(changed(POD, "spec", "hostNetwork", to=True)).host_network


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("metadata", "labels"), [], "metadata.labels must be an object, not a list"),
        (("metadata", "ownerReferences"), {}, "metadata.ownerReferences must be a list, not an object"),
        (("spec", "nodeName"), 7, "spec.nodeName must be a string, not a number"),
        (("spec", "containers"), [{"ports": [1]}], "spec.containers[0].ports[0] must be an object, not a number"),
        (("status", "podIPs"), ["x"], "status.podIPs[0] must be an object, not a string"),
    ],
)
def test_a_pod_of_another_shape_is_named_with_its_fault(path, value, fault):
    """K03."""
    with pytest.raises(BadRecord) as caught:
        decode_pod(changed(POD, *path, to=value))
    assert str(caught.value) == f"record pod default/web-0 is corrupt: {fault}"


@pytest.mark.parametrize("source", ["", "<html>", "[]", "null", '{"metadata":7}'])
@pytest.mark.parametrize("decode", [decode_pod, decode_namespace, decode_kubernetes_node, pod_cidrs, namespace_profile])
def test_an_answer_that_is_no_object_is_a_bad_record(decode, source):
    with pytest.raises(BadRecord):
        decode(source)


# --- what is written into pods ---------------------------------------------------------------------------------------


def endpoint(*networks, container="CID"):
    return WorkloadEndpoint(
        Metadata("n"), container_id=container, ip_networks=tuple(Cidr.parse(network) for network in networks)
    )


def test_an_endpoint_is_stored_as_three_annotations():
    """DATASTORE D.9."""
    assert endpoint_patch(endpoint("172.16.178.160/32", "fd00:10:244::41/128")) == (
        '{"metadata":{"annotations":{"cni.projectcalico.org/containerID":"CID",'
        '"cni.projectcalico.org/podIP":"172.16.178.160/32",'
        '"cni.projectcalico.org/podIPs":"172.16.178.160/32,fd00:10:244::41/128"}}}'
    )


def test_an_endpoint_can_be_stored_for_one_pod_and_not_for_its_namesake():
    patch = json.loads(endpoint_patch(endpoint("172.16.178.160/32"), "u"))["metadata"]
    assert (patch["uid"], set(patch)) == ("u", {"uid", "annotations"})


def test_an_endpoint_without_addresses_changes_nothing():
    """DATASTORE D.9."""
    assert endpoint_patch(endpoint()) == '{"metadata":{}}'


def test_an_endpoint_is_removed_from_exactly_that_version_of_that_pod():
    """DATASTORE D.9."""
    assert endpoint_removal_patch("4711", "u") == (
        '{"metadata":{"annotations":{"cni.projectcalico.org/podIP":"","cni.projectcalico.org/podIPs":""},'
        '"resourceVersion":"4711","uid":"u"}}'
    )
    assert json.loads(endpoint_removal_patch("", ""))["metadata"].keys() == {"annotations"}


@given(endpoints())
def test_the_patches_are_json_and_name_the_same_annotations(one):
    stored = json.loads(endpoint_patch(one))["metadata"].get("annotations", {})
    removed = json.loads(endpoint_removal_patch("1", "u"))["metadata"]["annotations"]
    assert bool(stored) == bool(one.ip_networks)
    assert set(stored) - set(removed) <= {"cni.projectcalico.org/containerID"}
    assert all(text == "" for text in removed.values())


def _pods(recording):
    recorded = json.loads((GOLDEN / recording).read_text())
    for state in [recorded["datastore_before"], *(step["datastore"] for step in recorded["steps"])]:
        yield from [value for place, value in state.items() if place.startswith("pods/")]


@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_annotations_of_the_recorded_pods_are_those_of_our_patches(recording):
    """What the original left in each pod is what our patches leave: addresses after ADD, empty ones after DEL."""
    for value in _pods(recording):
        pod = decode_pod(value)
        assert (pod.name, pod.namespace, pod.uid) == tuple(
            value["metadata"][name] for name in ("name", "namespace", "uid")
        )
        ours = {
            name: text for name, text in pod.annotations.items() if name.endswith(("/podIP", "/podIPs", "/containerID"))
        }
        if not ours:
            continue
        container = ours["cni.projectcalico.org/containerID"]
        networks = [network for network in ours["cni.projectcalico.org/podIPs"].split(",") if network]
        if networks:
            patch = endpoint_patch(endpoint(*networks, container=container))
            assert json.loads(patch)["metadata"]["annotations"] == ours
        else:
            removed = json.loads(endpoint_removal_patch("1", "u"))["metadata"]["annotations"]
            assert removed | {"cni.projectcalico.org/containerID": container} == ours


def test_the_recordings_show_pods_with_and_without_addresses():
    texts = {
        pod["metadata"].get("annotations", {}).get("cni.projectcalico.org/podIP")
        for one in RECORDINGS
        for pod in _pods(one)
    }
    assert {None, ""} < texts


# --- namespaces, virtual machines ------------------------------------------------------------------------------------


def test_a_namespace_has_labels_and_annotations():
    value = {
        "metadata": {"name": "web", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "status": {"phase": "Active"},
    }
    assert decode_namespace(value) == Namespace("web", {"a": "b"}, {"c": "d"})


def test_of_a_virtual_machine_only_its_metadata_count():
    """DATASTORE D.12."""
    metadata = {"name": "vm", "namespace": "d", "uid": "u", "deletionTimestamp": CREATED}
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "vm", "uid": "w"}
    value = {"metadata": metadata | {"ownerReferences": [owner]}, "spec": 7, "status": []}
    assert decode_virtual_machine_object(value) == VirtualMachineObject(
        "vm", "d", "u", True, (OwnerReference("kubevirt.io/v1", "VirtualMachine", "vm", "w"),)
    )


# --- nodes -----------------------------------------------------------------------------------------------------------


def node_object(annotations=None, **more):
    named = {f"projectcalico.org/{name}": text for name, text in (annotations or {}).items()}
    return {"metadata": {"name": "node1", "uid": "u", "creationTimestamp": CREATED, "annotations": named}} | more


def test_a_node_without_calicos_annotations_is_a_calico_node_too():
    value = node_object(status={"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}]})
    node = decode_kubernetes_node(value)
    assert node.metadata == Metadata("node1", uid="u", created=CREATED)
    assert json.loads(node.spec) == {
        "orchRefs": [{"nodeName": "node1", "orchestrator": "k8s"}],
        "addresses": [{"address": "10.0.0.11", "type": "InternalIP"}],
    }
    assert node.status == "{}"


def test_all_annotations_of_a_node_become_its_spec_and_status():
    """DATASTORE D.11, C.4."""
    names = (
        *("IPv4Address", "IPv6Address", "IPv4IPIPTunnelAddr", "RouteReflectorClusterID", "IPv4VXLANTunnelAddr"),
        *("VXLANTunnelMACAddr", "IPv6VXLANTunnelAddr", "VXLANTunnelMACAddrV6", "IPv4WireguardInterfaceAddr"),
        *("IPv6WireguardInterfaceAddr", "WireguardPublicKey", "WireguardPublicKeyV6"),
    )
    annotations = {name: f"<{name}>" for name in names} | {
        "ASNumber": "64512",
        "Interfaces": '[{"name":"eth0","addresses":["10.0.0.11"]}]',
        "annotations": '{"c":"d"}',
    }
    addresses = [
        {"type": "Hostname", "address": "node1"},
        {"type": "InternalIP", "address": "10.0.0.11"},
        {"type": "ExternalIP", "address": "1.2.3.4"},
    ]
    value = node_object(annotations, spec={"podCIDRs": ["10.1.0.0/24"]}, status={"addresses": addresses})
    node = decode_kubernetes_node(value)
    assert json.loads(node.spec) == {
        "bgp": {
            "asNumber": 64512,
            "ipv4Address": "<IPv4Address>",
            "ipv6Address": "<IPv6Address>",
            "ipv4IPIPTunnelAddr": "<IPv4IPIPTunnelAddr>",
            "routeReflectorClusterID": "<RouteReflectorClusterID>",
        },
        "ipv4VXLANTunnelAddr": "<IPv4VXLANTunnelAddr>",
        "vxlanTunnelMACAddr": "<VXLANTunnelMACAddr>",
        "ipv6VXLANTunnelAddr": "<IPv6VXLANTunnelAddr>",
        "vxlanTunnelMACAddrV6": "<VXLANTunnelMACAddrV6>",
        "orchRefs": [{"nodeName": "node1", "orchestrator": "k8s"}],
        "wireguard": {
            "interfaceIPv4Address": "<IPv4WireguardInterfaceAddr>",
            "interfaceIPv6Address": "<IPv6WireguardInterfaceAddr>",
        },
        "addresses": [
            {"address": "<IPv4Address>", "type": "CalicoNodeIP"},
            {"address": "<IPv6Address>", "type": "CalicoNodeIP"},
            {"address": "10.0.0.11", "type": "InternalIP"},
            {"address": "1.2.3.4", "type": "ExternalIP"},
        ],
        "interfaces": [{"name": "eth0", "addresses": ["10.0.0.11"]}],
    }
    assert json.loads(node.status) == {
        "wireguardPublicKey": "<WireguardPublicKey>",
        "wireguardPublicKeyV6": "<WireguardPublicKeyV6>",
        "podCIDRs": ["10.1.0.0/24"],
    }
    assert node.metadata.annotations == {"c": "d"}


def test_only_what_a_node_says_of_its_tunnels_is_written():
    node = Node(Metadata("n"), '{"bgp":{"asNumber":1}}')
    assert tunnel_patch(node, "7") == ""
    patch = json.loads(tunnel_patch(node.with_vxlan_tunnel("10.0.0.129", "aa:bb"), "7"))
    assert patch["metadata"] == {
        "resourceVersion": "7",
        "annotations": {
            "projectcalico.org/IPv4VXLANTunnelAddr": "10.0.0.129",
            "projectcalico.org/VXLANTunnelMACAddr": "aa:bb",
        },
    }
    both = json.loads(tunnel_patch(node.with_vxlan_tunnel("10.0.0.129", "").with_tunnel_address("10.0.0.1"), "7"))
    assert both["metadata"]["annotations"] == {
        "projectcalico.org/IPv4IPIPTunnelAddr": "10.0.0.1",
        "projectcalico.org/IPv4VXLANTunnelAddr": "10.0.0.129",
    }


def test_labels_of_a_node_are_the_union_and_kubernetes_wins():
    """DATASTORE D.11."""
    value = node_object({"labels": '{"zone":"calico","rack":"1"}'})
    value["metadata"]["labels"] = {"zone": "kubernetes", "kubernetes.io/os": "linux"}
    labels = decode_kubernetes_node(value).metadata.labels
    assert labels == {"zone": "kubernetes", "rack": "1", "kubernetes.io/os": "linux"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("64512", 64512),
        ("1.10", 65546),
        ("4294967295", 4294967295),
        ("4294967296", None),
        ("65536.0", None),
        ("0.65536", None),
        ("1.2.3", None),
        ("", None),
        ("x", None),
        ("-1", None),
        ("1.", None),
        ("9" * 5000, None),
    ],
)
def test_the_number_of_an_autonomous_system_has_two_spellings(text, number):
    spec = json.loads(decode_kubernetes_node(node_object({"ASNumber": text})).spec)
    assert spec.get("bgp", {}).get("asNumber") == number


@pytest.mark.parametrize("text", ["{", "{}", "7", ""])
def test_interfaces_that_cannot_be_read_keep_no_pod_from_the_node(text):
    spec = json.loads(decode_kubernetes_node(node_object({"Interfaces": text})).spec)
    assert "interfaces" not in spec


@pytest.mark.parametrize("text", ["", "null", "{}"])
def test_a_node_may_have_no_labels_of_calicos(text):
    """`null` is Go's text for a map that was never made."""
    assert decode_kubernetes_node(node_object({"labels": text, "annotations": text})).metadata.annotations == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"a":1}', "7"])
def test_a_node_whose_label_annotation_cannot_be_read_is_a_bad_record(text):
    with pytest.raises(BadRecord, match=r"^record node node1 is corrupt: .*projectcalico.org/labels"):
        decode_kubernetes_node(node_object({"labels": text}))


@pytest.mark.parametrize(
    ("spec", "cidrs"),
    [
        ({"podCIDRs": ["10.1.0.0/24", "fd00::/64"], "podCIDR": "10.1.0.0/24"}, ("10.1.0.0/24", "fd00::/64")),
        ({"podCIDR": "10.1.0.0/24"}, ("10.1.0.0/24",)),
        ({"podCIDRs": [], "podCIDR": ""}, ()),
        ({}, ()),
    ],
)
def test_pod_cidrs_of_a_node(spec, cidrs):
    assert pod_cidrs(node_object(spec=spec)) == cidrs


# --- profiles --------------------------------------------------------------------------------------------------------


def test_a_namespace_is_a_profile_that_allows_everything():
    """DATASTORE D.10."""
    metadata = {"name": "web", "uid": UID, "creationTimestamp": CREATED, "resourceVersion": "7", "labels": {"a": "b"}}
    allow = (Rule("Allow"),)
    assert namespace_profile({"metadata": metadata}) == Stored(
        ProfileKey("kns.web"),
        Profile(
            Metadata("kns.web", uid=CONVERTED, created=CREATED),
            allow,
            allow,
            {"pcns.a": "b", "pcns.projectcalico.org/name": "web"},
        ),
        "7/",
    )


def test_a_service_account_is_a_profile_without_rules():
    """DATASTORE D.10."""
    metadata = {"name": "my.sa", "namespace": "web", "uid": UID, "resourceVersion": "8", "labels": {"a": "b"}}
    assert service_account_profile({"metadata": metadata}) == Stored(
        ProfileKey("ksa.web.my.sa"),
        Profile(
            Metadata("ksa.web.my.sa", uid=CONVERTED),
            labels_to_apply={"pcsa.a": "b", "pcsa.projectcalico.org/name": "my.sa"},
        ),
        "/8",
    )


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("kns.web", ("web", "")),
        ("ksa.web.default", ("web", "default")),
        ("ksa.web.my.sa", ("web", "my.sa")),
        ("kns.", None),
        ("ksa.web", None),
        ("ksa.web.", None),
        ("ksa..x", None),
        ("net1", None),
    ],
)
def test_a_profiles_name_says_what_it_is_made_from(name, source):
    assert profile_source(name) == source


@given(
    st.from_regex(r"[a-z]([-a-z0-9]{0,5}[a-z0-9])?", fullmatch=True),
    st.from_regex(r"[a-z][-a-z.]{0,5}[a-z]", fullmatch=True),
)
def test_a_profiles_name_leads_back_to_its_object(namespace, account):
    stored = service_account_profile({"metadata": {"name": account, "namespace": namespace}})
    assert profile_source(stored.key.name) == (namespace, account)
