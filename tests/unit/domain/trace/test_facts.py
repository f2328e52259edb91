"""What records say of a workload."""

from __future__ import annotations

from domain.ipam.address import Cidr
from domain.ipam.block import Attribute, Handle, new_block
from domain.ipam.inventory import Inventory
from domain.linux.link import Link
from domain.moment import SECOND, go_string, rfc3339
from domain.resource import Metadata
from domain.trace.facts import Event, in_order, of_devices, of_line, of_records
from domain.trace.log_lines import LogLine
from domain.trace.subject import known_as, read_subject
from domain.workload.endpoint import WorkloadEndpoint

NOON = 1_795_953_600 * SECOND
B0 = Cidr.parse("10.0.0.0/30")


def test_an_address_a_block_an_endpoint_and_a_handle():
    holder = Attribute("net.c0", {"namespace": "d", "pod": "web-0", "timestamp": go_string(NOON)})
    block = new_block(B0, "host:a", None, 1).replace(affinity="host:a", claimed_at=rfc3339(NOON - SECOND))
    block = block.take((0, 1), holder)
    whole = Metadata("a-k8s-web--0-eth0", "d", created=rfc3339(NOON + SECOND))
    endpoints = (
        WorkloadEndpoint(
            whole, node="a", pod="web-0", interface_name="cali1", ip_networks=(Cidr.parse("10.0.0.0/32"),)
        ),
        WorkloadEndpoint(Metadata("x", "d"), node="b", pod="web-0", container_id="c0"),
        WorkloadEndpoint(Metadata("y", "d"), pod="web-1"),
    )
    handles = {"net.c0": (Handle({B0: 2}), "1"), "old.c0": (Handle({}), "1"), "net.c1": (Handle({B0: 1}), "1")}
    inventory = Inventory(0, blocks={B0: (block, "1")}, handles=handles, endpoints=endpoints)
    found = of_records(inventory, known_as(read_subject("web-0", "d"), inventory))
    about = "to handle net.c0 (namespace d, pod web-0), block 10.0.0.0/30 of host:a"
    assert in_order(found) == (
        Event(NOON - SECOND, "block", "block 10.0.0.0/30 of host:a was claimed"),
        Event(NOON, "address", f"10.0.0.0 was given {about}"),
        Event(NOON, "address", f"10.0.0.1 was given {about}"),
        Event(
            NOON + SECOND,
            "endpoint",
            "endpoint d/a-k8s-web--0-eth0 on node a: 10.0.0.0/32, interface cali1, container unknown",
        ),
        Event(None, "endpoint", "endpoint d/x on node b: no address, interface unknown, container c0"),
        Event(None, "handle", "handle net.c0 counts addresses: 2 in 10.0.0.0/30"),
        Event(None, "handle", "handle old.c0 counts addresses: none"),
    )


def test_an_address_that_is_cooling_down():
    block = new_block(B0, "host:a", None, 1).replace(affinity=None, claimed_at=None)
    block = block.take((2,), Attribute(None, {}, released_at=rfc3339(NOON)))
    inventory = Inventory(0, blocks={B0: (block, "1")})
    found = of_records(inventory, read_subject("10.0.0.2", "d"))
    assert found == (Event(NOON, "address", "10.0.0.2 was released and is cooling down, block 10.0.0.0/30 of nobody"),)


def test_an_address_that_is_kept_for_a_name():
    """F01. A name that ends the handle is no container, and another pod's of that name is another one."""
    block = new_block(B0, "host:a", None, 1)
    kept = {"kept-as": "d/web-0", "kept-until": "later"}
    block = block.take((0,), Attribute("net.kept.d.web-0", kept))
    used = {"kept-as": "d/shared-db", "kept-by": "c7", "namespace": "d", "pod": "db-x"}
    block = block.take((1,), Attribute("net.kept.d.shared-db", used))
    block = block.take((2,), Attribute("net.kept.e.shared-db", {"kept-as": "e/shared-db"}))
    block = block.take((3,), Attribute("net.vmi.e.shared-db", {"namespace": "e", "pod": "virt-launcher-x"}))
    handles = {one.holder: (Handle({B0: 1}), "1") for one in block.attributes}
    inventory = Inventory(0, blocks={B0: (block, "1")}, handles=handles)

    def found(subject):
        sought = known_as(read_subject(subject, "d"), inventory)
        return sought.containers, [event.text for event in of_records(inventory, sought)]

    place = "block 10.0.0.0/30 of host:a"
    assert found("web-0") == (
        frozenset(),
        [
            f"10.0.0.0 is kept for d/web-0 until later, and no pod has it, {place}",
            "handle net.kept.d.web-0 counts addresses: 1 in 10.0.0.0/30",
        ],
    )
    told = found("db-x")
    assert told == found("shared-db")
    assert told[0] == {"c7"}
    assert [text.partition(" (")[0] for text in told[1]] == [
        "10.0.0.1 was given to handle net.kept.d.shared-db",
        "handle net.kept.d.shared-db counts addresses: 1 in 10.0.0.0/30",
    ]


def test_devices():
    endpoints = [WorkloadEndpoint(Metadata("x"), interface_name=name) for name in ("cali1", "cali2", "cali3", "")]
    links = [Link(1, "cali1", "veth", True, 1440, ""), Link(2, "cali2", "veth", False, 1500, "")]
    assert [event.text for event in of_devices(endpoints, links)] == [
        "device cali1 is there, up, MTU 1440",
        "device cali2 is there, down, MTU 1500",
        "device cali3 is not there",
        "device of an unknown name is not there",
    ]


def test_a_line_says_whose_call_it_is_of():
    line = LogLine(NOON, "info", "5f0c", "ipam", "Done.", "3f9c0d1e77aa3f9c0d1e")
    assert of_line(line) == Event(NOON, "log", "ipam 3f9c0d1e77aa: Done.", "info", "5f0c")
    assert of_line(line.replace(call="[7]")).text == "ipam: Done."
    assert of_line(line.replace(container="")).text == "ipam: Done."


def test_order_is_that_of_time_and_what_is_so_now_comes_last():
    events = [Event(None, "a", "1"), Event(7, "a", "2"), Event(5, "a", "3"), Event(5, "a", "4")]
    assert [event.text for event in in_order(events)] == ["3", "4", "2", "1"]
