"""Manifest texts: YAML read with JSON's types, and written so that everybody reads the same."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from entrypoints.tortie.manifest_files import BadFile, read_manifests, shown_as

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


def bomb(levels):
    lines = ["a0: &a0 [x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, levels + 1)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bomb(9), "aliases stand for more than 10000 values in line 5"),
        ("a: &a {b: 1}\nc: [" + "*a, " * 4000 + "]", "aliases stand for more than 10000 values in line 2"),
        ("a: &a [*a]", "alias a stands inside what it stands for in line 1"),
        ("a: &a [x]\n---\nb: &a [*a]", "alias a stands inside what it stands for in line 3"),
        ("a: *b", "neither YAML nor JSON: found undefined alias 'b' in line 1"),
        ("a: 1\nb: 2\na: 3", "'a' is given twice in one mapping in line 3"),
        ('{"spec": {"cidr": 1, "cidr": 1}}', "'cidr' is given twice in one mapping in line 1"),
        ("? [a]\n: b", "neither YAML nor JSON: found unhashable key in line 1"),
        ("a: " + "9" * 5000, "neither YAML nor JSON: a value cannot be read"),
        ("a: !!bool x", "neither YAML nor JSON: a value cannot be read"),
        ('a: !!float ""', "neither YAML nor JSON: a value cannot be read"),
        ('a: "\\UFFFFFFFF"', "neither YAML nor JSON: a value cannot be read"),
        ("a: !!timestamp x", "neither YAML nor JSON: could not determine a constructor for the tag"),
        ("a: \x01", "neither YAML nor JSON: special characters are not allowed"),
        ("[" * 10_000, "neither YAML nor JSON: too deeply nested"),
    ],
)
def test_what_we_do_not_take_is_one_clear_error(tmp_path, text, why):
    path = tmp_path / "f"
    path.write_text(text)
    with pytest.raises(BadFile) as caught:
        read_manifests(str(path))
    assert str(caught.value).startswith(f"{path}: {why}")


def test_plain_aliases_and_like_names_in_different_mappings_are_fine(tmp_path):
    path = tmp_path / "f"
    path.write_text("a: &a {b: 1}\nb: {b: *a, c: *a}\n---\na: &a [1]\nb: *a\n")
    one = {"b": 1}
    assert read_manifests(str(path)) == [{"a": one, "b": {"b": one, "c": one}}, {"a": [1], "b": [1]}]
    path.write_text(bomb(3))
    assert len(read_manifests(str(path))[0]["a3"]) == 9


def test_surrogates_that_json_escapes_are_joined_or_replaced(tmp_path):
    path = tmp_path / "f"
    path.write_text(r'{"\ud83d\ude00": "\ud800 é"}')
    assert read_manifests(str(path)) == [{"\U0001f600": "\ufffd é"}]


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
