"""Manifest texts: YAML read with JSON's types, and written so that everybody reads the same."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from entrypoints.ctl_files import read_manifests, shown_as

PLAIN = [
    ("2026-11-29T13:00:00Z", "2026-11-29T13:00:00Z"),
    ("11:22:33:44:55:00", "11:22:33:44:55:00"),
    ("on", "on"),
    ("0x10", "0x10"),
    ("010", 10),
    ("-7", -7),
    ("1.5", 1.5),
    ("true", True),
    ("~", None),
    ("'1'", "1"),
    ("<<", "<<"),
    ("=", "="),
]


@pytest.mark.parametrize(("text", "value"), PLAIN)
def test_scalars_have_json_s_types(tmp_path, text, value):
    path = tmp_path / "f"
    path.write_text(f"key: {text}\n")
    (read,) = read_manifests(str(path))
    assert read == {"key": value}
    assert type(read["key"]) is type(value)


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


@pytest.mark.parametrize("form", ["json", "yaml"])
@settings(max_examples=40, deadline=None)
@given(document=st.dictionaries(TEXTS.filter(lambda key: key != "kind"), JSON, min_size=1))
def test_what_is_shown_reads_back_here_and_elsewhere(tmp_path_factory, form, document):
    text = shown_as(document, form)
    path = tmp_path_factory.getbasetemp() / f"shown.{form}"
    path.write_text(text, encoding="utf-8")
    assert read_manifests(str(path)) == [document]
    assert (json.loads if form == "json" else yaml.safe_load)(text) == document
