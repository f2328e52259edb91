"""What the original has stored is read, written back and found again in etcd, octet for octet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.records.codec import parse_key

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def recorded() -> dict[str, set[str]]:
    """Key → every text that the recordings have under it."""
    texts: dict[str, set[str]] = {}
    for path in sorted(GOLDEN.glob("*.json")):
        recording = json.loads(path.read_text())
        stores = [recording.get("datastore_before", {})]
        stores += [step.get("datastore", {}) for step in recording.get("steps", [])]
        for store in stores:
            for key, text in store.items():
                if isinstance(text, str) and parse_key(key) is not None:
                    texts.setdefault(key, set()).add(text)
    return texts


def kind(key: str) -> str:
    return type(parse_key(key)).__name__


RECORDED = recorded()


def test_the_recordings_have_all_kinds_of_records():
    assert {kind(key) for key in RECORDED} >= {
        *("BlockKey", "AffinityKey", "HandleKey", "AllocationConfigKey", "ClusterInformationKey", "NodeKey"),
        *("IPPoolKey", "IPReservationKey", "ProfileKey", "WorkloadEndpointKey"),
    }


@pytest.mark.parametrize("wanted", sorted({kind(key) for key in RECORDED}))
def test_a_record_that_is_written_back_is_octet_for_octet_the_originals(clean, opened, clock, wanted):
    store = opened(ETCD_ENDPOINTS=clean.url)
    seen = 0
    for address, texts in RECORDED.items():
        if kind(address) != wanted:
            continue
        for text in sorted(texts):
            clean.put(address, text)
            held = store.get(parse_key(address), clock.deadline(5))
            assert held is not None
            updated = store.update(held.key, held.record, held.revision, clock.deadline(5))
            assert updated.revision != held.revision
            assert clean.texts()[address] == text
            seen += 1
        clean.clear()
    assert seen


def test_a_created_record_is_octet_for_octet_the_originals(clean, opened, clock):
    store = opened(ETCD_ENDPOINTS=clean.url)
    for address, texts in RECORDED.items():
        text = min(texts)
        clean.put(address, text)
        held = store.get(parse_key(address), clock.deadline(5))
        store.delete(held.key, held.revision, clock.deadline(5))
        store.create(held.key, held.record, clock.deadline(5))
        assert clean.texts() == {address: text}
        clean.clear()


def test_octets_that_are_no_text_do_not_hide_other_records(clean, opened, clock):
    """Keys and values that do not parse are left out of lists (DATASTORE C.1)."""
    from ports.datastore import Handles

    good = "/calico/ipam/v2/handle/good"
    clean.put(good, '{"block":{},"deleted":false}')
    clean.put_octets(b"/calico/ipam/v2/handle/\xff\xfe", b'{"block":{},"deleted":false}')
    clean.put_octets(b"/calico/ipam/v2/handle/bad", b"\xff\xfe\x00")
    handles = [one.key.handle for one in opened(ETCD_ENDPOINTS=clean.url).list(Handles(), clock.deadline(5))]
    assert "good" in handles
    assert "bad" not in handles
