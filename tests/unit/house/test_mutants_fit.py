"""A mutant is a text of the product that is changed: whoever changes that text changes the mutant, too."""

from __future__ import annotations

import pytest

from mutants import test_mutants
from mutants.caught import ROOT


@pytest.mark.parametrize(
    ("file", "old"),
    [
        pytest.param(file, old, id=name)
        for mutants in test_mutants.SCRIPTS.values()
        for name, (file, old, _new, _seed) in mutants.items()
    ],
)
def test_the_text_is_there_once(file, old):
    assert (ROOT / file).read_text().count(old) == 1
