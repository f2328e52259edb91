"""Patches of JSON documents: the RFCs' own examples, and what is refused."""

from __future__ import annotations

import copy

import pytest

from domain.json_patch import BadPatch, merged, patched


@pytest.mark.parametrize(
    ("document", "patch", "after"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        (["a"], {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ],
)
def test_a_merge_patch_replaces_adds_and_removes_members(document, patch, after):
    """RFC 7386, appendix A."""
    before = copy.deepcopy(document)
    assert merged(document, patch) == after
    assert document == before


@pytest.mark.parametrize(
    ("document", "operation", "after"),
    [
        ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": "qux"}, {"foo": "bar", "baz": "qux"}),
        ({"foo": ["a", "c"]}, {"op": "add", "path": "/foo/1", "value": "b"}, {"foo": ["a", "b", "c"]}),
        ({"foo": ["a"]}, {"op": "add", "path": "/foo/-", "value": ["b"]}, {"foo": ["a", ["b"]]}),
        ({"foo": 1}, {"op": "add", "path": "", "value": []}, []),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/a"}, {"b": 2}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"a": 1}, {"op": "remove", "path": ""}, None),
        ({"a": 1}, {"op": "replace", "path": "/a", "value": 2}, {"a": 2}),
        ({"a": [1, 2]}, {"op": "replace", "path": "/a/1", "value": 3}, {"a": [1, 3]}),
        ({"a": {"b": 1}, "c": {}}, {"op": "move", "from": "/a/b", "path": "/c/d"}, {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/a"}, {"a": 1}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "m~n": 2}, {"op": "remove", "path": "/a~1b"}, {"m~n": 2}),
        ({"m~n": 2}, {"op": "test", "path": "/m~0n", "value": 2}, {"m~n": 2}),
    ],
)
def test_an_operation_does_what_its_word_says(document, operation, after):
    """RFC 6902, section 4 and appendix A."""
    before = copy.deepcopy(document)
    assert patched(document, [operation]) == after
    assert document == before


@pytest.mark.parametrize(
    ("operations", "why"),
    [
        ({}, "a JSON patch is a list of operations"),
        (["x"], "operation 1: op must be one of add, remove"),
        ([{"op": "frob", "path": "/a"}], "op must be one of"),
        ([{"op": "add", "path": "/a"}], "add needs a value"),
        ([{"op": "remove"}], "path must be a JSON pointer"),
        ([{"op": "remove", "path": "a"}], "path must be a JSON pointer"),
        ([{"op": "copy", "path": "/x"}], "from must be a JSON pointer"),
        ([{"op": "remove", "path": "/nope/x"}], "there is no /nope/x"),
        ([{"op": "replace", "path": "/nope", "value": 1}], "there is no /nope"),
        ([{"op": "test", "path": "/a", "value": 2}], "/a is not what the test expects"),
        ([{"op": "add", "path": "/l/3", "value": 1}], "3 is no place in a list of 3"),
        ([{"op": "add", "path": "/l/01", "value": 1}], "01 is no place"),
        ([{"op": "remove", "path": "/l/-"}], "- is no place"),
        ([{"op": "add", "path": "/a/x", "value": 1}], "/a has no members"),
        ([{"op": "move", "from": "/o", "path": "/o/p"}], "cannot be moved into itself"),
        ([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}], "operation 2: there is no /a"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused_whole(operations, why):
    document = {"a": 1, "l": [1, 2], "o": {}}
    with pytest.raises(BadPatch, match="^" + why if why[:2] in ("op", "a ") and "must" not in why else why):
        patched(document, operations)
    assert document == {"a": 1, "l": [1, 2], "o": {}}


def test_operations_see_what_earlier_ones_did():
    operations = [{"op": "add", "path": "/b", "value": {}}, {"op": "add", "path": "/b/c", "value": 1}]
    assert patched({}, operations) == {"b": {"c": 1}}
    assert operations[0]["value"] == {}, "the patch itself is not written into"
