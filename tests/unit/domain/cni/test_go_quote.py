"""Texts as Go's %q shows them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cni.go_quote import go_quoted, go_quoted_list, printable


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ('a"b\\', r'"a\"b\\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1f\x7f", r'"\x00\x1f\x7f"'),
        ("\x85\u2028\U000e0001", r'"\u0085\u2028\U000e0001"'),
        ("é€😀 <&>", '"é€😀 <&>"'),
        ("\udcff", r'"\xff"'),
    ],
)
def test_quoting(text: str, quoted: str) -> None:
    assert go_quoted(text) == quoted


@given(st.text())
def test_the_quoted_form_is_one_printable_line(text: str) -> None:
    quoted = go_quoted(text)
    assert quoted.isprintable()
    assert len(quoted.splitlines()) == 1


def test_lists_are_quoted_item_by_item() -> None:
    assert go_quoted_list(["a", 'b"']) == r'["a" "b\""]'
    assert go_quoted_list(()) == "[]"


def test_what_is_not_printable_is_escaped_and_nothing_else():
    assert printable(r'C:\dir "é…" 日本') == r'C:\dir "é…" 日本'
    assert printable("a\x1b[2J\x9b\u202e\u2028\t\n\x7f\udcff") == r"a\x1b[2J\u009b\u202e\u2028\t\n\x7f\xff"
