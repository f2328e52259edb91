"""What tests wait with: one quick try is enough, none is a failure, and what does not happen is named."""

from __future__ import annotations

import pytest

from patience import TRIES, at_best, until


def test_nothing_is_tried_again_once_it_was_quick():
    tried = []
    at_best(60, lambda: tried.append("once"))
    assert tried == ["once"]


def test_if_none_is_quick_all_are_told():
    tried = []
    with pytest.raises(AssertionError, match=f"none of {TRIES} tries took less than 0 s: "):
        at_best(0, lambda: tried.append("again"))
    assert len(tried) == TRIES


def test_a_try_that_fails_fails_the_test():
    with pytest.raises(ZeroDivisionError):
        at_best(60, lambda: 1 / 0)


def test_what_happens_is_waited_for():
    looks = iter([False, True])
    until(lambda: next(looks))
    assert list(looks) == []


def test_what_does_not_happen_is_named():
    with pytest.raises(AssertionError, match="waited 0 s in vain for the file"):
        until(lambda: False, "the file", 0)
    with pytest.raises(AssertionError, match="in vain for what there is"):
        until(lambda: False, lambda: "what there is", 0)
