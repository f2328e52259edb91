"""The forms of an answer, and selection by label."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError

import pytest
import yaml

from entrypoints.tortie.command import Stopped
from entrypoints.tortie.label_selector import label_selector
from entrypoints.tortie.output import Form, Row, Sheet, form, shown

ABOUT = {
    "metadata": {"name": "a", "labels": {"app.io/name": "x"}},
    "spec": {"list": [{"ip": "1"}, {"ip": "2"}], "on": True, "none": None, "text": "e\x1bvil"},
}
SHEET = Sheet(
    {"items": [ABOUT]},
    ("NAME", "IPS TOTAL"),
    (Row("thing/a", {"NAME": "a", "IPS TOTAL": "7"}, ABOUT), Row("thing/b", {"NAME": "b"}, {})),
    lambda: "for people\n",
)


def cells(text):
    return [line.split() for line in shown(form(text), SHEET).splitlines()]


def test_each_form_shows_the_same():
    assert json.loads(shown(form("json"), SHEET)) == {"items": [ABOUT]}
    assert yaml.safe_load(shown(form("yaml"), SHEET)) == {"items": [ABOUT]}
    assert shown(form("name"), SHEET) == "thing/a\nthing/b\n"
    assert cells("wide") == [["NAME", "IPS", "TOTAL"], ["a", "7"], ["b"]]
    assert shown(form("ps"), SHEET) == shown(Form(), SHEET) == "for people\n"


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        (".metadata.name", "a"),
        ("{.metadata.name}", "a"),
        ("metadata.name", "a"),
        (r".metadata.labels.app\.io/name", "x"),
        (".metadata.labels['app\\.io/name']", "x"),
        (".spec.list[*].ip", "1,2"),
        (".spec.list[1].ip", "2"),
        (".spec.list[-1].ip", "2"),
        (".spec.list[2].ip", "<none>"),
        (".spec.list.ip", "<none>"),
        (".spec.on", "true"),
        (".spec.none", "<none>"),
        (".spec.nope.deeper", "<none>"),
        (".spec.on.deeper", "<none>"),
        (".metadata.labels", '{"app.io/name":"x"}'),
        (".metadata.labels.*", "x"),
        (".spec.text", r"e\x1bvil"),
    ],
)
def test_a_column_of_ones_own_follows_a_path(path, cell):
    assert cells(f"custom-columns=IT:{path}") == [["IT"], [cell], ["<none>"]]


def test_columns_can_be_those_of_the_table():
    assert cells("custom-columns=ipstotal,Name") == [["IPSTOTAL", "NAME"], ["7", "a"], ["<none>", "b"]]
    with pytest.raises(Stopped, match=r"no column nope; there are NAME, IPS TOTAL, or HEADING:.path"):
        cells("custom-columns=nope")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("xml", "'xml' is none of json, yaml, wide, name and custom-columns="),
        ("json=x", "is none of"),
        ("custom-columns", "needs a heading for each column"),
        ("custom-columns=A:.a,,", "needs a heading for each column"),
        ("jsonpath={.a}", "jsonpath is not known here; take custom-columns=NAME:.metadata.name, or -o json with jq"),
        ("go-template={{.a}}", "go-template is not known here"),
    ],
)
def test_a_form_that_is_not_known_is_refused_with_another(text, why):
    with pytest.raises(ArgumentTypeError, match=why.replace("{", r"\{")):
        form(text)


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ("a=1", {"a": "1"}),
        ("a==1", {"a": "1"}),
        ("a!=1", {"a": "2"}),
        ("a!=1", {}),
        ("a", {"a": ""}),
        ("!a", {"b": "1"}),
        ("a in (1, 2)", {"a": "2"}),
        ("a notin (1,2)", {"a": "3"}),
        ("a notin (1,2)", {}),
        ("x.io/a=1,b in (1,2),!c", {"x.io/a": "1", "b": "1"}),
        ("a=", {"a": ""}),
    ],
)
def test_a_selector_fits(selector, labels):
    assert label_selector(selector).fits(labels)


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ("a=1", {}),
        ("a=1", {"a": "2"}),
        ("a!=1", {"a": "1"}),
        ("a", {}),
        ("!a", {"a": ""}),
        ("a in (1,2)", {}),
        ("a notin (1,2)", {"a": "1"}),
        ("a=1,b=2", {"a": "1"}),
    ],
)
def test_a_selector_does_not_fit(selector, labels):
    assert not label_selector(selector).fits(labels)


@pytest.mark.parametrize("text", ["", "a=1,", "a b", "a in 1", "a in (", "=1", "a=b=c", "a>1", "a in (1),,b"])
def test_what_is_no_selector_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="is no label selector, such as"):
        label_selector(text)
