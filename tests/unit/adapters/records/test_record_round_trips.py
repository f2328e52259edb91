"""Records and keys survive being written and read, whatever is in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from adapters.records.codec import decode, encode, key_text, parse_key
from strategies import as_json, entries

VALUES = json.loads((Path(__file__).parents[3] / "golden/records/values.json").read_text())
KNOWN = [row for row in VALUES if "/tiers/" not in row["key"]]


@given(entries)
def test_a_record_reads_back_as_it_was_written(entry):
    key, record = entry
    text = encode(key, record)
    assert decode(key, text) == record
    assert isinstance(as_json(text), dict)


@given(entries)
def test_writing_again_what_was_read_changes_nothing(entry):
    key, record = entry
    text = encode(key, record)
    assert encode(key, decode(key, text)) == text


@given(entries)
def test_a_key_reads_back_from_its_text(entry):
    key, _ = entry
    assert parse_key(key_text(key)) == key


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row["key"].rsplit("/", 2)[-1])
def test_what_the_original_wrote_is_written_back_byte_for_byte(row):
    """Every value of a kind we know in the recordings of the original against etcd."""
    key = parse_key(row["key"])
    assert key is not None
    assert key_text(key) == row["key"]
    assert encode(key, decode(key, row["value"])) == row["value"]


def test_the_recordings_hold_every_kind_that_a_node_without_kubernetes_writes():
    kinds = {type(parse_key(row["key"])).__name__ for row in KNOWN}
    assert kinds == {
        "AffinityKey",
        "AllocationConfigKey",
        "BlockKey",
        "ClusterInformationKey",
        "HandleKey",
        "IPPoolKey",
        "IPReservationKey",
        "NodeKey",
        "ProfileKey",
        "WorkloadEndpointKey",
    }


@pytest.mark.parametrize("key", ["", "/", "/calico/ipam/v2/", "/calico/ipam/v2/host/node-a", "/registry/pods/x"])
def test_texts_of_other_records_are_no_keys_of_ours(key):
    assert parse_key(key) is None


def test_a_tier_is_no_record_of_ours():
    tiers = [row["key"] for row in VALUES if "/tiers/" in row["key"]]
    assert tiers
    assert all(parse_key(key) is None for key in tiers)
