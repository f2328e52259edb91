"""What was there before an installation: recorded once, and judged later. And the certificates that are loaded."""

from __future__ import annotations

import pytest

from domain.install.certificates import fault_of_certificates
from domain.install.errors import CannotInstall
from domain.install.replaced import NOTHING, REMOVE, RESTORE, THEIRS, Replaced, ReplacedRecord, parse_record


def test_what_was_there_at_first_counts_and_nothing_later() -> None:
    record = ReplacedRecord().with_file("calico", "old", "v1").with_file("calico", "v1", "v2")
    assert record.files == (Replaced("calico", "old", ("v1", "v2")),)
    assert record.knows("calico")
    assert not record.knows("portmap")


def test_the_same_installation_again_changes_nothing() -> None:
    record = ReplacedRecord().with_file("calico", "old", "v1").with_made("calico-tls")
    assert record.with_file("calico", "v1", "v1").with_made("calico-tls") == record


def test_of_many_installations_the_newest_are_known() -> None:
    record = ReplacedRecord()
    for number in range(20):
        record = record.with_file("calico", "old", f"v{number}")
    assert record.files[0].ours == tuple(f"v{number}" for number in range(4, 20))


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ("old", "v1", RESTORE),
        ("old", "v2", RESTORE),
        ("old", "old", NOTHING),
        ("old", "new", THEIRS),
        ("old", "", THEIRS),
        ("", "v1", REMOVE),
        ("", "", NOTHING),
        ("", "new", THEIRS),
    ],
)
def test_what_takes_an_installation_back(before: str, now: str, verdict: str) -> None:
    assert Replaced("calico", before, ("v1", "v2")).verdict(now) == verdict


def test_a_record_is_read_as_it_was_written() -> None:
    record = ReplacedRecord().with_file("calico", "", "v1").with_file("10.conf", "o", "").with_made("calico-tls")
    assert parse_record(record.text(), "/r") == record


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"files": [], "made": []}',
        '{"files": {}}',
        '{"files": {"a": 1}, "made": []}',
        '{"files": {"a": {}}, "made": []}',
        '{"files": {"a": {"before": 1, "ours": []}}, "made": []}',
        '{"files": {"a": {"before": "", "ours": ""}}, "made": []}',
        '{"files": {"../a": {"before": "", "ours": []}}, "made": []}',
        '{"files": {}, "made": [1]}',
        '{"files": {}, "made": ["../../etc"]}',
        '{"files": {"..": {"before": "", "ours": []}}, "made": []}',
    ],
)
def test_what_we_have_not_written_is_refused_by_its_path(text: str) -> None:
    with pytest.raises(CannotInstall, match=r"^/r is not what an installation has written"):
        parse_record(text, "/r")


GOOD = "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("pem", "fault"),
    [
        (GOOD, ""),
        (f"a comment\n{GOOD}{GOOD}", ""),
        ("", "data does not contain any valid RSA or ECDSA certificates"),
        ("garbage", "data does not contain any valid RSA or ECDSA certificates"),
        (GOOD + GOOD.replace("MAMC", "!!!!"), "x509: malformed certificate"),
        (GOOD.replace("MAMC", "AAAA"), "x509: malformed certificate"),
        (GOOD.replace("MAMC", "MÄMC"), "x509: malformed certificate"),
        (GOOD.replace("-----END CERTIFICATE-----", ""), "x509: malformed certificate"),
    ],
)
def test_certificates_are_looked_at_before_they_are_handed_on(pem: str, fault: str) -> None:
    assert fault_of_certificates(pem.encode()) == fault
