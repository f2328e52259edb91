"""What is kept of a damaged block: all that makes sense, nothing else, and always a block."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.records.custom_names import ObjectKey, key_named
from adapters.records.ipam import decode_block, encode_block
from adapters.records.salvage import salvaged_text
from domain.ipam.address import Cidr
from ports.datastore import BlockKey, HandleKey
from strategies import blocks, json_values

CIDR = Cidr.parse("10.0.0.0/30")
KEY = BlockKey(CIDR)


@given(st.data(), blocks())
def test_of_a_sound_block_everything_but_what_nobody_knows(data, block):
    found = salvaged_text(BlockKey(block.cidr), encode_block(block))
    assert [found.holder(at) for at in range(block.cidr.size)] == [block.holder(at) for at in range(block.cidr.size)]
    assert (found.affinity, found.claimed_at) == (block.affinity, block.claimed_at)
    assert found.is_consistent()


@given(st.data(), blocks(cidr=CIDR))
def test_whatever_stands_there_the_rest_is_a_block(data, block):
    value = json.loads(encode_block(block))
    for name in data.draw(st.lists(st.sampled_from(sorted(value)), max_size=3)):
        value[name] = data.draw(json_values)
    found = salvaged_text(KEY, json.dumps(value))
    assert found.is_consistent()
    assert decode_block(encode_block(found)).replace(unknown=()) == found
    for ordinal in range(CIDR.size):
        assert found.holder(ordinal) in (None, *block.attributes, *found.attributes)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"cidr":"10.9.0.0/30","affinity":"host:n"}'])
def test_of_nothing_that_is_about_this_block_an_empty_one(text):
    found = salvaged_text(KEY, text)
    assert (found.is_empty(), found.affinity, found.is_consistent()) == (True, None, True)


def test_only_blocks_that_may_be_are_salvaged():
    assert salvaged_text(HandleKey("h"), "{}") is None
    assert salvaged_text(BlockKey(Cidr.parse("10.0.0.0/8")), "{}") is None


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        ("IPAMBlock", "10-0-0-0-30", KEY),
        ("IPAMBlock", "fd00-10-244--40-122", BlockKey(Cidr.parse("fd00:10:244::40/122"))),
        ("IPAMBlock", "10-0-0-1-30", None),
        ("IPAMBlock", "x", None),
        ("IPAMBlock", "", None),
        ("IPAMHandle", "net1.c1", HandleKey("net1.c1")),
        ("BlockAffinity", "n-10-0-0-0-30", None),
    ],
)
def test_a_name_stands_for_a_record_where_that_is_certain(kind, name, key):
    assert key_named(ObjectKey(kind, name)) == key
