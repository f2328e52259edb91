"""State files around a call of Azure's plugin (spec: cni-plugin 5.5; checklist AZ-001)."""

from __future__ import annotations

import pytest

from adapters.memory.node import MemoryNode
from domain.cni.errors import CniError
from domain.cni.request import Request
from domain.cni.result import Result, ResultIp
from domain.ipam.address import Cidr
from domain.workload.azure import AzureEndpoint, AzureNetwork, parse_endpoint, parse_network
from usecases.pods.azure_state import after_add, after_delete, before_add, before_delete

REQUEST = Request("ADD", "cid", "/var/run/netns/x", "eth0", "", ())
RESULT = Result(ips=(ResultIp(Cidr.parse("192.168.5.5/12")),))
CONF = '{"ipam": {}}'
BASE = "/var/run/calico/azure/networks/net1/"


def test_the_first_add_asks_for_nothing_and_the_second_for_the_same_subnet():
    node = MemoryNode()
    assert before_add(node, "net1", CONF) == CONF
    after_add(node, "net1", REQUEST, RESULT)
    assert before_add(node, "net1", CONF) == '{"ipam":{"subnet":"192.160.0.0/12"}}'
    assert before_add(node, "net2", CONF) == CONF


def test_an_add_is_remembered_in_two_files():
    """AZ-001."""
    node = MemoryNode()
    after_add(node, "net1", REQUEST, RESULT)
    assert parse_network(node.files[BASE + "network.json"]) == AzureNetwork("net1", ("192.160.0.0/12",))
    assert parse_endpoint(node.files[BASE + "cid-eth0"]) == AzureEndpoint("net1", "cid", "eth0", ("192.168.5.5",))


def test_a_delete_names_the_address_until_it_succeeded_and_then_runs_nothing():
    node = MemoryNode()
    after_add(node, "net1", REQUEST, RESULT)
    asked = '{"ipam":{"ipAddress":"192.168.5.5","subnet":"192.160.0.0/12"}}'
    assert before_delete(node, "net1", REQUEST, CONF) == asked
    assert before_delete(node, "net1", REQUEST, CONF) == asked
    after_delete(node, "net1", REQUEST)
    assert before_delete(node, "net1", REQUEST, CONF) is None
    after_delete(node, "net1", REQUEST)


@pytest.mark.parametrize("name", ["network.json", "cid-eth0"])
def test_a_damaged_file_is_named(name):
    node = MemoryNode()
    after_add(node, "net1", REQUEST, RESULT)
    node.files[BASE + name] = "{"
    with pytest.raises(CniError, match=f"failed to read Azure state file {BASE}{name}: unexpected end of JSON input"):
        before_delete(node, "net1", REQUEST, CONF)
