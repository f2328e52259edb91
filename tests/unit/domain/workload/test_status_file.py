"""Felix's keys and file names, checklist NAME-034 to NAME-040."""

from __future__ import annotations

import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.resource import Metadata
from domain.workload.endpoint import WorkloadEndpoint
from domain.workload.pod import Pod
from domain.workload.pod_endpoint import pod_endpoint
from domain.workload.status_file import PolicyKey, policy_key, status_file_name


@pytest.mark.parametrize(
    ("key", "name"),
    [
        pytest.param(
            PolicyKey("node1", "k8s", "default/testpod1", "eth0"), "k8s default%2Ftestpod1 eth0", id="NAME-034"
        ),
        pytest.param(
            PolicyKey("node1", "k8/s", "defaul/t/testp/od1", "eth/0"),
            "k8%2Fs defaul%2Ft%2Ftestp%2Fod1 eth%2F0",
            id="NAME-035",
        ),
        pytest.param(
            PolicyKey("node1", "k8s", "default/t est pod1", "eth0"), "k8s default%2Ft%20est%20pod1 eth0", id="NAME-036"
        ),
        pytest.param(None, "", id="NAME-037"),
        pytest.param(PolicyKey("n", "k8s", "a-_.~$&+=:@%", "é"), "k8s a-_.~$&+=:@%25 %C3%A9", id="escaping"),
    ],
)
def test_the_status_file_is_named_by_three_escaped_parts(key, name):
    assert status_file_name(key) == name


@given(st.text(), st.text(), st.text())
def test_the_parts_of_a_file_name_read_back(orchestrator, workload, endpoint):
    parts = status_file_name(PolicyKey("n", orchestrator, workload, endpoint)).split(" ")
    assert [urllib.parse.unquote(part) for part in parts] == [orchestrator, workload, endpoint]


def test_an_endpoint_of_another_orchestrator_is_known_by_its_workload():
    """NAME-038."""
    endpoint = WorkloadEndpoint(
        Metadata("x", "default"), orchestrator="felixfv", node="host-0", workload="w", endpoint="w"
    )
    assert policy_key(endpoint) == PolicyKey("host-0", "felixfv", "default/w", "w")


def test_a_pod_s_endpoint_is_known_by_its_pod():
    """NAME-039."""
    endpoint = WorkloadEndpoint(Metadata("x", "default"), orchestrator="k8s", node="n", pod="p", endpoint="eth0")
    assert policy_key(endpoint) == PolicyKey("n", "k8s", "default/p", "eth0")


def test_an_endpoint_derived_from_a_pod_waits_for_the_file_that_felix_writes():
    """NAME-034, by way of the pod."""
    endpoint = pod_endpoint(Pod("testpod1", "default", node="node-a"))
    assert status_file_name(policy_key(endpoint)) == "k8s default%2Ftestpod1 eth0"


def test_no_endpoint_has_no_key():
    """NAME-040."""
    assert policy_key(None) is None
