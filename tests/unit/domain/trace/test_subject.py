"""What is sought, and whether a text or a record is about it."""

from __future__ import annotations

import pytest

from domain.ipam.address import Address, Cidr
from domain.ipam.block import Attribute, new_block
from domain.ipam.inventory import Inventory
from domain.resource import Metadata
from domain.trace.subject import Sought, container_of, known_as, read_subject
from domain.workload.endpoint import WorkloadEndpoint

LONG = "3f9c0d1e77aa3f9c0d1e77aa"


def test_a_subject_is_an_address_a_pod_or_either_a_pod_or_a_container():
    address = Address.parse("10.0.0.5")
    assert read_subject("10.0.0.5", "d") == Sought(addresses=frozenset([address]))
    assert read_subject("shop/web-0", "d") == Sought(pods=frozenset([("shop", "web-0")]))
    assert read_subject("web-0", "d") == Sought(pods=frozenset([("d", "web-0")]), meant="web-0")
    assert read_subject(LONG, "d") == Sought(pods=frozenset([("d", LONG)]), meant=LONG)


@pytest.mark.parametrize(
    ("subject", "text", "named"),
    [
        ("10.0.0.5", "ips=10.0.0.5/26", True),
        ("10.0.0.5", "It was 10.0.0.5.", True),
        ("10.0.0.5", "10.0.0.5: gone", True),
        ("10.0.0.5", "10.0.0.5", True),
        ("10.0.0.5", "10.0.0.50 and 110.0.0.5", False),
        ("10.0.0.5", "10.0.0.5.6", False),
        ("10.0.0.5", "1.10.0.0.5 then 10.0.0.5", True),
        ("fd00::5", "fd00::5:1", False),
        ("fd00::5", "fd00::5/128", True),
        ("shop/web-0", 'pods "web-0" not found', True),
        ("shop/web-0", "shop/web-0", True),
        ("shop/web-0", "web-01 my-web-0 web-0-x", False),
        ("shop/web-0", "endpoint shop/n1-k8s-web--0-eth0", True),
        (LONG[:12], f"handle net.{LONG}", True),
        (LONG[:12], f"x{LONG}", False),
        (LONG[:12], "another", False),
    ],
)
def test_a_text_names_it_or_something_else(subject, text, named):
    sought = read_subject(subject, "d")
    assert sought.is_in(text) is named
    if named:
        assert any(word in text for word in sought.words)


def test_a_container_that_a_record_names_is_no_other_that_begins_alike():
    sought = read_subject("10.0.0.5", "d").with_containers(frozenset(["c1"]))
    assert sought.has_container("c1")
    assert not sought.has_container("c10")
    assert sought.is_in("handle net.c1 of eth0")
    assert not sought.is_in("handle net.c10 of eth0")
    assert not read_subject("web-0", "d").has_container("")


def held(handle, **secondary):
    return Attribute(handle, secondary)


def test_holders_are_known_by_address_pod_and_container():
    there = Address.parse("10.0.0.1")
    assert read_subject("10.0.0.1", "d").holds(held("x"), there)
    assert read_subject("web-0", "d").holds(held("x", namespace="d", pod="web-0"), there)
    target = Attribute("x", {}, alternate={"namespace": "d", "pod": "web-0"})
    assert read_subject("web-0", "d").holds(target, there)
    assert read_subject(LONG[:8], "d").holds(held(f"a.net.{LONG}"), there)
    assert not read_subject(LONG, "d").holds(held("net.other", namespace="d", pod="x"), there)
    assert not read_subject("web-0", "d").holds(Attribute(None, {}), there)
    assert container_of(f"a.net.{LONG}") == LONG


def test_a_short_id_is_meant_if_it_is_whole():
    sought = read_subject("c1", "d")
    assert sought.has_container("c1")
    assert not sought.has_container("c10")
    assert not read_subject("shop/c1", "d").has_container("c1")
    assert not read_subject("shop/c1", "d").has_container("")


def test_records_name_containers():
    block = new_block(Cidr.parse("10.0.0.0/30"), "host:a", None, 1)
    block = block.take((0,), held("net.c0", namespace="d", pod="web-0")).take((1,), held("net.c1"))
    block = block.take((2,), held("ipip-tunnel-addr-n1"))
    endpoints = (
        WorkloadEndpoint(Metadata("e0", "d"), pod="web-0", container_id="c2"),
        WorkloadEndpoint(Metadata("e1", "d"), pod="web-0"),
        WorkloadEndpoint(Metadata("e2", "d"), pod="web-1", container_id="c3", ip_networks=(Cidr.parse("10.0.0.2/32"),)),
    )
    inventory = Inventory(0, blocks={block.cidr: (block, "1")}, endpoints=endpoints)
    assert known_as(read_subject("web-0", "d"), inventory).containers == {"c0", "c2"}
    assert known_as(read_subject("10.0.0.1", "d"), inventory).containers == {"c1"}
    assert known_as(read_subject("c0" * 4, "d"), inventory).containers == frozenset()
    assert known_as(read_subject("10.0.0.2", "d"), inventory).containers == {"c3"}
    assert known_as(read_subject("nobody", "d"), inventory).containers == frozenset()
