"""The inputs that fuzzing has found to lead somewhere new, kept with the tests: `corpus/<target>.txt`.

One input a line, as Python writes octets, so that a review can read what was added and git what has changed.

Invariant: what `kept` gives back is what `keep` was given, without doubles, in order of length.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"


def kept(name: str) -> list[bytes]:
    path = FOLDER / f"{name}.txt"
    lines = path.read_text("ascii").splitlines() if path.exists() else []
    return [ast.literal_eval(line) for line in lines]


def keep(name: str, inputs: Iterable[bytes]) -> None:
    ordered = sorted(set(inputs), key=lambda one: (len(one), one))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.txt").write_text("".join(f"{one!r}\n" for one in ordered), "ascii")
