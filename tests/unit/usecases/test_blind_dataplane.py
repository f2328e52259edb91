"""A dataplane whose devices cannot be seen and which has a will of its own, as one behind a service may be."""

from __future__ import annotations

import pytest

from adapters.memory.dataplane import MemoryDataplane
from domain.cni.errors import CniError
from domain.cni.result import ResultIp, result_text
from domain.ipam.address import Cidr
from domain.workload.endpoint import WorkloadEndpoint
from ports.dataplane import Connected
from ports.datastore import WorkloadEndpointKey
from worlds.one_node import OneNode, netns

KEY = WorkloadEndpointKey("default", "node1-cni-c1-eth0")


class BlindDataplane(MemoryDataplane):
    """Names the host's end itself and leaves prefix lengths as they are."""

    host_interface = "tap7"

    def connect(self, attachment, deadline) -> Connected:
        super().connect(attachment, deadline)
        return Connected(self.host_interface, "", attachment.addresses)

    def look(self, netns, name, deadline) -> None:
        return None


@pytest.fixture
def node():
    node = OneNode()
    network = node.dataplane.network
    node.dataplane = BlindDataplane(node.clock, node.log)
    node.dataplane.network = network
    return node


def stored(node) -> WorkloadEndpoint:
    return node.get(KEY)


def test_its_answer_is_what_is_stored_and_told(node):
    """CNI-017: masks are not forced to /32 in the result; the record has single addresses."""
    result = node.add()
    (ip,) = result.ips
    assert ip.address.length == 26
    assert [interface.name for interface in result.interfaces] == ["tap7", "eth0"]
    endpoint = stored(node)
    assert (endpoint.interface_name, endpoint.mac) == ("tap7", "")
    assert endpoint.ip_networks == (ip.address.address.host_cidr,)


def test_an_interface_name_that_cannot_be_stored_undoes_everything(node):
    node.dataplane.host_interface = "a name with spaces"
    with pytest.raises(CniError, match="interfaceName"):
        node.add()
    assert node.leftovers() == {}


def test_what_cannot_be_seen_is_no_fault(node):
    """C10"""
    previous = node.add()
    node.check(prev_result=result_text(previous, "1.0.0"))
    node.dataplane.network.delete(node.dataplane.network.link(netns("c1"), "eth0"))
    node.check(prev_result=result_text(previous, "1.0.0"))


def test_the_record_is_compared_all_the_same(node):
    previous = node.add()
    other = previous.replace(ips=(ResultIp(Cidr.parse("10.9.9.9/32"), 1),))
    with pytest.raises(CniError) as caught:
        node.check(prev_result=result_text(other, "1.0.0"))
    _, _, faults = caught.value.message.partition(" failed: ")
    told = f"WorkloadEndpoint node1-cni-c1-eth0 has other addresses: {stored(node).ip_networks[0]}; calico-ipam: "
    assert faults.startswith(told)


def test_a_plain_dataplane_gives_single_addresses():
    """CNI-001"""
    (ip,) = OneNode().add().ips
    assert ip.address.length == 32
