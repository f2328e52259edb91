"""Addresses that nobody holds and that the machine routes to an interface all the same."""

from __future__ import annotations

import pytest

from adapters.records.codec import key_text
from domain.ipam.address import Address, Cidr
from domain.ipam.audit import IN_USE
from domain.ipam.inventory import PROBLEM, Finding
from domain.ipam.pools import AllocationConfig
from ports.datastore import AllocationConfigKey, BlockKey
from usecases.check_ipam import check_ipam
from worlds.one_node import OneNode


@pytest.fixture
def node():
    """One address is held: 10.244.0.128."""
    node = OneNode()
    node.assign()
    return node


def found(node, *texts: str) -> list[Finding]:
    routes = tuple([(Address.parse(text), "cali123") for text in texts])
    return [one for one in check_ipam(node.work(), None, routes).findings if one.kind == IN_USE]


def subjects(node, *texts: str) -> list[str]:
    return [one.subject for one in found(node, *texts)]


def test_an_address_that_is_free_or_in_no_block_is_found_with_its_interface(node):
    free, unborn = found(node, "10.244.0.129", "10.244.0.7")
    assert (free.subject, unborn.subject) == ("10.244.0.7", "10.244.0.129")
    assert free.level == PROBLEM
    assert free.holder == {"interface": "cali123"}
    assert "ip link delete cali123" in free.advice
    assert not free.repairable


def test_an_address_in_cooldown_is_found(node):
    node.put(AllocationConfigKey(), AllocationConfig(cooldown_seconds=30))
    node.release()
    assert subjects(node, "10.244.0.128") == ["10.244.0.128"]


def test_routes_to_holders_and_to_what_is_no_pools_are_as_they_should_be(node):
    assert subjects(node, "10.244.0.128", "192.0.2.7") == []


def test_of_a_block_that_cannot_be_read_nothing_is_said(node):
    (block,) = node.blocks()
    node.datastore.load({key_text(BlockKey(Cidr.parse(block))): "<html>"})
    assert subjects(node, "10.244.0.129") == []
