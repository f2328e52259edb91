"""Names of endpoints, checklist NAME-001 to NAME-033 and the vectors of spec cni-plugin 3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.workload.identity import (
    Identity,
    InvalidField,
    full_name,
    is_of_node,
    name_matches,
    name_prefix,
    parse_name,
    split_name,
    split_strictly,
)

SEGMENT = st.text("ab0.-", min_size=1, max_size=8).filter(lambda text: text[0] != "-" and text[-1] != "-")


def k8s(node="node-1", pod="pod-name", endpoint="eth0"):
    return Identity(orchestrator="k8s", node=node, pod=pod, endpoint=endpoint)


def cni(node="node-1", container_id="abcdefa0123456", endpoint="eth0"):
    return Identity(orchestrator="cni", node=node, container_id=container_id, endpoint=endpoint)


def foo(workload="foo-foo", endpoint="abcdefgh"):
    return Identity(orchestrator="foo", node="node-1", workload=workload, endpoint=endpoint)


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        pytest.param(k8s(), "node--1-k8s-pod--name-eth0", id="NAME-001"),
        pytest.param(cni(), "node--1-cni-abcdefa0123456-eth0", id="NAME-002"),
        pytest.param(
            Identity(orchestrator="libnetwork", node="node-1", endpoint="abcdefgh"),
            "node--1-libnetwork-libnetwork-abcdefgh",
            id="NAME-003",
        ),
        pytest.param(foo(), "node--1-foo-foo--foo-abcdefgh", id="NAME-004"),
        pytest.param(k8s("node1", "mypod-1"), "node1-k8s-mypod--1-eth0", id="dash before a digit"),
        pytest.param(
            k8s("ip-10-0-0-5.ec2.internal", "web-0"),
            "ip--10--0--0--5.ec2.internal-k8s-web--0-eth0",
            id="dots stay",
        ),
        pytest.param(k8s("gke-a--b", "p"), "gke--a----b-k8s-p-eth0", id="double dash is doubled"),
    ],
)
def test_full_name_joins_escaped_segments(identity, name):
    assert full_name(identity) == name


@pytest.mark.parametrize(
    ("identity", "error"),
    [
        pytest.param(
            Identity(node="node-1", pod="p", endpoint="eth0"),
            "error with field orchestrator = '' (field should be assigned)",
            id="NAME-005",
        ),
        pytest.param(k8s(pod=""), "error with field pod = '' (field should be assigned)", id="NAME-006"),
        pytest.param(
            cni(container_id="-abc"),
            "error with field containerID = '-abc' (field must not begin with a '-')",
            id="NAME-007",
        ),
        pytest.param(
            foo(workload="foo-"),
            "error with field workload = 'foo-' (field must not end with a '-')",
            id="NAME-008",
        ),
        pytest.param(k8s(node=""), "error with field node (field should be assigned)", id="no node"),
    ],
)
def test_full_name_refuses_what_cannot_be_a_segment(identity, error):
    with pytest.raises(InvalidField) as caught:
        full_name(identity)
    assert str(caught.value) == error
    assert caught.value.field in error
    assert caught.value.reason in error


@pytest.mark.parametrize(
    ("identity", "prefix"),
    [
        pytest.param(k8s(), "node--1-k8s-pod--name-eth0", id="NAME-009"),
        pytest.param(foo(workload=""), "node--1-foo-", id="NAME-010"),
        pytest.param(k8s(pod=""), "node--1-k8s-", id="NAME-011"),
        pytest.param(Identity(node="node-1"), "node--1-", id="NAME-015"),
        pytest.param(k8s("node1", "mypod", ""), "node1-k8s-mypod-", id="endpoint unknown"),
    ],
)
def test_prefix_ends_at_the_first_missing_segment(identity, prefix):
    assert name_prefix(identity) == prefix


@pytest.mark.parametrize(
    ("identity", "field"),
    [
        pytest.param(cni(container_id="-abc"), "containerID", id="NAME-012"),
        pytest.param(foo(workload="foo-"), "workload", id="NAME-013"),
        pytest.param(k8s(node=""), "node", id="NAME-014"),
    ],
)
def test_prefix_refuses_what_cannot_be_a_segment(identity, field):
    with pytest.raises(InvalidField) as caught:
        name_prefix(identity)
    assert caught.value.field == field


def test_matching_needs_a_node():
    """NAME-016."""
    with pytest.raises(InvalidField) as caught:
        name_matches(k8s(node=""), "node--1-k8s-pod--name-eth0")
    assert caught.value.field == "node"


@pytest.mark.parametrize(
    ("identity", "name", "matches"),
    [
        pytest.param(Identity(node="node-1", endpoint="eth0"), "node--1-k8s-pod--name-eth0", False, id="NAME-017"),
        pytest.param(k8s(), "node--1-k8s-pod--name-eth0", True, id="NAME-018"),
        pytest.param(k8s(), "node--1-k8s-pod--name-eth", False, id="NAME-019"),
        pytest.param(cni(container_id=""), "node--1-cni-orchestratorid-eth0", True, id="NAME-020"),
        pytest.param(cni(container_id="abcde"), "node--1-cni-abcde-eth0", True, id="NAME-021"),
        pytest.param(cni(container_id="abcde"), "node--1-cni-abcdef-eth0", False, id="NAME-022"),
        pytest.param(k8s(), "node--1-k8s-", False, id="NAME-023"),
        pytest.param(k8s(pod="pod"), "node--1-k8s-pod-eth0-extra", False, id="NAME-024"),
        pytest.param(k8s(endpoint=""), "node--1-k8s-pod--name-eth7", True, id="any interface"),
        pytest.param(k8s("node1", "mypod", ""), "node1-k8s-mypod--1-eth0", False, id="text prefix of a stranger"),
    ],
)
def test_name_matches_when_every_known_segment_is_equal(identity, name, matches):
    assert name_matches(identity, name) is matches


def test_an_empty_name_cannot_be_parsed():
    """NAME-025."""
    with pytest.raises(ValueError, match=r"^Cannot parse empty string$"):
        parse_name("")


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        pytest.param("node-k8s-pod-eth0", k8s("node", "pod"), id="NAME-026"),
        pytest.param("node-", Identity(node="node"), id="NAME-027"),
        pytest.param("node-k8s-pod--name-", k8s("node", "pod-name", ""), id="NAME-028"),
        pytest.param("node-cni-xyz-eth0", cni("node", "xyz"), id="NAME-029"),
        pytest.param(
            "node-libnetwork-libnetwork-eth0",
            Identity(orchestrator="libnetwork", node="node", endpoint="eth0"),
            id="NAME-030",
        ),
        pytest.param(
            "node-foo--orch-workload-eth0",
            Identity(orchestrator="foo-orch", node="node", workload="workload", endpoint="eth0"),
            id="NAME-031",
        ),
        pytest.param(
            "coredns-668d6bf9bc-bxhr6",
            Identity(orchestrator="668d6bf9bc", node="coredns", workload="bxhr6"),
            id="NAME-032",
        ),
    ],
)
def test_parsing_gives_what_the_name_says(name, identity):
    assert parse_name(name) == identity


def test_a_name_with_too_many_segments_is_refused():
    """NAME-033."""
    with pytest.raises(ValueError, match=r"^Error parsing calico-kube-controllers-7946b84856-2fwwq, verify that"):
        parse_name("calico-kube-controllers-7946b84856-2fwwq")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("-", ("-",)),
        ("a--", ("a-",)),
        ("a-", ("a", "")),
        ("a---b", ("a-", "b")),
        ("a-b--c-d", ("a", "b-c", "d")),
    ],
)
def test_a_lone_dash_separates_and_a_pair_is_one_dash(name, parts):
    assert split_name(name) == parts


@pytest.mark.parametrize(
    ("name", "count", "parts"), [("a-b", 2, ("a", "b")), ("a-", 2, None), ("abcdef", 2, None), ("a-b-c", 2, None)]
)
def test_strict_splitting_wants_exactly_that_many_segments(name, count, parts):
    assert split_strictly(name, count) == parts


@given(SEGMENT, st.sampled_from(["k8s", "cni", "foo-bar"]), SEGMENT, SEGMENT)
def test_a_constructed_name_parses_back_and_matches(node, orchestrator, third, endpoint):
    field = {"k8s": "pod", "cni": "container_id"}.get(orchestrator, "workload")
    identity = Identity(orchestrator=orchestrator, node=node, endpoint=endpoint, **{field: third})
    name = full_name(identity)
    assert parse_name(name) == identity
    assert split_strictly(name, 4) == (node, orchestrator, third, endpoint)
    assert name_matches(identity, name)
    assert name_matches(identity.replace(endpoint=""), name)
    assert name.startswith(name_prefix(identity.replace(endpoint="")))
    assert not name_matches(identity.replace(endpoint=endpoint + "x"), name)


@given(st.text("ab-", min_size=1, max_size=12))
def test_splitting_any_text_loses_no_letter(name):
    assert "".join(split_name(name)).replace("-", "") == name.replace("-", "")


@pytest.mark.parametrize(
    ("name", "node", "is_it"),
    [
        ("node--a-k8s-web-eth0", "node-a", True),
        ("node--a--x-k8s-web-eth0", "node-a", False),
        ("node--a--x-k8s-web-eth0", "node-a-x", True),
        ("node-k8s-web-eth0", "node", True),
        ("nodes-k8s-web-eth0", "node", False),
    ],
)
def test_a_node_knows_its_endpoints_by_their_names(name, node, is_it):
    assert is_of_node(name, node) is is_it
