"""Deadlines, and errors with the texts that users know from the original."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from domain.ipam.address import Cidr
from domain.ipam.block import Owner
from ports.clock import Deadline
from ports.datastore import (
    AffinityKey,
    AllocationConfigKey,
    BlockKey,
    ClusterInformationKey,
    HandleKey,
    IPPoolKey,
    NodeKey,
    ProfileKey,
    Stored,
    WorkloadEndpointKey,
)
from ports.errors import (
    AlreadyExists,
    BadConfiguration,
    Conflict,
    Expired,
    Missing,
    PortError,
    Refused,
    Unauthorized,
    Unavailable,
)
from ports.node import MissingFile
from ports.readiness import refused_url

BLOCK = Cidr.parse("10.0.0.0/26")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (BlockKey(BLOCK), "BlockKey(cidr=10.0.0.0/26)"),
        (AffinityKey(Owner("host", "n"), BLOCK), "BlockAffinityKey(cidr=10.0.0.0/26, host=n, affinityType=host)"),
        (HandleKey("net1.c1"), "IPAMHandleKey(id=net1.c1)"),
        (AllocationConfigKey(), "IPAMConfigKey()"),
        (ClusterInformationKey("default"), "ClusterInformation(default)"),
        (NodeKey("n"), "Node(n)"),
        (IPPoolKey("p"), "IPPool(p)"),
        (ProfileKey("net1"), "Profile(net1)"),
        (WorkloadEndpointKey("default", "n-cni-c-eth0"), "WorkloadEndpoint(default/n-cni-c-eth0)"),
    ],
)
def test_keys_print_as_the_original_prints_them(key, text):
    assert str(key) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Conflict(NodeKey("n")), "update conflict: Node(n)"),
        (AlreadyExists(NodeKey("n")), "resource already exists: Node(n)"),
        (AlreadyExists(NodeKey("n"), "key in use"), "resource already exists: Node(n) with error: key in use"),
        (Missing(NodeKey("n")), "resource does not exist: Node(n)"),
        (Missing(NodeKey("n"), "Node not found"), "resource does not exist: Node(n) with error: Node not found"),
        (Unauthorized("no"), "connection is unauthorized: no"),
        (Expired("the datastore"), "deadline exceeded while waiting for the datastore"),
        (MissingFile("/x"), "open /x: no such file or directory"),
        (refused_url("nonsense", "no scheme"), "invalid URL set for ReadinessGates:nonsense Error:no scheme"),
    ],
)
def test_errors_say_what_the_original_says(error, text):
    assert str(error) == text
    assert isinstance(error, PortError)


def test_errors_keep_what_their_handlers_need():
    key = NodeKey("n")
    assert [error.key for error in (Conflict(key), AlreadyExists(key), Missing(key))] == [key] * 3
    assert MissingFile("/x").key == "/x"
    assert Expired("the lock").waited_for == "the lock"
    assert isinstance(Expired("x"), Unavailable)
    refused = Refused("no", 8, "because")
    assert (refused.code, refused.details, Refused("no").code, str(BadConfiguration("x"))) == (8, "because", 999, "x")


def test_a_deadline_is_a_point_on_the_clock():
    clock = MemoryClock()
    clock.advance(5)
    deadline = clock.deadline(10)
    assert deadline == Deadline(15.0)
    assert (deadline.left(12.0), deadline.left(20.0)) == (3.0, 0.0)
    assert [deadline.passed(now) for now in (14.9, 15.0, 16.0)] == [False, True, True]


def test_a_part_of_a_call_never_lasts_longer_than_the_call():
    assert Deadline(15.0).sooner(10.0, 2.0) == Deadline(12.0)
    assert Deadline(15.0).sooner(10.0, 20.0) == Deadline(15.0)


def test_a_need_can_be_written_with_the_type_of_its_answer():
    """At run time the subscript is empty words: `typing` is not loaded."""
    assert BlockKey["anything"] is BlockKey
    assert Stored["anything"] is Stored
