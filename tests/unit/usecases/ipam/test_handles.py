"""Looking up addresses and holders when records disagree."""

from __future__ import annotations

from domain.ipam.address import Cidr
from domain.ipam.block import Handle
from ports.datastore import HandleKey
from usecases.ipam.owners import addresses_of_handle
from worlds.one_node import OWNER, OneNode

ONE, TWO = "10.244.0.0/30", "10.244.0.4/30"


def test_the_blocks_say_what_a_handle_has_whatever_it_counts():
    node = OneNode()
    node.add_block(ONE, OWNER, ("other", 1), ("h", 2))
    node.put(HandleKey("h"), Handle({Cidr.parse(ONE): 3, Cidr.parse(TWO): 1}))
    assert [str(address) for address in addresses_of_handle(node.work(), "h")] == ["10.244.0.1", "10.244.0.2"]
