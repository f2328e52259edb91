"""The class of an answer."""

from __future__ import annotations

import pytest

from domain.cni.errors import outcome


@pytest.mark.parametrize(
    ("codes", "word"),
    [
        ((0,), "success"),
        ((11, 50), "try-again-later"),
        ((1, 4, 7, 8, 10), "bad-request"),
        ((100, 42, 998, -1, 1 << 70), "refused"),
        ((999,), "internal"),
    ],
)
def test_each_code_has_a_class(codes: tuple[int, ...], word: str) -> None:
    assert {outcome(code) for code in codes} == {word}
