"""CNI versions and what they allow."""

from __future__ import annotations

import pytest

from domain.cni.errors import CniError
from domain.cni.versions import (
    SUPPORTED,
    SUPPORTED_BY_BRIDGE,
    check_version,
    parse_version,
    supported_text,
    version_text,
)


def refusal(verb: str, version: str) -> tuple[int, str, str]:
    with pytest.raises(CniError) as refused:
        check_version(verb, version)
    return refused.value.code, refused.value.message, refused.value.details


def test_the_version_answer_is_the_recorded_line() -> None:
    assert version_text() == (
        '{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0"]}\n'
    )
    assert supported_text() == "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0"


@pytest.mark.parametrize("verb", ["ADD", "DEL"])
@pytest.mark.parametrize("version", SUPPORTED)
def test_every_supported_version_may_add_and_delete(verb: str, version: str) -> None:
    check_version(verb, version)


@pytest.mark.parametrize("version", ["1.1.0", "9.9.9", "banana", "1.0", ""])
def test_a_version_that_is_not_in_the_list_to_the_letter_is_incompatible(version: str) -> None:
    code, message, details = refusal("ADD", version)
    assert (code, message) == (1, "incompatible CNI versions")
    assert details == (f'config is "{version}", plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0" "1.0.0"]')


@pytest.mark.parametrize(
    ("verb", "version", "code", "message"),
    [
        ("CHECK", "0.3.1", 1, "config version does not allow CHECK"),
        ("CHECK", "", 1, "config version does not allow CHECK"),
        ("CHECK", "1.1.0", 1, "plugin version does not allow CHECK"),
        ("CHECK", "0.4.1", 1, "incompatible CNI versions"),
        ("GC", "1.0.0", 1, "config version does not allow GC"),
        ("GC", "1.1.0", 1, "plugin version does not allow GC"),
        ("STATUS", "1.0.0", 1, "config version does not allow STATUS"),
        ("STATUS", "2", 1, "plugin version does not allow STATUS"),
        (
            "CHECK",
            "x.1",
            6,
            'failed to convert major version part "x": strconv.Atoi: parsing "x": invalid syntax',
        ),
        ("GC", "1.2.3.4", 6, 'invalid version "1.2.3.4": too many parts'),
    ],
)
def test_newer_verbs_want_a_version_that_has_them(verb: str, version: str, code: int, message: str) -> None:
    assert refusal(verb, version)[:2] == (code, message)


@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
def test_check_is_allowed_from_0_4_0_on(version: str) -> None:
    check_version("CHECK", version)


def test_versions_are_read_part_by_part() -> None:
    assert parse_version("") == (0, 1, 0)
    assert parse_version("1") == (1, 0, 0)
    assert parse_version("1.+2.-3") == (1, 2, -3)
    for bad in ("1..2", "1.-", "1.²", "1. 2"):
        with pytest.raises(ValueError, match="failed to convert minor version part"):
            parse_version(bad)


def test_br_001_the_bridge_plugin_speaks_1_1_0_and_the_others_go_on_refusing_it() -> None:
    assert version_text(SUPPORTED_BY_BRIDGE) == (
        '{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}\n'
    )
    for verb in ("ADD", "DEL", "CHECK", "GC", "STATUS"):
        check_version(verb, "1.1.0", SUPPORTED_BY_BRIDGE)
    with pytest.raises(CniError, match="config version does not allow GC"):
        check_version("GC", "1.0.0", SUPPORTED_BY_BRIDGE)
    with pytest.raises(CniError, match="incompatible CNI versions"):
        check_version("ADD", "1.1.0")
