"""JSON as Go reads and writes it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_text import Fraction, JsonError, _explained, dumps, kind_of, parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([0, 4]))
def test_what_is_written_reads_back_equal(value: object, indent: int) -> None:
    text = dumps(value, indent=indent)
    assert parse(text) == value
    assert json.loads(text) == value


@given(VALUES)
def test_what_another_writer_wrote_reads_as_it_meant(value: object) -> None:
    assert parse(json.dumps(value)) == value
    assert parse(f" \t\r\n{json.dumps(value, indent=2, ensure_ascii=False)}\n") == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "unexpected end of JSON input"),
        (" \n", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ('{"a":"b', "unexpected end of JSON input"),
        ('{"a"', "unexpected end of JSON input"),
        ('{"a":\n', "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ("{a}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element or object key:value pair"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("<html>", "invalid character '<' looking for beginning of value"),
        ("'a'", r"invalid character '\'' looking for beginning of value"),
        ('{} "', "invalid character '\"' after top-level value"),
        ('"\x01"', r"invalid character '\x01' in string literal"),
        (r'"\q"', r"invalid character '\\' in string escape code"),
        (r'"\u12"', r"invalid character 'u' in \u hexadecimal character escape"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ('{"a":-Infinity}', "invalid character '-' looking for beginning of value"),
        ("[" * 100_000, "exceeded max depth"),
        ("\ufeff{}", r"invalid character '\ufeff' looking for beginning of value"),
    ],
)
def test_what_is_not_json_is_refused_in_the_words_of_go(text: str, why: str) -> None:
    with pytest.raises(JsonError) as refused:
        parse(text)
    assert str(refused.value) == why


def test_an_integer_of_absurd_length_is_refused() -> None:
    with pytest.raises(JsonError, match=r"a whole number has more digits than the 4300 that can be read$"):
        parse("1" * 5000)


@pytest.mark.parametrize("text", ["1.10", "1e3", "-0.0", "1E+400", "12345678901234567890.5"])
def test_fractions_keep_their_spelling(text: str) -> None:
    value = parse(text)
    assert isinstance(value, Fraction)
    assert value == float(text)
    assert dumps(value) == text


def test_fractions_keep_their_spelling_inside_other_values_too() -> None:
    assert dumps(parse('{"a":[1.10,{"b":1e3}],"c":{},"d":[]}')) == '{"a":[1.10,{"b":1e3}],"c":{},"d":[]}'


@pytest.mark.parametrize("met", [False, True])
def test_both_ways_of_writing_give_the_same_text(met: bool) -> None:
    value = {"a": ["<é\u2028>", 1, None, True, {}], "b": {"c": [], "d": "\ud800"}}
    before, Fraction.met = Fraction.met, met
    try:
        assert dumps(value) == '{"a":["\\u003cé\\u2028\\u003e",1,null,true,{}],"b":{"c":[],"d":"\ufffd"}}'
    finally:
        Fraction.met = before


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        dumps([object()], indent=4)


@given(st.integers())
def test_integers_stay_exact(number: int) -> None:
    assert parse(dumps(number)) == number
    assert isinstance(parse(dumps(number)), int)


def test_markup_and_line_separators_are_escaped_as_go_does() -> None:
    assert dumps("<a href='x'>&\u2028\u2029é\t\"") == ('"\\u003ca href=\'x\'\\u003e\\u0026\\u2028\\u2029é\\t\\""')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"a\ud800b"', "a\ufffdb"),
        (r'"\uDFFF"', "\ufffd"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\ud83d\ud83d\ude00\ude00"', "\ufffd\U0001f600\ufffd"),
        (r'"\\ud800"', r"\ud800"),
        (
            r'{"\ud800": ["\ud800", 1, null, {"a": "\udc00é"}], "b": true}',
            {"\ufffd": ["\ufffd", 1, None, {"a": "\ufffdé"}], "b": True},
        ),
    ],
)
def test_a_lone_surrogate_becomes_the_replacement_character(text: str, value: object) -> None:
    assert parse(text) == value
    str(parse(text)).encode()


def test_a_fraction_beside_a_surrogate_keeps_its_spelling() -> None:
    assert dumps(parse(r'["\ud800", 1.10]')) == '["\ufffd",1.10]'


def test_a_surrogate_at_any_depth_is_replaced_or_refused() -> None:
    def nested(depth: int) -> str:
        return "[" * depth + r'"\ud800"' + "]" * depth

    found = parse(nested(100))
    for _ in range(100):
        (found,) = found
    assert found == "\ufffd"
    for depth in range(200, 3000, 100):
        try:
            parse(nested(depth))
        except JsonError:
            break
    with pytest.raises(JsonError, match="exceeded max depth"):
        parse(nested(3000))


def test_members_and_items_are_indented_and_empty_ones_are_not() -> None:
    assert dumps({"a": [1, {"b": None}], "c": {}, "d": []}, indent=4) == (
        '{\n    "a": [\n        1,\n        {\n            "b": null\n        }\n    ],\n    "c": {},\n    "d": []\n}'
    )
    assert dumps({"a": [True, False], "b": 1.5}) == '{"a":[true,false],"b":1.5}'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("null", "null"),
        ("true", "bool"),
        ("1", "number"),
        ("1.5", "number"),
        ('""', "string"),
        ("[]", "array"),
        ("{}", "object"),
    ],
)
def test_kinds_have_the_names_that_go_uses_in_errors(text: str, kind: str) -> None:
    assert kind_of(parse(text)) == kind


def test_an_unknown_complaint_of_the_c_core_is_passed_on() -> None:
    error = ValueError("Illegal something")
    error.pos = 0
    assert str(_explained("[]", error)) == "Illegal something"


def test_bad_text_is_explained_also_where_nobody_has_loaded_the_json_package() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); from domain.json_text import JsonError, parse\n"
        "assert 'json' not in sys.modules\n"
        "try: parse('{')\n"
        "except JsonError as error: print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-ISBc", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "unexpected end of JSON input\n"
