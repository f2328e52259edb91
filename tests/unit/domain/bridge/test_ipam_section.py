"""What an ADD's ipam section was, found in the text of a configuration and put into another."""

from __future__ import annotations

import json

import pytest

from domain.bridge.attachment import ipam_section, with_ipam_section


def test_the_section_is_found_whatever_its_keys_case_is() -> None:
    assert json.loads(ipam_section('{"IPAM": {"type": "x", "a": [1]}}')) == {"type": "x", "a": [1]}


@pytest.mark.parametrize("text", ["{", "[]", "null", "{}", '{"ipam": 5}', '{"ipam": null}'])
def test_nor_is_there_one_in_these(text: str) -> None:
    assert ipam_section(text) == ""


def test_another_section_takes_its_place() -> None:
    changed = with_ipam_section('{"name": "n", "IPAM": {"type": "x"}, "ipam": 5}', '{"type": "y"}')
    assert json.loads(changed) == {"name": "n", "ipam": {"type": "y"}}
