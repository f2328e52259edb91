"""Every input that fuzzing has kept, and those that it begins with, is read as it has to be."""

from __future__ import annotations

from random import Random

import pytest

from fuzz.corpus import kept
from fuzz.families import targets
from fuzz.mutate import mutate
from fuzz.target import Allowed, Finding, Target, require

TARGETS = targets()


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_are_read_as_they_have_to_be(name: str) -> None:
    target = TARGETS[name]
    for octets in (*target.seeds, *kept(name), b""):
        target(octets)


@pytest.mark.parametrize("form", ["octets", "text", "json"])
def test_a_change_is_the_same_for_the_same_chance_and_never_too_long(form: str) -> None:
    octets = b'{"a": [1, "x", {"b": null}],\n "c": true}'
    changed = {mutate(octets, 64, Random(seed), form) for seed in range(200)}
    assert len(changed) > 100
    assert max(map(len, changed)) <= 64
    assert changed == {mutate(octets, 64, Random(seed), form) for seed in range(200)}


def test_only_what_a_parser_promises_is_passed_over() -> None:
    def read(octets: bytes) -> None:
        with Allowed(ValueError):
            require(octets != b"wrong", "a wrong answer", octets)
            octets.decode()[4].encode("ascii")

    target = Target("sample", read, ())
    target(b"\xff")
    target(b"abcde")
    target("abcdé".encode())
    with pytest.raises(IndexError):
        target(b"abc")
    with pytest.raises(Finding, match="a wrong answer: b'wrong'"):
        target(b"wrong")
