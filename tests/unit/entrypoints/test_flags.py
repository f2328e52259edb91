"""Flags by the rules of Go's flag package."""

from __future__ import annotations

import pytest

from entrypoints.flags import UsageWanted, parse_flags

KNOWN = {"t": "Test it", "v": "Show it", "upgrade": "Do it"}
USAGE = "Usage of X:\n  -t\tTest it\n  -upgrade\n    \tDo it\n  -v\tShow it\n"


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("", ""),
        ("-v", "v"),
        ("--v", "v"),
        ("-v=true --t=1", "v t"),
        ("-v -v=false", ""),
        ("-v=F", ""),
        ("-upgrade", "upgrade"),
        ("word -v", ""),
        ("- -v", ""),
        ("-v -- -t", "v"),
    ],
)
def test_flags_are_read_up_to_the_first_other_word(words: str, flags: str) -> None:
    assert parse_flags(words.split(), "X", KNOWN) == frozenset(flags.split())


@pytest.mark.parametrize(
    ("word", "text", "code"),
    [
        ("-x", "flag provided but not defined: -x\n", 2),
        ("--long=1", "flag provided but not defined: -long\n", 2),
        ("-h", "", 0),
        ("--help", "", 0),
        ("---v", "bad flag syntax: ---v\n", 2),
        ("-=v", "bad flag syntax: -=v\n", 2),
        ("-v=yes", 'invalid boolean value "yes" for -v: parse error\n', 2),
        ("-v=", 'invalid boolean value "" for -v: parse error\n', 2),
    ],
)
def test_mistakes_and_calls_for_help_end_in_the_usage_text(word: str, text: str, code: int) -> None:
    with pytest.raises(UsageWanted) as wanted:
        parse_flags([word], "X", KNOWN)
    assert wanted.value.text == text + USAGE
    assert wanted.value.exit_code == code
