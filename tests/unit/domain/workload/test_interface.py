"""Host interface names, the vectors of spec cni-plugin 5.6."""

from __future__ import annotations

import pytest

from domain.workload.identity import Identity, host_interface_name


@pytest.mark.parametrize(
    ("namespace", "pod", "prefixes", "name"),
    [
        ("default", "podA", "", "cali7f94ce7c295"),
        ("default", "nginx", "", "calic440f455693"),
        ("default", "web-0", "", "cali0d7763386da"),
        ("default", "nginx", ",veth", "calic440f455693"),
        ("namespace", "podname", "eni,veth,foo", "eni82111e10a96"),
    ],
)
def test_a_pod_s_device_is_named_by_digest_and_first_felix_prefix(namespace, pod, prefixes, name):
    identity = Identity(orchestrator="k8s", namespace=namespace, pod=pod, container_id="cid")
    assert host_interface_name(identity, prefixes) == name


def test_another_container_s_device_is_named_by_its_id_whatever_felix_is_told():
    identity = Identity(orchestrator="cni", namespace="default", container_id="0123456789abcdef")
    assert host_interface_name(identity, "eni") == "cali0123456789a"
    assert host_interface_name(identity.replace(container_id="short")) == "calishort"
