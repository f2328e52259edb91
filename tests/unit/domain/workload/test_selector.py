"""Calico's selector language (LIB-272 to LIB-284; spec: ipam 7)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.workload.selector import SelectorError, parse_selector, selects


@pytest.mark.parametrize(
    ("text", "labels", "match"),
    [
        pytest.param("", {}, True, id="LIB-272"),
        pytest.param('region == "east"', {"region": "east"}, True, id="LIB-273"),
        pytest.param(
            'region == "east" && environment == "production"',
            {"region": "east", "environment": "production"},
            True,
            id="LIB-274",
        ),
        pytest.param('region in {"east", "west"}', {"region": "west"}, True, id="LIB-275"),
        pytest.param("has(region)", {"region": ""}, True, id="LIB-276"),
        pytest.param('region == "east"', {"region": "west"}, False, id="LIB-277"),
        pytest.param('region == "east"', {"other": "east"}, False, id="LIB-278"),
        pytest.param('region == "east"', {}, False, id="LIB-279"),
        pytest.param('region == "east"', {}, False, id="LIB-280"),
        pytest.param("all()", {}, True, id="LIB-283"),
        pytest.param('zone == "us-east-1"', {"zone": "us-east-1"}, True, id="LIB-284"),
    ],
)
def test_a_namespace_selector_is_held_against_labels(text, labels, match):
    assert selects(text, labels) is match


@pytest.mark.parametrize(
    "text", [pytest.param("region == ", id="LIB-281"), pytest.param('region === "east"', id="LIB-282")]
)
def test_half_a_comparison_is_no_selector(text):
    with pytest.raises(SelectorError, match="region"):
        parse_selector(text)


@pytest.mark.parametrize(
    ("text", "with_x", "with_y", "without"),
    [
        ("all()", True, True, True),
        ("global()", True, True, True),
        ("  \t", True, True, True),
        ("has(k)", True, True, False),
        ("!has(k)", False, False, True),
        ("!!has(k)", True, True, False),
        ("k == 'x'", True, False, False),
        ("k != 'x'", False, True, True),
        ("k in {'x'}", True, False, False),
        ("k in {'x', 'y',}", True, True, False),
        ("k in {}", False, False, False),
        ("k not in {'x'}", False, True, True),
        ("k not in {}", True, True, True),
        ("k contains 'x'", True, False, False),
        ("k contains ''", True, True, False),
        ("k starts with 'x'", True, False, False),
        ("k ends with 'x'", True, False, False),
        ("k=='x'||k=='y'", True, True, False),
        ("k=='x'&&k!='y'", True, False, False),
        ("(k == 'x')", True, False, False),
        ("!(k == 'x' || k == 'y')", False, False, True),
    ],
)
def test_each_operator_says_what_it_says_also_about_an_absent_label(text, with_x, with_y, without):
    """spec: ipam 7: `!=` and `not in` are true of an absent label, every other comparison false."""
    test = parse_selector(text)
    assert [test({"k": "x"}), test({"k": "y"}), test({"j": "x"})] == [with_x, with_y, without]


def test_texts_are_compared_at_the_right_end():
    assert selects("k starts with 'ab'", {"k": "abc"})
    assert not selects("k starts with 'bc'", {"k": "abc"})
    assert selects("k ends with 'bc'", {"k": "abc"})
    assert not selects("k ends with 'ab'", {"k": "abc"})
    assert selects("k contains 'b'", {"k": "abc"})


def test_or_binds_loosest_then_and_then_not():
    text = "!has(a) && has(b) || has(c)"
    for labels in ({}, {"a": ""}, {"b": ""}, {"c": ""}, {"a": "", "b": ""}, {"a": "", "c": ""}, {"b": "", "c": ""}):
        assert selects(text, labels) == (("a" not in labels and "b" in labels) or "c" in labels)


def test_words_of_the_language_are_labels_where_a_label_stands():
    for word in ("has", "all", "in", "not", "contains", "starts", "ends", "with", "global"):
        assert selects(f"{word} == 'v'", {word: "v"})
        assert selects(f"has({word})", {word: "v"})


def test_strings_stand_in_either_quote_and_may_hold_the_other():
    assert selects("""k == "it's" """, {"k": "it's"})
    assert selects("""k == 'say "no"'""", {"k": 'say "no"'})
    assert selects(r"k == 'a\n'", {"k": r"a\n"})


def test_a_label_name_may_be_long_but_not_endless():
    assert selects(f"has({'a' * 512})", {"a" * 512: ""})
    with pytest.raises(SelectorError):
        parse_selector(f"has({'a' * 513})")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("invalid selector syntax [", "unexpected '['"),
        ("k", "expected an operator at 'the end'"),
        ("k = 'x'", "unexpected \"= 'x'\""),
        ("k == x", "expected string at 'x'"),
        ("k == 'x", 'unterminated string at "\'x"'),
        ("k in 'x'", "expected { at 'x'"),
        ("k in {'x' 'y'}", "expected } at 'y }'"),
        ("k in {x}", "expected string at 'x }'"),
        ("k in {'x'", "expected } at 'the end'"),
        ("k not 'x'", "expected an operator at 'not x'"),
        ("k starts 'x'", "expected an operator at 'starts x'"),
        ("k == 'x' k", "unexpected text at 'k'"),
        ("k == 'x' &&", "expected name at 'the end'"),
        ("|| k == 'x'", "expected name at '|| k == x'"),
        ("(has(k)", "expected ) at 'the end'"),
        ("has(k))", "unexpected text at ')'"),
        ("has()", "expected name at ')'"),
        ("has('k')", "expected name at 'k )'"),
        ("some()", "unknown function some() at 'the end'"),
        ("all(k)", "expected ) at 'k )'"),
        ("!", "expected name at 'the end'"),
        ("k & 'x'", "unexpected \"& 'x'\""),
        ("has(ключ)", "unexpected 'ключ)'"),
        ("has(k)\n", r"unexpected '\n'"),
        ("(" * 101 + "all()" + ")" * 101, "too deeply nested at 'all"),
    ],
)
def test_an_error_quotes_the_selector_and_says_where_it_stops_making_sense(text, why):
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    assert str(caught.value).startswith(f"Failed to parse selector {text!r}: {why}")


def test_the_deepest_selector_can_be_evaluated():
    text = "has(a)"
    for _ in range(100):
        text = f"has(b) || has(c) && !({text})"
    assert not selects(text, {"c": ""})
    assert selects(text, {"a": "", "c": ""})


# --- whatever is written -------------------------------------------------------------------------------------------

names = st.text("abk_./-9", min_size=1, max_size=3)
strings = st.text(st.characters(exclude_characters="\"'", exclude_categories=["Cs"]), max_size=3)
label_sets = st.dictionaries(names, strings, max_size=3)


def quoted(string: str, quote: str) -> str:
    return f"{quote}{string}{quote}"


def a_set(strings_drawn: list[str]) -> str:
    return "{" + ", ".join(quoted(one, '"') for one in strings_drawn) + "}"


# Each is (text, test): the text is what our parser gets, the test what it must mean.
atoms = st.one_of(
    st.sampled_from([("all()", lambda _labels: True), ("global()", lambda _labels: True)]),
    names.map(lambda k: (f"has({k})", lambda labels: k in labels)),
    st.tuples(names, strings).map(lambda d: (f'{d[0]} == "{d[1]}"', lambda labels: labels.get(d[0]) == d[1])),
    st.tuples(names, strings).map(lambda d: (f"{d[0]} != '{d[1]}'", lambda labels: labels.get(d[0]) != d[1])),
    st.tuples(names, st.lists(strings, max_size=3)).map(
        lambda d: (f"{d[0]} in {a_set(d[1])}", lambda labels: labels.get(d[0]) in d[1])
    ),
    st.tuples(names, st.lists(strings, max_size=3)).map(
        lambda d: (f"{d[0]} not in {a_set(d[1])}", lambda labels: labels.get(d[0]) not in d[1])
    ),
    st.tuples(names, strings).map(
        lambda d: (f'{d[0]} contains "{d[1]}"', lambda labels: d[0] in labels and d[1] in labels[d[0]])
    ),
    st.tuples(names, strings).map(
        lambda d: (f'{d[0]} starts with "{d[1]}"', lambda labels: d[0] in labels and labels[d[0]].startswith(d[1]))
    ),
    st.tuples(names, strings).map(
        lambda d: (f'{d[0]} ends with "{d[1]}"', lambda labels: d[0] in labels and labels[d[0]].endswith(d[1]))
    ),
)
selectors = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(lambda one: (f"!({one[0]})", lambda labels: not one[1](labels))),
        st.tuples(inner, inner).map(
            lambda two: (f"({two[0][0]}) && ({two[1][0]})", lambda labels: two[0][1](labels) and two[1][1](labels))
        ),
        st.tuples(inner, inner).map(
            lambda two: (f"{two[0][0]} || {two[1][0]}", lambda labels: two[0][1](labels) or two[1][1](labels))
        ),
    ),
    max_leaves=6,
)


@given(selectors, label_sets)
@settings(max_examples=150, deadline=None)
def test_what_is_printed_from_a_meaning_is_read_with_that_meaning(selector, labels):
    text, meaning = selector
    assert parse_selector(text)(labels) is meaning(labels)


@given(
    st.one_of(
        st.text(max_size=30),
        st.lists(
            st.sampled_from(
                ["a", "==", "!=", "in", "not in", "{", "}", ",", "'x'", "!", "(", ")", "&&", "||", "has(", "all()", '"']
            ),
            max_size=12,
        ).map(" ".join),
    ),
    label_sets,
)
@settings(max_examples=150, deadline=None)
def test_any_text_is_a_test_of_labels_or_a_selector_error(text, labels):
    try:
        test = parse_selector(text)
    except SelectorError:
        return
    assert test(labels) in (True, False)


@pytest.mark.parametrize(
    "text", ["(" * 5000, "!" * 5001 + "has(a)", "a" * 5000, " || ".join(["has(a)"] * 2000)], ids=len
)
def test_long_texts_neither_overflow_the_stack_nor_pass_unnoticed(text):
    try:
        test = parse_selector(text)
    except SelectorError:
        return
    assert test({}) is ("!" in text)
